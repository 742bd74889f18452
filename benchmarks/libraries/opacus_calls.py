"""A step of DP-SGD with Opacus, on gradients that are given by record."""

import torch
from opacus.optimizers import DPOptimizer
from opacus.utils.uniform_sampler import UniformWithReplacementSampler

torch.set_num_threads(1)


def step(gradients, kind=DPOptimizer, norm=1.0, sigma=1.0, rate=None, **given):
    """The noised gradient, of all records or of a Poisson sample, and the norm to clip to next."""
    weights = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    sgd = torch.optim.SGD(weights, lr=1.0)
    given |= {"noise_multiplier": sigma, "max_grad_norm": norm, "expected_batch_size": 2}
    stepping, rows = kind(sgd, **given), torch.tensor(gradients).reshape(-1, 2)
    if rate and len(rows):
        sampled = UniformWithReplacementSampler(num_samples=len(rows), sample_rate=rate, steps=1)
        rows = rows[next(iter(sampled))]
    for number, weight in enumerate(weights):
        weight.grad_sample = rows[:, number : number + 1]
    stepping.pre_step()
    return [*(float(weight.grad) for weight in weights), float(stepping.max_grad_norm)]
