"""What warnings mean: the table `data/nccl_faults.toml`, a row a pattern, with cause, cure and source."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache

from commbench.paths import DATA
from commbench.results.nccl_log.records import FaultKind, FaultSeen
from commbench.texts import shown

WARNING_LENGTH = 200  # signs: GIDs, peers and vendor errors stand at the ends of long warnings


@dataclass(frozen=True, slots=True)
class KnownFault:
    """One row. `secondary`: it follows from another, often on another rank, that is to be looked for first."""

    name: str
    pattern: str
    cause: str
    cure: str
    source: str
    kind: FaultKind = "failure"
    secondary: bool = False

    def seen(self, text: str, where: str, hosts: tuple[str, ...] = (), ranks: tuple[int, ...] = ()) -> FaultSeen:
        """A sight of it."""
        return FaultSeen(
            self.kind,
            self.name,
            shown(text, WARNING_LENGTH),
            where,
            1,
            hosts,
            ranks,
            self.cause,
            self.cure,
            self.source,
            self.secondary,
        )


@cache
def known_faults() -> tuple[KnownFault, ...]:
    """The rows, in the order in which they are asked."""
    text = (DATA / "nccl_faults.toml").read_text(encoding="utf-8")
    return tuple(KnownFault(**row) for row in tomllib.loads(text)["fault"])


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(row.pattern) for row in known_faults())


def explain(text: str) -> KnownFault | None:
    """The row that a warning belongs to."""
    rows = zip(known_faults(), _patterns(), strict=True)
    return next((row for row, pattern in rows if pattern.search(text)), None)
