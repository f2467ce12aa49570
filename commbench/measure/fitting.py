"""The plan, as far as it fits: what an engine refuses as a whole, and sizes for which there is no memory."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from commbench.engines.base import Engine
from commbench.errors import UsageError
from commbench.measure.case_state import describe
from commbench.measure.request import SweepRequest
from commbench.plan.plan import Case, build_plan
from commbench.results.finding import Finding
from commbench.units import format_nbytes

_MEMORY_SHARE = 0.9  # of what is free: the rest is for the interpreter and for verification's chunks


def plan_what_fits(engine: Engine, request: SweepRequest) -> tuple[list[Case], list[Finding]]:
    """The cases of `request` and buffers for them, without the sizes that do not fit; a finding says so.

    Raises UsageError, before allocating, if no size fits, or no case can be put into the graph that was asked for.
    """
    cases = build_plan(request.plan, engine.world, engine.one_buffer)
    if request.graph:
        _check_graph(engine, cases)
    available = int(engine.available_nbytes() * _MEMORY_SHARE)
    # Every rank must come to the same end: the one with the least memory decides.
    least = -int(engine.max_reduce(np.array([-float(available)]))[0])
    needs = {case.index: engine.needed_nbytes(case) for case in cases}
    too_large = {case.requested_nbytes for case in cases if needs[case.index] > least}
    fitting = tuple(nbytes for nbytes in request.plan.sizes_nbytes if nbytes < min(too_large, default=nbytes + 1))
    largest = max(cases, key=lambda case: needs[case.index])
    if too_large and not fitting:
        raise _too_large(largest, needs[largest.index], least)
    findings = []
    if too_large:
        findings.append(_left_out(sorted(too_large), needs[largest.index], least, max(fitting)))
        cases = build_plan(replace(request.plan, sizes_nbytes=fitting), engine.world, engine.one_buffer)
    buffers = [engine.buffer_nbytes(case) for case in cases]
    engine.allocate(max(send for send, _ in buffers), max(receive for _, receive in buffers))
    return cases, findings


def _check_graph(engine: Engine, cases: Sequence[Case]) -> None:
    reasons = [engine.no_graph(case) for case in cases]
    if all(reasons):
        raise UsageError(f"--graph cannot be: {reasons[0]}; leave it away, or use an engine on GPUs.")


def _too_large(case: Case, needed: int, least: int) -> UsageError:
    fits = int(case.requested_nbytes * (least / needed))
    return UsageError(
        f"{describe(case)} needs {format_nbytes(needed)} on each rank for its buffers, verification and the "
        f"library's copies, {format_nbytes(least)} are free for each: up to {format_nbytes(fits)} would fit; "
        "give smaller --sizes."
    )


def _left_out(sizes: Sequence[int], needed: int, least: int, largest: int) -> Finding:
    named = ", ".join(format_nbytes(nbytes) for nbytes in sizes)
    return Finding(
        rule="memory", subject=f"sizes {named}", verdict="warn",
        observed=f"left out: they need up to {format_nbytes(needed)} on each rank, {format_nbytes(least)} are free",
        expected="buffers, verification and the library's copies fit", where="this run's start",
        action=f"the largest size is {format_nbytes(largest)}",
    )  # fmt: skip
