"""Inverse Cholesky factors in blocks, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_dp.attacks.cholesky import inverse_root, times
from pytest_dp.limits import DOZENS


def positive(n, seed, condition=1e4):
    """A positive definite matrix with eigenvalues spread over a given range."""
    rng = np.random.default_rng(seed)
    vectors, _ = np.linalg.qr(rng.normal(size=(n, n)))
    values = np.geomspace(1, condition, n) if n > 1 else np.array([3.0])
    matrix = (vectors * values) @ vectors.T
    return (matrix + matrix.T) / 2


SIZES = st.integers(1, 200)


@settings(max_examples=25)
@given(SIZES, st.integers(0, 2**32 - 1))
@example(2 * DOZENS - 1, 0)
@example(2 * DOZENS, 0)
@example(2 * DOZENS + 1, 0)
@example(2 * (2 * DOZENS), 0)
@example(4 * (2 * DOZENS) + 1, 0)
def test_the_root_of_the_inverse(n, seed):
    matrix = positive(n, seed)
    before = matrix.copy()
    root = inverse_root(matrix)
    assert root.shape == (n, n)
    np.testing.assert_array_equal(np.triu(root, 1), 0)
    np.testing.assert_array_equal(matrix, before)
    np.testing.assert_allclose(root.T @ root, np.linalg.inv(matrix), rtol=1e-7, atol=1e-10)
    factor = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(root, np.linalg.inv(factor), rtol=1e-7, atol=1e-10)
    log_size = np.linalg.slogdet(matrix)[1]
    assert -2 * np.log(np.diag(root)).sum() == pytest.approx(log_size, rel=1e-9, abs=1e-9)


@given(SIZES, st.integers(0, 2**32 - 1))
def test_a_matrix_times_a_vector(n, seed):
    rng = np.random.default_rng(seed)
    matrix, vector = rng.normal(size=(n, n + 1)), rng.normal(size=n + 1)
    np.testing.assert_allclose(times(matrix, vector), matrix @ vector, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2 * DOZENS, 2 * DOZENS + 1])
def test_the_roots_of_a_stack_are_those_of_its_matrices(n):
    stack = np.stack([positive(n, seed) for seed in range(3)])
    for one, root in zip(stack, inverse_root(stack), strict=True):
        assert (root == inverse_root(one)).all()


@pytest.mark.parametrize("n", [1, 10, 2 * DOZENS, 2 * DOZENS + 1, 3 * (2 * DOZENS)])
def test_what_is_not_positive_definite_is_refused(n):
    matrix = positive(n, 0)
    matrix[-1, -1] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        inverse_root(matrix)
