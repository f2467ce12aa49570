"""Whether the GPUs were in a state to be measured: clocks up before the first case, what was seen before and after."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from commbench.engines.base import Engine
from commbench.machine.gpu_load import GpuLoad, read_load
from commbench.plan.groups import format_ranks
from commbench.results.finding import Finding, Verdict

_EXERCISE_SECONDS = 0.1
_MOST_EXERCISES = 20  # 2 s: an H100 takes some tenths from idle to its clock (nvidia-smi shows it)
_SETTLED = 3  # readings in a row without a rise
# Held back by heat or power; idle and settings of the administrator are no fault.
_HELD_BACK = frozenset({"sw_power_cap", "hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown",
                        "hw_power_brake_slowdown"})  # fmt: skip

ReadLoad = Callable[[str], GpuLoad]


def raise_clocks(engine: Engine, read: ReadLoad = read_load) -> None:
    """Keep this rank's GPU busy until its clock rises no more: an idle one needs a while, and then times fall."""
    if engine.pci_address is None:
        return
    highest, settled = 0.0, 0
    for _ in range(_MOST_EXERCISES):
        engine.exercise(_EXERCISE_SECONDS)
        clock = read(engine.pci_address).sm_clock_hertz
        if clock is None:  # nobody says: half of the time is more than enough
            settled += 1
            if settled * 2 >= _MOST_EXERCISES:
                return
            continue
        settled = 0 if clock > highest else settled + 1
        highest = max(highest, clock)
        if settled >= _SETTLED:
            return


def find_gpu_state(engine: Engine, moment: str, read: ReadLoad = read_load) -> list[Finding]:
    """What the GPUs of all ranks are doing at a `moment` (`before`, `after`), those that are alike in one finding.

    Called on all ranks; none where no rank drives a GPU.
    """
    load = read(engine.pci_address) if engine.pci_address else None
    mine = {"address": engine.pci_address, "load": asdict(load) if load else None}
    told = [json.loads(text) for text in engine.gather_texts(json.dumps(mine))]
    nodes = engine.world.node_of_rank
    places = [(nodes[rank], one["address"]) for rank, one in enumerate(told)]
    alike: dict[tuple[Verdict, str], list[int]] = {}
    for rank, one in enumerate(told):
        if one["load"] is not None:
            alike.setdefault(_judge(GpuLoad(**one["load"]), places.count(places[rank])), []).append(rank)
    return [
        Finding(
            rule="gpu_state", subject=f"GPUs of ranks {format_ranks(ranks)} {moment} measuring", verdict=verdict,
            observed=observed, expected="highest clock, nothing that holds it back, no other process",
            where="NVML", action=_ACTIONS.get(verdict, ""),
        )
        for (verdict, observed), ranks in alike.items()
    ]  # fmt: skip


_ACTIONS: dict[Verdict, str] = {
    "warn": "see who uses the GPU and what cools it, then measure again",
    "skip": "pip install nvidia-ml-py, in the environment of commbench",
}


def _judge(load: GpuLoad, sharers: int) -> tuple[Verdict, str]:
    """`sharers`: ranks of ours on this GPU. Temperatures are left out: no two are alike, and heat shows as a reason."""
    if load.unseen:
        return "skip", f"not seen: {load.unseen}"
    reasons = [reason for reason in load.throttle_reasons or () if reason in _HELD_BACK]
    others = None if load.processes is None else max(0, load.processes - sharers)
    words: Sequence[str] = (
        f"SM clock {_megahertz(load.sm_clock_hertz)} of {_megahertz(load.sm_clock_max_hertz)}",
        f"held back by {', '.join(reasons)}" if reasons else "held back by nothing",
        "other processes unknown" if others is None else f"{others} other processes",
    )
    return "warn" if reasons or others else "ok", "; ".join(words)


def _megahertz(hertz: float | None) -> str:
    return "?" if hertz is None else f"{hertz / 1e6:.0f} MHz"
