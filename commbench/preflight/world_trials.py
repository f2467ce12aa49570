"""Trials on many ranks at once: is there an answer, is it right, are nodes alike inside, does it scale."""

from statistics import median

from commbench.plan.collectives import COLLECTIVES, MAIN_COLLECTIVES
from commbench.plan.groups import World, cut_world
from commbench.plan.trials import LATENCY_NBYTES, Trial, TrialResult
from commbench.preflight.bench import Bench
from commbench.report.preflight import Stage
from commbench.units import GB, format_nbytes, format_seconds

_PROBE_NBYTES = 1 << 20
_SLOW_INSIDE = 1 / 0.93  # of the median node's time: ClusterKit's 93 % of the bandwidth
_WORTH_A_LOOK = 0.7  # of the bus bandwidth of the first rung


def everyone(world: World) -> tuple[int, ...]:
    return tuple(range(world.size))


def first_answer(bench: Bench, timeout_seconds: float) -> tuple[Stage, bool]:
    """An 8-byte all_reduce whose answer is known; and whether it came, and was right."""
    began = bench.now_seconds()
    trial = Trial("all_reduce", LATENCY_NBYTES, (everyone(bench.world),), samples=3, calls=3, warmups=1, verify=True)
    [[result]] = bench.run([trial], timeout_seconds)
    seconds = bench.now_seconds() - began
    name = "first answer"
    if result.reason:
        return Stage(name, "fail", seconds, f"an all_reduce of 8 B over all ranks failed: {result.reason}"), False
    if result.wrong:
        return Stage(name, "fail", seconds, f"an all_reduce of 8 B gave {result.wrong} wrong elements"), False
    taken = format_seconds(median(result.seconds))
    right = "right, " if bench.verifies else ""
    return Stage(name, "ok", seconds, f"all_reduce of 8 B over {bench.world.size} ranks: {right}in {taken}"), True


def right_data(bench: Bench, sizes_nbytes: tuple[int, ...], timeout_seconds: float) -> tuple[Stage, float | None]:
    """The main collectives, every element compared; and bytes per second of bus traffic at 1 MiB, None if it failed."""
    began = bench.now_seconds()
    world = everyone(bench.world)
    trials = [Trial(name, nbytes, (world,), verify=True) for name in MAIN_COLLECTIVES for nbytes in sizes_nbytes]
    probe = Trial("all_reduce", _PROBE_NBYTES, (world,), samples=2, warmups=1)
    results = [result for (result,) in bench.run([*trials, probe], timeout_seconds)]
    seconds = bench.now_seconds() - began
    rate = _reached_rate(probe, results[-1])
    wrong = [trial for trial, result in zip(trials, results, strict=False) if result.wrong]
    failed = next((result.reason for result in results if result.reason), "")
    sizes = ", ".join(format_nbytes(nbytes) for nbytes in sizes_nbytes)
    name = "right data"
    if wrong:
        named = ", ".join(f"{trial.collective} of {format_nbytes(trial.nbytes)}" for trial in wrong)
        return Stage(name, "fail", seconds, f"wrong elements in {named}: trust neither library nor link"), rate
    if failed:
        return Stage(name, "fail", seconds, f"not all collectives came to an end: {failed}"), rate
    if not bench.verifies:
        return Stage(name, "skip", seconds, "there is no data on paper"), rate
    return Stage(name, "ok", seconds, f"{', '.join(MAIN_COLLECTIVES)} at {sizes}: every element right"), rate


def inside_nodes(bench: Bench, hosts: tuple[str, ...], nbytes: int, timeout_seconds: float) -> Stage:
    """All ranks of each node at the same time; a node that is slower than the median one, twice, is a culprit."""
    began = bench.now_seconds()
    groups = tuple(tuple(ranks) for ranks in bench.world.ranks_by_node() if len(ranks) > 1)
    nodes = {ranks: bench.world.node_of_rank[ranks[0]] for ranks in groups}
    trial = Trial("all_reduce", nbytes, groups, samples=5, warmups=2)
    results = dict(zip(groups, bench.run([trial], timeout_seconds)[0], strict=True))
    slow = _slow_groups(results)
    if slow:
        again = dict(zip(groups, bench.run([trial], timeout_seconds)[0], strict=True))
        slow = {ranks: ratio for ranks, ratio in _slow_groups(again).items() if ranks in slow}
    failed = [ranks for ranks, result in results.items() if result.reason]
    seconds = bench.now_seconds() - began
    name = "inside nodes"
    if failed:
        named = tuple(hosts[nodes[ranks]] for ranks in failed)
        said = f"failed inside {', '.join(named)}: {results[failed[0]].reason}"
        return Stage(name, "fail", seconds, said, named)
    if slow:
        named = tuple(hosts[nodes[ranks]] for ranks in slow)
        said = "; ".join(
            f"{hosts[nodes[ranks]]} takes {ratio:.2f} times the usual time" for ranks, ratio in slow.items()
        )
        return Stage(name, "fail", seconds, f"{said}, twice", named)
    usual = median(median(result.seconds) for result in results.values())
    reached = f"{format_seconds(usual)}, busbw {_bus_rate(trial, usual) / GB:.3g} GB/s"
    return Stage(name, "ok", seconds, f"all_reduce of {format_nbytes(nbytes)} in each node: {reached}")


def ladder(bench: Bench, nbytes: int, timeout_seconds: float) -> Stage:
    """all_reduce over the first 2, 4, 8, … nodes: how the bus bandwidth goes with them."""
    began = bench.now_seconds()
    groups = [wave.groups[0] for wave in cut_world(bench.world, "ladder")]
    trials = [Trial("all_reduce", nbytes, (group.ranks,), samples=3, warmups=1) for group in groups]
    results = [bench.run([trial], timeout_seconds)[0][0] for trial in trials]
    seconds = bench.now_seconds() - began
    rates = [_reached_rate(trial, result) for trial, result in zip(trials, results, strict=True)]
    told = ", ".join(
        f"{group.name} {'failed' if rate is None else f'{rate / GB:.3g} GB/s'}"
        for group, rate in zip(groups, rates, strict=True)
    )
    is_low = any(rate is None or rate < _WORTH_A_LOOK * (rates[0] or 0.0) for rate in rates)
    return Stage(
        "ladder", "warn" if is_low else "ok", seconds, f"busbw of all_reduce of {format_nbytes(nbytes)}: {told}"
    )


def _slow_groups(results: dict[tuple[int, ...], TrialResult]) -> dict[tuple[int, ...], float]:
    """Groups above the median's time by more than the noise allows, with the ratio. Of one or two none can be told."""
    times = {ranks: median(result.seconds) for ranks, result in results.items() if result.seconds}
    if len(times) < 3:
        return {}
    usual = median(times.values())
    return {ranks: time / usual for ranks, time in times.items() if time > _SLOW_INSIDE * usual}


def _bus_rate(trial: Trial, seconds: float) -> float:
    """Bytes per second of bus traffic in the first group of `trial`."""
    factor = COLLECTIVES[trial.collective].bus_factor(len(trial.groups[0])) or 1.0
    return factor * trial.nbytes / seconds


def _reached_rate(trial: Trial, result: TrialResult) -> float | None:
    return None if result.reason or not result.seconds else _bus_rate(trial, median(result.seconds))
