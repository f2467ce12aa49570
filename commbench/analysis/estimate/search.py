"""All layouts of so many GPUs, by predicted communication time: what to look at before a planner is asked."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from commbench.analysis.estimate.layout import Layout
from commbench.analysis.estimate.step import Question, StepEstimate, estimate_step
from commbench.errors import UsageError

MAX_GPUS = 1 << 17


@dataclass(frozen=True, slots=True)
class Found:
    """The estimates that are possible, from the least communication time; `left_out`: how many were not, by reason."""

    gpus: int
    estimates: tuple[StepEstimate, ...]
    left_out: tuple[tuple[str, int], ...]


def parse_search(text: str) -> int:
    """The number in a text like `GPUs=64`. Raises UsageError."""
    match = re.fullmatch(r"\s*gpus\s*=\s*([1-9]\d{0,8})\s*", text, re.ASCII | re.IGNORECASE)
    if match is None or int(match[1]) > MAX_GPUS:
        raise UsageError(f"cannot read {text!r}: write GPUs=N, with N up to {MAX_GPUS}, like GPUs=64.")
    return int(match[1])


def search_layouts(question: Question, gpus: int, global_batch: int) -> Found:
    """Every tp, pp and dp whose product with the question's cp is `gpus`, for `global_batch` sequences a step.

    ep, cp, sharding and chunks are the question's; sequence parallelism goes with tp where it asks for it. Raises
    UsageError where no layout has a predicted time.
    """
    found: list[StepEstimate] = []
    reasons: Counter[str] = Counter()
    for layout in _layouts(question.layout, gpus):
        micro_batches, rest = divmod(global_batch, question.work.batch * layout.dp)
        if rest or not micro_batches:
            reasons["the batch does not divide over dp"] += 1
            continue
        work = replace(question.work, micro_batches=micro_batches)
        try:
            estimate = estimate_step(replace(question, layout=layout, work=work))
        except UsageError:
            reasons["model or micro-batches do not divide"] += 1
            continue
        if question.memory_nbytes is not None and estimate.ledger.total > question.memory_nbytes:
            reasons["more memory than there is"] += 1
        elif estimate.communication_seconds is None:
            reasons["a rate is not known"] += 1
        else:
            found.append(estimate)
    if not found:
        told = "; ".join(f"{reason}: {count}" for reason, count in reasons.items())
        raise UsageError(f"no layout of {gpus} GPUs is possible ({told}): change the model, the batch or --memory.")
    found.sort(key=lambda estimate: (estimate.communication_seconds or 0.0, estimate.bubble))
    return Found(gpus, tuple(found), tuple(reasons.items()))


def _layouts(asked: Layout, gpus: int) -> Iterator[Layout]:
    for tp in _divisors(gpus):
        for pp in _divisors(gpus // tp):
            if gpus // tp // pp % asked.cp == 0:
                dp = gpus // (tp * pp * asked.cp)
                chunks = asked.interleave if pp > 1 else 1
                yield replace(asked, tp=tp, pp=pp, dp=dp, sp=asked.sp and tp > 1, interleave=chunks)


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
