"""Mechanisms of the literature, correct and broken, one output a call, as a user would write them.

Their vectorised twins are in `benchmarks.vectorized`, their claims and true losses in
`benchmarks.cases`. Laplace(b) has scale b; answers have sensitivity 1.

References
----------
Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018.
Lyu, Su, Li, "Understanding the Sparse Vector Technique for Differential Privacy", VLDB 2017.
Balcer, Vadhan, "Differential Privacy on Finite Computers", 2017.
Erlingsson, Pihur, Korolova, "RAPPOR", CCS 2014.
Wang, Ding, Wang, Kifer, Zhang, "Proving Differential Privacy with Shadow Execution", PLDI 2019.
"""

from __future__ import annotations

import bisect
import hashlib
import math

import numpy as np


def laplace(answer, eps, rng):
    return answer + rng.laplace(scale=1 / eps)


def laplace_parallel(answer, eps, rng, copies=20):
    """One answer, released `copies` times at an equal share of `eps`."""
    return [answer + rng.laplace(scale=copies / eps) for _ in range(copies)]


def geometric_cumulative(count, eps, n):
    """Balcer and Vadhan's GeoSample: integers F(0..n), of which F(z)/F(n) is P(output <= z).

    The ratio of neighbouring probabilities is 1 + 2**-k with k = ceil(ln(2/eps)), a little above
    exp(eps) for some eps, since the logarithm should have been to base 2.
    """
    k = math.ceil(math.log(2 / eps))
    step, rest = 2**k, 2**k + 1
    total = (2 * step + 1) * rest ** (n - 1)
    left = [step ** (count - z) * rest ** (n - count + z) for z in range(count)]
    right = [total - step ** (z - count + 1) * rest ** (n - 1 - z + count) for z in range(count, n)]
    return [*left, *right, total]


def truncated_geometric(count, eps, rng, n=5):
    cumulative = geometric_cumulative(count, eps, n)
    return bisect.bisect_left(cumulative, rng.integers(1, cumulative[-1], endpoint=True))


def histogram(counts, eps, rng):
    return np.asarray(counts) + rng.laplace(scale=1 / eps, size=len(counts))


def histogram_inverted(counts, eps, rng):
    """Wrong: the scale is eps, not 1/eps."""
    return np.asarray(counts) + rng.laplace(scale=eps, size=len(counts))


def prefix_sum(answers, eps, rng):
    """Right for one differing answer, wrong if all may differ."""
    return np.cumsum(np.asarray(answers) + rng.laplace(scale=1 / eps, size=len(answers)))


def noisy_max(answers, eps, rng):
    return int(np.argmax(np.asarray(answers) + rng.laplace(scale=2 / eps, size=len(answers))))


def noisy_max_exponential(answers, eps, rng):
    return int(np.argmax(np.asarray(answers) + rng.exponential(scale=2 / eps, size=len(answers))))


def noisy_max_value(answers, eps, rng):
    """Wrong: the noise pays for the index of the maximum, not for its value."""
    return float(np.max(np.asarray(answers) + rng.laplace(scale=2 / eps, size=len(answers))))


def noisy_max_value_exponential(answers, eps, rng):
    """Wrong: as `noisy_max_value`; moreover no output is below the true maximum."""
    return float(np.max(np.asarray(answers) + rng.exponential(scale=2 / eps, size=len(answers))))


# Sparse vector technique, Algorithms 1 to 6 of Lyu, Su and Li. TRUE where an answer is above the
# noisy threshold; Algorithms 1 to 4 stop after c of them.


def svt1(answers, eps, threshold, rng, c=1):
    """Correct."""
    noisy_threshold = threshold + rng.laplace(scale=2 / eps)
    out = []
    for answer in answers:
        above = answer + rng.laplace(scale=4 * c / eps) >= noisy_threshold
        out.append(above)
        if above and sum(out) == c:
            break
    return out


def svt2(answers, eps, threshold, rng, c=1):
    """Correct: Dwork and Roth's, with a new threshold after each TRUE."""
    noisy_threshold = threshold + rng.laplace(scale=2 * c / eps)
    out = []
    for answer in answers:
        above = answer + rng.laplace(scale=4 * c / eps) >= noisy_threshold
        out.append(above)
        if above:
            if sum(out) == c:
                break
            noisy_threshold = threshold + rng.laplace(scale=2 * c / eps)
    return out


def svt3(answers, eps, threshold, rng, c=1):
    """Wrong (Roth's lecture notes; StatDP's iSVT4): releases the noisy answer in place of TRUE."""
    noisy_threshold = threshold + rng.laplace(scale=2 / eps)
    out = []
    released = 0
    for answer in answers:
        noisy = answer + rng.laplace(scale=2 * c / eps)
        if noisy >= noisy_threshold:
            out.append(noisy)
            released += 1
            if released == c:
                break
        else:
            out.append(False)
    return out


def svt4(answers, eps, threshold, rng, c=1):
    """Wrong (Lee and Clifton; StatDP's iSVT3): the noise of the answers does not grow with c."""
    noisy_threshold = threshold + rng.laplace(scale=4 / eps)
    out = []
    for answer in answers:
        above = answer + rng.laplace(scale=4 / (3 * eps)) >= noisy_threshold
        out.append(above)
        if above and sum(out) == c:
            break
    return out


def svt5(answers, eps, threshold, rng):
    """Wrong (Stoddard et al.; StatDP's iSVT1): no noise on the answers, no cut-off."""
    noisy_threshold = threshold + rng.laplace(scale=2 / eps)
    return [answer >= noisy_threshold for answer in answers]


def svt6(answers, eps, threshold, rng):
    """Wrong (Chen et al.; StatDP's iSVT2): no cut-off."""
    noisy_threshold = threshold + rng.laplace(scale=2 / eps)
    return [answer + rng.laplace(scale=2 / eps) >= noisy_threshold for answer in answers]


def svt34(answers, eps, threshold, rng, c=1):
    """Algorithms 3 and 4 on the same answers, both outputs released."""
    return svt3(answers, eps, threshold, rng, c), svt4(answers, eps, threshold, rng, c)


def numerical_svt(answers, eps, threshold, rng, c=2):
    """Correct: a released answer gets noise of its own."""
    noisy_threshold = threshold + rng.laplace(scale=3 / eps)
    out = []
    released = 0
    for answer in answers:
        if answer + rng.laplace(scale=6 * c / eps) >= noisy_threshold:
            out.append(answer + rng.laplace(scale=3 * c / eps))
            released += 1
            if released == c:
                break
        else:
            out.append(0.0)
    return out


def bloom_filter(value, hashes=4, size=20):
    """Bits of a value. With these sizes, values 0 and 1 differ in 6 bits, 1 and 4 in all 8."""
    bits = np.zeros(size, dtype=np.int64)
    for i in range(hashes):
        digest = hashlib.sha256(f"bloom:{i}:{value}".encode()).digest()
        bits[int.from_bytes(digest[:8], "big") % size] = 1
    return bits


def one_time_rappor(value, rng, f=0.95):
    """Permanent randomised response: each bit becomes a fair coin with probability `f`."""
    bits = bloom_filter(value)
    coins = rng.integers(2, size=bits.size)
    return np.where(rng.random(bits.size) < f, coins, bits)


def rappor(value, rng, f=0.75, p=0.45, q=0.55):
    """Permanent, then instantaneous randomised response: 1 with probability q for 1, p for 0."""
    permanent = one_time_rappor(value, rng, f)
    return (rng.random(permanent.size) < np.where(permanent == 1, q, p)).astype(np.int64)


def randomized_response(truth, eps, rng):
    """A bit, told truthfully with probability e^eps / (1 + e^eps)."""
    return truth if rng.random() < 1 / (1 + math.exp(-eps)) else 1 - truth


def noisy_count(records, eps, rng):
    return len(records) + rng.laplace(scale=1 / eps)


def geometric_count(records, eps, rng):
    """A count with two-sided geometric noise: the difference of two geometric variables."""
    success = -math.expm1(-eps)
    return len(records) + int(rng.geometric(success)) - int(rng.geometric(success))


def kary_response(truth, eps, rng, k=5):
    """The truth with a probability exp(eps) times that of each other of k answers."""
    if rng.random() < math.exp(eps) / (math.exp(eps) + k - 1):
        return truth
    other = rng.integers(k - 1)
    return int(other + (other >= truth))


def unary_encoding(truth, eps, rng, k=5):
    """One bit for each of k answers, each flipped by itself; two of them tell answers apart."""
    honest = rng.random(k) < 1 / (1 + math.exp(-eps / 2))
    return np.where(honest, np.arange(k) == truth, np.arange(k) != truth)
