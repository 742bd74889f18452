"""The hashes of pure_ldp's clients of local hashing."""

import xxhash


def hashes_of(client):
    """A function of an output: of which items, by the seed in the output, the answer is the hash.

    `client` is an `LHClient`.
    """

    def fits(output):
        answer, seed = output
        hashed = (xxhash.xxh32(str(at), seed=seed).intdigest() % client.g for at in range(client.d))
        return [float(value == answer) for value in hashed]

    return fits
