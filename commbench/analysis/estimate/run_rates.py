"""What a message costs by the fits of stored runs: `predict`, held to one link class."""

from collections.abc import Sequence
from dataclasses import replace

from commbench.analysis.estimate.rates import Cost
from commbench.analysis.predict import Prediction, predict
from commbench.analysis.records import FitRecord
from commbench.errors import CommbenchError, UsageError

_FAR = 1 << 30  # a size at which the bytes cost all of it


class RunRates:
    """The fits of runs. Of several conditions, throughput goes first, then groups that ran together, then `dtype`."""

    def __init__(self, records: Sequence[FitRecord], dtype: str) -> None:
        """Raises UsageError if nothing was fitted."""
        self._dtype = dtype
        names = {fit.key.link_class for record in records for fit in record.fits}
        if not names:
            raise UsageError("--using: the run has no fit: measure three sizes or more of a collective.")
        self._by_class = {name: [_of_class(record, name) for record in records] for name in names}
        self._costs: dict[tuple[str, int, int, str], Cost | None] = {}

    @property
    def link_classes(self) -> frozenset[str]:
        return frozenset(self._by_class)

    def cost(self, collective: str, nbytes: int, ranks: int, link_class: str) -> Cost | None:
        key = (collective, nbytes, ranks, link_class)
        if key not in self._costs:
            self._costs[key] = self._find(*key)
        return self._costs[key]

    def _find(self, collective: str, nbytes: int, ranks: int, link_class: str) -> Cost | None:
        found = self._predict(collective, nbytes, ranks, link_class)
        if found is None:
            return None
        half_nbytes = self._half(collective, ranks, link_class, found)
        return Cost(found.seconds, half_nbytes, found.basis, found.error)

    def _predict(self, collective: str, nbytes: int, ranks: int, link_class: str) -> Prediction | None:
        try:
            found = predict(self._by_class.get(link_class, []), collective, nbytes, ranks)
        except CommbenchError:  # nothing covers it
            return None
        return max(found, key=self._preference)

    def _preference(self, prediction: Prediction) -> tuple[bool, bool, bool]:
        return prediction.mode == "throughput", prediction.concurrency == "together", prediction.dtype == self._dtype

    def _half(self, collective: str, ranks: int, link_class: str, used: Prediction) -> float | None:
        """Of the measured curve its own; of a model that is a line alpha over slope."""
        fits = [fit for record in self._by_class[link_class] for fit in record.fits]
        for fit in fits:
            key = fit.key
            same = (key.collective, key.ranks, key.layout, key.concurrency, key.dtype, key.mode)
            if same == (collective, ranks, used.layout, used.concurrency, used.dtype, used.mode):
                return fit.line.half_bandwidth_nbytes if fit.line else None
        near = self._predict(collective, 1, ranks, link_class)
        far = self._predict(collective, _FAR, ranks, link_class)
        if near is None or far is None or far.seconds <= near.seconds:
            return None
        return near.seconds * _FAR / (far.seconds - near.seconds)


def _of_class(record: FitRecord, link_class: str) -> FitRecord:
    return replace(
        record,
        fits=tuple(fit for fit in record.fits if fit.key.link_class == link_class),
        joint=tuple(joint for joint in record.joint if joint.link_class == link_class),
        scaling=tuple(scaling for scaling in record.scaling if scaling.link_class == link_class),
    )
