"""Inverse Cholesky factors in small blocks.

A numerical library spreads larger matrices over all cores. Where several test processes share
those cores, its threads then wait for each other, up to a hundred times as long as the work takes.
Blocks of this size stay in one thread, and give the same digits on any number of cores.
"""

from __future__ import annotations

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.limits import DOZENS


def inverse_root(matrix: Floats) -> Floats:
    """The inverse R of the lower Cholesky factor of a positive definite matrix A, shape (n, n).

    Of a stack of matrices, shape (k, n, n), each one's. So ``R.T @ R`` is the inverse of A, and the
    logarithm of the determinant of A is ``-2 * log(diag(R)).sum()``. Raises LinAlgError if the
    matrix is not positive definite.
    """
    n = matrix.shape[-1]
    if n <= 2 * DOZENS:
        return _small_inverse_root(matrix)
    if matrix.ndim > 2:
        return np.stack([inverse_root(block) for block in matrix])
    count = -(-n // (2 * DOZENS))
    size = -(-n // count)  # blocks of equal size, so that little is padded
    padded = np.eye(count * size)
    padded[:n, :n] = matrix
    a = np.ascontiguousarray(padded.reshape(count, size, count, size).swapaxes(1, 2))
    factor, root = np.zeros_like(a), np.zeros_like(a)
    for j in range(count):
        # Column j, from its diagonal block downwards, less what earlier columns explain.
        column = a[j:, j].copy()
        for k in range(j):
            column -= factor[j:, k] @ factor[j, k].T
        root[j, j] = _small_inverse_root(column[0])
        factor[j + 1 :, j] = column[1:] @ root[j, j].T
    for i in range(1, count):
        row = np.zeros((i, size, size))
        for k in range(i):
            row[: k + 1] += factor[i, k] @ root[k, : k + 1]
        root[i, :i] = -root[i, i] @ row
    joined: Floats = root.swapaxes(1, 2).reshape(count * size, count * size)[:n, :n]
    return joined


def _small_inverse_root(matrix: Floats) -> Floats:
    root: Floats = np.tril(np.linalg.inv(np.linalg.cholesky(matrix)))
    return root


def times(matrix: Floats, vector: Floats) -> Floats:
    """A matrix times a vector, in one thread."""
    product: Floats = np.einsum("ij,j->i", matrix, vector)
    return product
