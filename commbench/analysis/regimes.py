"""Up to four regimes of one curve: exact segmentation by dynamic programming, their number by BIC.

A library changes its protocol or algorithm with the size, so its times are several lines. Where it always takes the
fastest, they form the lower envelope of those lines, which is continuous and concave; where it does not (a cache
spills, a network interface saturates), the lines jump or bend upwards, and the regimes stay segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from commbench.analysis.lines import FEW_ROUNDS, Floats, Line, LineBatch, fit_lines

MAX_REGIMES = 4
MIN_POINTS = 3  # in a regime: a line through two always fits
MIN_SPAN = 2.0  # and an octave between its first and last size
MAX_ENVELOPE_LOSS = 1.5  # how much worse than the segments their lower envelope may be, to be preferred
CONVEX_BEND = 1.05  # how much more a byte must cost to the right of a bend for it to go upwards
_MAX_EDGES = 64  # candidates for the border of a regime; more only where a sweep has more sizes than that
_LEAST_RESIDUAL = 0.005  # a curve that fits to 0.5 % needs no further regime

Form = Literal["line", "envelope", "segments"]


@dataclass(frozen=True, slots=True)
class Regime:
    """The sizes S, in bytes, from first to last that one line holds for."""

    first_nbytes: float
    last_nbytes: float
    line: Line


@dataclass(frozen=True, slots=True)
class Regimes:
    """A curve's regimes by rising size. `factor`: bus bytes per byte of S.

    `form`: one `line`; the lower `envelope` of the lines; or `segments`, bridged linearly from the end of one regime to
    the start of the next. `convex`: whether a bend goes upwards (a larger seconds_per_byte to its right).
    """

    regimes: tuple[Regime, ...]
    factor: float
    form: Form
    convex: bool

    def seconds(self, nbytes: float) -> float:
        """The modelled time of size `nbytes`; outside the fitted sizes the outer lines go on."""
        if self.form == "envelope":
            return min(regime.line.seconds(self.factor * nbytes) for regime in self.regimes)
        for regime, following in pairwise(self.regimes):
            if nbytes <= regime.last_nbytes:
                return regime.line.seconds(self.factor * nbytes)
            if nbytes < following.first_nbytes:
                return self._bridge(regime, following, nbytes)
        return self.regimes[-1].line.seconds(self.factor * nbytes)

    def _bridge(self, left: Regime, right: Regime, nbytes: float) -> float:
        start = left.line.seconds(self.factor * left.last_nbytes)
        end = right.line.seconds(self.factor * right.first_nbytes)
        share = (nbytes - left.last_nbytes) / (right.first_nbytes - left.last_nbytes)
        return start + share * (end - start)


@dataclass(frozen=True, slots=True)
class Cut:
    """A segmentation: borders as positions in the sorted sizes, 0 and n included, with its lines and its loss."""

    borders: tuple[int, ...]
    lines: tuple[Line, ...]
    loss: float


def find_regimes(nbytes: Floats, seconds: Floats, weights: Floats, factor: float, delta: float) -> Regimes:
    """The regimes of the times `seconds` of the rising sizes `nbytes`, each of shape (n,), n >= 2."""
    bus_nbytes = factor * nbytes
    cut = best_cut(cuts(nbytes, bus_nbytes, seconds, weights, delta), len(nbytes))
    cut = _refitted(cut, bus_nbytes, seconds, weights, delta)
    if len(cut.lines) == 1:
        return _regimes(cut.borders, cut.lines, nbytes, factor, "line")
    lines, loss = _envelope(cut, bus_nbytes, seconds, weights, delta)
    if loss <= MAX_ENVELOPE_LOSS * cut.loss:
        return _regimes(cut.borders, lines, nbytes, factor, "envelope")
    return _regimes(cut.borders, cut.lines, nbytes, factor, "segments")


def cuts(
    nbytes: Floats, bus_nbytes: Floats, seconds: Floats, weights: Floats, delta: float, most: int = MAX_REGIMES
) -> list[Cut]:
    """For each number of regimes from 1 to `most` the cut of least loss, as far as the sizes allow.

    Exact over all borders (Bellman, On the approximation of curves by line segments using dynamic programming, 1961):
    loss(k, j) = min over i of loss(k-1, i) + loss of one line through the sizes i to j-1.
    """
    edges = candidate_edges(len(nbytes))
    pairs = allowed_segments(nbytes, edges)
    starts, ends = np.array([(edges[i], edges[j]) for i, j in pairs]).T
    points = np.arange(len(nbytes))
    masks = (starts[:, None] <= points) & (points < ends[:, None])
    fits = fit_lines(np.ones_like(seconds), bus_nbytes, seconds, masks * weights, delta, FEW_ROUNDS)
    count = len(edges)
    single = np.full((count, count), np.inf)
    rows, columns = zip(*pairs, strict=True)
    single[rows, columns] = fits.loss
    position = {pair: index for index, pair in enumerate(pairs)}
    best, previous = [np.where(np.arange(count) == 0, 0.0, np.inf)], []
    found = []
    for _ in range(most):
        totals = best[-1][:, None] + single
        previous.append(totals.argmin(axis=0))
        best.append(totals.min(axis=0))
        if np.isfinite(best[-1][-1]):
            found.append(_trace(previous, edges, position, fits, float(best[-1][-1])))
    return found


def best_cut(candidates: list[Cut], points: int) -> Cut:
    """The cut with the least BIC: n log(loss / n) + parameters log n. k regimes have 2k coefficients, k - 1 borders.

    Source: Schwarz, Estimating the dimension of a model, 1978, for normal errors of unknown variance.
    """

    def bic(cut: Cut) -> float:
        mean = max(cut.loss / points, _LEAST_RESIDUAL**2)
        return float(points * np.log(mean) + (3 * len(cut.lines) - 1) * np.log(points))

    return min(candidates, key=bic)


def candidate_edges(points: int) -> list[int]:
    """Positions where a regime may start or end, 0 and `points` included."""
    if points + 1 <= _MAX_EDGES:
        return list(range(points + 1))
    return sorted({round(edge) for edge in np.linspace(0, points, _MAX_EDGES)})


def allowed_segments(nbytes: Floats, edges: list[int]) -> list[tuple[int, int]]:
    """Pairs of positions in `edges` that may bound a regime; the whole curve always may."""
    last = len(edges) - 1
    return [
        (i, j)
        for i in range(last)
        for j in range(i + 1, last + 1)
        if (i, j) == (0, last)
        or (edges[j] - edges[i] >= MIN_POINTS and nbytes[edges[j] - 1] >= MIN_SPAN * nbytes[edges[i]])
    ]


def _trace(
    previous: list[np.ndarray], edges: list[int], position: dict[tuple[int, int], int], fits: LineBatch, loss: float
) -> Cut:
    end = len(edges) - 1
    borders, lines = [edges[end]], []
    for step in reversed(previous):
        start = int(step[end])
        fit = position[start, end]
        lines.append(Line(float(fits.alpha[fit]), float(fits.beta[fit])))
        borders.append(edges[start])
        end = start
    return Cut(tuple(reversed(borders)), tuple(reversed(lines)), loss)


def _refitted(cut: Cut, bus_nbytes: Floats, seconds: Floats, weights: Floats, delta: float) -> Cut:
    """The same borders with lines whose weights have settled: the search stops sooner."""
    owner = np.searchsorted(cut.borders, np.arange(len(seconds)), side="right") - 1
    lines, losses = _fit_owned(owner, len(cut.lines), bus_nbytes, seconds, weights, delta)
    return Cut(cut.borders, lines, float(losses.sum()))


def _fit_owned(
    owner: NDArray[np.int64], count: int, bus_nbytes: Floats, seconds: Floats, weights: Floats, delta: float
) -> tuple[tuple[Line, ...], Floats]:
    """The line through the points of each of `count` owners, and their losses."""
    masks = owner == np.arange(count)[:, None]
    fits = fit_lines(np.ones_like(seconds), bus_nbytes, seconds, masks * weights, delta)
    return tuple(Line(float(a), float(b)) for a, b in zip(fits.alpha, fits.beta, strict=True)), fits.loss


def _envelope(
    cut: Cut, bus_nbytes: Floats, seconds: Floats, weights: Floats, delta: float
) -> tuple[tuple[Line, ...], float]:
    """As many lines as `cut` has, each refitted where it is the lowest, and the loss of their lower envelope."""
    lines = cut.lines
    best = lines, _envelope_loss(lines, bus_nbytes, seconds, weights, delta)
    for _ in range(10):
        lowest = np.argmin([line.alpha_seconds + line.seconds_per_byte * bus_nbytes for line in lines], axis=0)
        if np.bincount(lowest, minlength=len(lines)).min() < MIN_POINTS:
            break
        lines, _ = _fit_owned(lowest, len(lines), bus_nbytes, seconds, weights, delta)
        loss = _envelope_loss(lines, bus_nbytes, seconds, weights, delta)
        if loss >= best[1]:
            break
        best = lines, loss
    return best


def _envelope_loss(lines: Sequence[Line], bus_nbytes: Floats, seconds: Floats, weights: Floats, delta: float) -> float:
    modelled = np.min([line.alpha_seconds + line.seconds_per_byte * bus_nbytes for line in lines], axis=0)
    residuals = np.abs(modelled / seconds - 1.0)
    rho = np.where(residuals <= delta, residuals**2, 2 * delta * residuals - delta**2)
    return float((weights * rho).sum())


def _regimes(borders: Sequence[int], lines: Sequence[Line], nbytes: Floats, factor: float, form: Form) -> Regimes:
    regimes = tuple(
        Regime(float(nbytes[start]), float(nbytes[end - 1]), line)
        for (start, end), line in zip(pairwise(borders), lines, strict=True)
    )
    bends = pairwise(line.seconds_per_byte for line in lines)
    return Regimes(regimes, factor, form, any(right > CONVEX_BEND * left for left, right in bends))
