"""What tests of pairs brought: a row for each direction of each pair in each round, and the same as columns.

Columns, because 4,096 nodes in 20 rounds are 81,920 rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from commbench.errors import CommbenchError

PairStatus = Literal["ok", "failed", "skipped"]
Whole = NDArray[np.int64]
Real = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairResult:
    """One direction of a pair of endpoints in a round. A test that times both directions as one gives two rows alike.

    `seconds` is None unless `status` is `ok`; `failed`: the pair was tried and did not answer; `skipped`: not tried.
    """

    round: int
    sender: int
    receiver: int
    nbytes: int
    seconds: float | None
    status: PairStatus = "ok"


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """The results of one size as columns; seconds are NaN in the rows that failed. Skipped rows are left out."""

    nbytes: int
    rounds: Whole
    senders: Whole
    receivers: Whole
    seconds: Real

    @classmethod
    def of(cls, results: Iterable[PairResult]) -> "PairTable":
        """The table of `results`. Raises CommbenchError for several sizes, and for times that are none."""
        tried = [row for row in results if row.status != "skipped"]
        sizes = {row.nbytes for row in tried}
        if len(sizes) > 1:
            raise CommbenchError(f"results of pairs hold the sizes {sorted(sizes)}: judge one size at a time.")
        for row in tried:
            if row.sender == row.receiver or (row.status == "ok" and not 0.0 < (row.seconds or 0.0) < np.inf):
                raise CommbenchError(
                    f"{row} is no measurement: it needs two endpoints, and seconds above 0 if it is ok."
                )
        rounds, senders, receivers = (
            np.array([getattr(row, name) for row in tried], dtype=np.int64) for name in ("round", "sender", "receiver")
        )
        seconds = np.array([row.seconds if row.status == "ok" else np.nan for row in tried], dtype=np.float64)
        return cls(max(sizes, default=0), rounds, senders, receivers, seconds)

    def __len__(self) -> int:
        return len(self.seconds)

    def where(self, mask: NDArray[np.bool_]) -> "PairTable":
        """The rows that `mask` chooses."""
        columns = (column[mask] for column in (self.rounds, self.senders, self.receivers, self.seconds))
        return PairTable(self.nbytes, *columns)  # type: ignore[arg-type]  # mypy cannot tell the columns apart

    def joined(self, other: "PairTable") -> "PairTable":
        """The rows of both, which are of one size."""
        return PairTable(
            self.nbytes,
            np.concatenate((self.rounds, other.rounds)),
            np.concatenate((self.senders, other.senders)),
            np.concatenate((self.receivers, other.receivers)),
            np.concatenate((self.seconds, other.seconds)),
        )
