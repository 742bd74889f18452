"""Sums of clipped gradients with noise of jax-privacy, many at a time."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax_privacy import batch_selection, noise_addition
from jax_privacy.matrix_factorization import sensitivity, streaming_matrix, toeplitz

BLOCK = 1024
"""Releases for which jax compiles."""
coefs = toeplitz.optimal_max_error_strategy_coefs(3)
matrix = toeplitz.materialize_lower_triangular(coefs)
far = float(sensitivity.single_participation_sensitivity(matrix))
inverse = {
    "none": streaming_matrix.identity(),
    "dense": jnp.linalg.inv(matrix),
    "streamed": toeplitz.inverse_as_streaming_matrix(coefs),
}


@partial(jax.jit, static_argnames="kind")
def released(keys, summed, stddev, kind):
    """The sum of each step, noised; one release a key."""

    def release(key):
        made = noise_addition.matrix_factorization_privatizer(
            inverse[kind], stddev=stddev, prng_key=key
        )
        noisy, state = [], made.init(summed[0])
        for one in summed:
            given, state = made.update(one, state)
            noisy.append(given)
        return jnp.stack(noisy).ravel()

    return jax.vmap(release)(keys)


class Noised:
    """Sums of steps, with noise; what jax has compiled, and would compile again for each copy."""

    def __init__(self, sums, stddev, kind="none"):
        self.sums, self.stddev, self.kind = sums, stddev, kind

    def __call__(self, data, rng, size):
        keys = jax.random.split(jax.random.key(rng.integers(2**31)), (-(-size // BLOCK), BLOCK))
        given = self.sums(jnp.array(data)), self.stddev, self.kind
        return np.concatenate([released(part, *given) for part in keys])[:size]

    def __reduce__(self):
        raise TypeError("what is compiled is not to be copied")


def of_sample(numbers, rng, sigma):
    """The sum of a Poisson sample of a third, with noise."""
    sampling = batch_selection.CyclicPoissonSampling(sampling_prob=1 / 3, iterations=1)
    chosen = next(sampling.batch_iterator(len(numbers), rng))
    return float(np.sum(np.array(numbers)[chosen]) + rng.normal(scale=sigma))
