"""What checks, readers and analyses say of one fact; apart from the records of a run, which not all of them need."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked fact. `where`: the place it was read, such as `log.txt:17`. A `skip` says in `observed` why."""

    rule: str
    subject: str
    verdict: Verdict
    observed: str
    expected: str = ""
    where: str = ""
    action: str = ""
