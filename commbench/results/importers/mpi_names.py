"""What MPI benchmarks (OSU, IMB) call their tests, and what their size means in our terms."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from commbench.plan.modes import Mode
from commbench.results.kinds import POINT_TO_POINT

_PROCESSES = re.compile(r"\s(?:-np?|-n|--ntasks|--np)[ =]?(\d{1,7})\b")


@dataclass(frozen=True, slots=True)
class MpiTest:
    """A test: its collective, whether its size is that of one rank's block, how many directions its rate adds up."""

    collective: str
    per_rank: bool = False
    directions: int = 1
    mode: Mode = "latency"


_P2P_RATE = MpiTest(POINT_TO_POINT, mode="throughput")

TESTS: dict[str, MpiTest] = {
    "allreduce": MpiTest("all_reduce"),
    "reduce": MpiTest("reduce"),
    "bcast": MpiTest("broadcast"),
    "broadcast": MpiTest("broadcast"),
    "reducescatter": MpiTest("reduce_scatter"),
    "allgather": MpiTest("all_gather", per_rank=True),
    "allgatherv": MpiTest("all_gather", per_rank=True),
    "alltoall": MpiTest("all_to_all", per_rank=True),
    "alltoallpersonalizedexchange": MpiTest("all_to_all", per_rank=True),
    "alltoallv": MpiTest("all_to_all", per_rank=True),
    "gather": MpiTest("gather", per_rank=True),
    "scatter": MpiTest("scatter", per_rank=True),
    "barrier": MpiTest("barrier"),
    "pingpong": MpiTest(POINT_TO_POINT),
    "sendrecv": MpiTest("send_recv"),
    "pingping": MpiTest("send_recv"),  # both send at once: the ring shift of two ranks
    "uniband": _P2P_RATE,
    "biband": MpiTest("send_recv", directions=2, mode="throughput"),
}


def find_test(name: str) -> MpiTest | None:
    """The test that a title or a benchmark's name means; None for one that has no counterpart here."""
    return TESTS.get(re.sub(r"[^a-z]", "", name[:60].lower()))


def processes_in(lines: Iterable[str]) -> int | None:
    """The number of processes in the last command line that gives one; None if none does."""
    found = None
    for line in lines:
        if ("mpirun" in line or "srun" in line or "mpiexec" in line) and (match := _PROCESSES.search(line)):
            found = int(match[1])
    return found or None
