"""Where regimes start, on many replicates of a curve at once: the same dynamic programme, by weighted least squares.

Closed forms in place of Huber's rounds, with the weights that Huber's loss gave the curve itself: a thousand
segmentations in the time of a few.
"""

import numpy as np
from numpy.typing import NDArray

from commbench.analysis.lines import Floats
from commbench.analysis.regimes import allowed_segments, candidate_edges


def replicate_starts(
    nbytes: Floats, bus_nbytes: Floats, times: Floats, weights: Floats, count: int
) -> NDArray[np.int64]:
    """For each row of `times` (replicates, n) the positions of the first sizes of the regimes after the first, when it
    is cut into `count`: shape (replicates, count - 1). `weights` has shape (n,).

    The sizes must allow `count` regimes.
    """
    edges = candidate_edges(len(nbytes))
    pairs = allowed_segments(nbytes, edges)
    starts, ends = np.array([(edges[i], edges[j]) for i, j in pairs]).T
    points = np.arange(len(nbytes))
    masks = ((starts[:, None] <= points) & (points < ends[:, None])).astype(float)
    single = np.full((len(times), len(edges), len(edges)), np.inf)
    rows, columns = np.array(pairs).T
    single[:, rows, columns] = _segment_losses(bus_nbytes, times, weights, masks)
    best, previous = np.where(np.arange(len(edges)) == 0, 0.0, np.inf) + np.zeros((len(times), 1)), []
    for _ in range(count):
        totals = best[:, :, None] + single
        previous.append(totals.argmin(axis=1))
        best = totals.min(axis=1)
    end = np.full(len(times), len(edges) - 1)
    found = []
    for step in reversed(previous[1:]):
        end = step[np.arange(len(times)), end]
        found.append(end)
    positions: NDArray[np.int64] = np.array(edges)[np.stack(found[::-1], axis=1)]
    return positions


def _segment_losses(bus_nbytes: Floats, times: Floats, weights: Floats, masks: Floats) -> Floats:
    """The least sum of w (alpha/t + beta q/t - 1)², alpha and beta >= 0, of every replicate and mask."""
    u, v = 1.0 / times, bus_nbytes / times
    total = masks @ weights
    sums = [(weights * column) @ masks.T for column in (u, v, u * u, u * v, v * v)]
    u1, v1, uu, uv, vv = sums
    determinant = uu * vv - uv * uv
    solvable = determinant > 1e-13 * uu * vv
    divisor = np.where(solvable, determinant, 1.0)
    alpha, beta = (vv * u1 - uv * v1) / divisor, (uu * v1 - uv * u1) / divisor
    explained = np.where(
        solvable & (alpha >= 0.0) & (beta >= 0.0), alpha * u1 + beta * v1, np.maximum(u1 * u1 / uu, v1 * v1 / vv)
    )
    losses: Floats = np.maximum(total - explained, 0.0)
    return losses
