"""Not a test: `python -m tests.dist.verify_all RANKS` calls everything that gloo has once, and checks every element.

Prints a line for each placement: how many calls were right, and which cases the backend refused.
"""

import os
import sys
from collections import Counter
from dataclasses import asdict

from commbench.engines.torch_dist import TorchEngine, open_engine
from commbench.launch.environment import find_place
from commbench.launch.local import run_local_workers
from commbench.measure.verify import find_mismatch, write_pattern, write_steady
from commbench.plan.collectives import COLLECTIVES
from commbench.plan.dtypes import DTYPES, REDOPS
from commbench.plan.plan import Case, PlanRequest, build_plan

# One element per rank at least, a length that no number of ranks divides, and more than one chunk of verification.
SIZES = (32, 4099, 1_900_003)


def check(engine: TorchEngine, case: Case, rank: int) -> str:
    if case.too_small:
        return "too small"
    if reason := engine.unsupported(case):
        return f"unsupported: {case.collective} {case.dtype} {case.redop}: {reason}"
    call = engine.prepare(case, case.groups[0], rank)
    write_pattern(engine.data, case, call)
    engine.barrier()
    call.run()
    engine.barrier()
    bad = find_mismatch(engine.data, case, call)
    write_steady(engine.data, case, call)
    return f"WRONG: {case} {asdict(bad)}" if bad else "right"


def verify(in_place: bool) -> list[str]:
    place = find_place(os.environ)
    assert place is not None
    engine = open_engine(
        rank=place.rank, size=place.world_size, local_rank=place.local_rank, backend="gloo", timeout_seconds=60
    )
    request = PlanRequest(tuple(COLLECTIVES), SIZES, ("world",), tuple(DTYPES), REDOPS, in_place=in_place)
    cases = [case for case in build_plan(request, engine.world, engine.one_buffer) if case.collective != "barrier"]
    engine.allocate(max(SIZES), max(SIZES))
    engine.create_groups(cases[0].groups)
    found = Counter(check(engine, case, place.rank) for case in cases)
    texts = engine.gather_texts("\n".join(f"{count} x {what}" for what, count in found.items()))
    engine.close()
    return texts


if __name__ == "__main__":
    for in_place in (False, True):
        for rank, text in enumerate(run_local_workers(int(sys.argv[1]), verify, in_place)):
            for line in text.splitlines():
                print(f"in_place={in_place} rank {rank}: {line}")
