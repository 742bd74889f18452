"""An event or a privacy loss distribution bounds delta at every eps. The noise is NumPy's, with
sensitivity 1 and the parameters of the event: these are claims of the accountant.
"""

# requirements: dp-accounting==0.6.0

import dp_accounting as accounting
import numpy as np
from dp_accounting import pld

from pytest_dp import Claimed, claims
from pytest_dp.libraries.dp_accounting import guarantee

losses = pld.privacy_loss_distribution
gaussian, laplace = accounting.GaussianDpEvent(1.0), accounting.LaplaceDpEvent(1.0)
twice = accounting.SelfComposedDpEvent(gaussian, 2)
sigma = accounting.get_sigma_gaussian(1.0, 0.01)
numbers = {"pairs": [(0.0, 1.0)], "vectorized": "size"}


def normal(x, rng, size, scale=1.0):
    return x + rng.normal(scale=scale, size=size)


def of_sample(x, rng, size):
    return x * (rng.random(size) < 0.3) + rng.normal(size=size)


def both(x, rng, size):
    return np.column_stack([x + rng.normal(size=size), x + rng.laplace(size=size)])


def discrete(x, rng, size):
    return int(x) + np.subtract(*rng.geometric(-np.expm1(-1.0), size=(2, size)))


def flipped(x, rng, size):
    """With probability 0.5 one of two labels, evenly."""
    return np.where(rng.random(size) < 0.5, rng.integers(2, size=size), int(x))


def entry(mechanism, promised, **more):
    return Claimed(mechanism, guarantee=guarantee(promised), **numbers, **more)


dp_accounting = claims(
    {
        "Gaussian": entry(normal, gaussian),
        "Gaussian, loss": entry(normal, losses.from_gaussian_mechanism(1.0)),
        "Gaussian, sigma": Claimed(normal, eps=1.0, delta=0.01, params={"scale": sigma}, **numbers),
        "Laplace": entry(lambda x, rng, size: x + rng.laplace(size=size), laplace),
        "randomised response": entry(flipped, losses.from_randomized_response(0.5, 2)),
        "Poisson sample": entry(of_sample, accounting.PoissonSampledDpEvent(0.3, gaussian)),
        "discrete Laplace": entry(discrete, losses.from_discrete_laplace_mechanism(1.0)),
        "Gaussian, 0.5": entry(normal, accounting.GaussianDpEvent(0.5), params={"scale": 0.5}),
        "composed": entry(both, accounting.ComposedDpEvent([gaussian, laplace])),
        "composed with itself": entry(lambda x, rng, size: normal(x, rng, (size, 2)), twice),
    }
)
