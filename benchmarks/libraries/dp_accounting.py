"""An event or a privacy loss distribution bounds delta at every eps. The noise is NumPy's, drawn as
the event is described, with sensitivity 1: these are claims of the accountant.
"""

# requirements: dp-accounting==0.6.0

import dp_accounting as accounting
import numpy as np
from dp_accounting import pld

from pytest_dp import Claimed, claims
from pytest_dp.libraries.dp_accounting import guarantee

losses = pld.privacy_loss_distribution
gaussian, laplace = accounting.GaussianDpEvent(1.0), accounting.LaplaceDpEvent(1.0)
sampled = accounting.PoissonSampledDpEvent(0.3, gaussian)
sigma = accounting.get_sigma_gaussian(1.0, 0.01)
numbers = {"pairs": [(0.0, 1.0)], "vectorized": "size"}


def normal(x, rng, size, scale=1.0):
    return x + rng.normal(scale=scale, size=size)


def of_sample(x, rng, size):
    """The record is in a Poisson sample, or is not."""
    return x * (rng.random(size) < 0.3) + rng.normal(size=size)


def both(x, rng, size):
    return np.column_stack([x + rng.normal(size=size), x + rng.laplace(size=size)])


def twice(x, rng, size):
    return x + rng.normal(size=(size, 2))


def flipped(x, rng, size):
    """Randomised response: with probability 0.5 one of two labels, evenly."""
    return np.where(rng.random(size) < 0.5, rng.integers(2, size=size), int(x))


def entry(mechanism, promised):
    return Claimed(mechanism, guarantee=guarantee(promised), **numbers)


dp_accounting = claims(
    {
        "Gaussian": entry(normal, gaussian),
        "Gaussian, loss": entry(normal, losses.from_gaussian_mechanism(1.0)),
        "Gaussian, sigma": Claimed(normal, eps=1.0, delta=0.01, params={"scale": sigma}, **numbers),
        "Laplace": entry(lambda x, rng, size: x + rng.laplace(size=size), laplace),
        "randomised response": entry(flipped, losses.from_randomized_response(0.5, 2)),
        "Poisson sample": entry(of_sample, sampled),
        "composed": entry(both, accounting.ComposedDpEvent([gaussian, laplace])),
        "composed with itself": entry(twice, accounting.SelfComposedDpEvent(gaussian, 2)),
    }
)
