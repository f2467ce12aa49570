"""`commbench estimate`: what a training step must communicate."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commbench.cli.estimate_options import estimate_options
from commbench.cli.options import write_output
from commbench.errors import UsageError

if TYPE_CHECKING:
    from commbench.analysis.estimate.rates import Rates
    from commbench.analysis.estimate.step import Question
    from commbench.plan.links import LinkLine


@click.command(short_help="a training step's communication, memory and bubble, of a model and a layout")
@estimate_options
def estimate(**options: Any) -> None:
    """Estimate what a training step of a transformer communicates: messages, bytes, memory, bubble, seconds.

    For choosing a layout, and for checking one that a planner chose. It is no planner, and hides nothing behind
    computation; commbench export writes what planners load. Seconds need rates: of a run, or given by --link.

    \b
    commbench estimate --model llama-70b --tp 8 --sp --pp 4 --dp 2 --micro-batches 16 --shard zero1
    commbench estimate --layers 100 --hidden 4096 --batch 4 --sequence 2048 --tp 8 --link nvlink=150GB/s
    commbench estimate --model llama-70b --tp 8 --dp 8 --using results/RUN --flops 400T
    commbench estimate --model llama-70b --search GPUs=64 --memory 80G --global-batch 512 --using results/RUN

    Exit codes: 0 fine, whatever the findings; 2 usage; 3 could not read.
    """
    from commbench.analysis.estimate.search import search_layouts
    from commbench.analysis.estimate.step import estimate_step
    from commbench.report.estimate import SEARCH_FORMATS, STEP_FORMATS

    question = _question(options)
    shown_as, gpus = options["format_name"], options["search"]
    if gpus is None:
        text = STEP_FORMATS[shown_as](estimate_step(question))
    else:
        _check_search(options)
        sequences = options["global_batch"] or question.work.batch * question.work.micro_batches * gpus
        text = SEARCH_FORMATS[shown_as](search_layouts(question, gpus, sequences))
    write_output(text, options["output"])


def _check_search(options: dict[str, Any]) -> None:
    if not (options["using"] or options["links"]):
        raise UsageError("--search ranks by time: give rates, with --using RUN or --link CLASS=RATE.")
    if (options["tp"], options["pp"], options["dp"]) != (1, 1, 1):
        raise UsageError("--search tries every tp, pp and dp: leave --tp, --pp and --dp away.")
    if options["step_time"] is not None:
        raise UsageError("--step-time is of one layout: with --search give --flops.")


def _question(options: dict[str, Any]) -> "Question":
    from commbench.analysis.estimate.layout import SHARDINGS, Layout, Work
    from commbench.analysis.estimate.model import SIZES, make_model
    from commbench.analysis.estimate.rates import choose_links
    from commbench.analysis.estimate.step import Question

    if options["step_time"] is not None and options["flops"] is not None:
        raise UsageError("--step-time and --flops both say how long a step is: give one of them.")
    work = Work(
        batch=options["batch"],
        sequence=options["sequence"],
        micro_batches=_micro_batches(options),
        dtype=options["dtype"],
        gradient_dtype=options["gradient_dtype"] or options["dtype"],
        bucket_nbytes=options["bucket"],
    )
    return Question(
        model=make_model(options["model"], {size: options[size] for size in SIZES}),
        layout=Layout(
            **{name: options[name] for name in ("tp", "cp", "pp", "dp", "ep", "sp", "interleave")},
            sharding=SHARDINGS[options["shard"]],
        ),
        work=work,
        ranks_per_node=options["ranks_per_node"],
        links=choose_links(
            _rates(options["links"], options["using"], work.dtype), options["within"], options["between"]
        ),
        step_seconds=options["step_time"],
        flops_per_second=options["flops"],
        meant=options["meant"],
        memory_nbytes=options["memory"],
    )


def _micro_batches(options: dict[str, Any]) -> int:
    given, sequences = options["micro_batches"], options["global_batch"]
    if given is not None and sequences is not None:
        raise UsageError("--micro-batches and --global-batch both say how large a step is: give one of them.")
    if sequences is None or options["search"] is not None:
        return given or 1
    each = options["batch"] * options["dp"]
    if sequences % each:
        raise UsageError(f"--global-batch {sequences} is no multiple of --batch × --dp = {each}: choose one.")
    return int(sequences // each)


def _rates(lines: "Sequence[LinkLine]", runs: Sequence[Path], dtype: str) -> "list[Rates]":
    from commbench.analysis.estimate.rates import GivenRates

    sources: list[Rates] = [GivenRates(lines)] if lines else []
    if runs:
        from commbench.analysis.estimate.run_rates import RunRates
        from commbench.analysis.record_file import FIT_FILE, load_record
        from commbench.cli.fit import DEFAULT_WINDOW, fit_runs, parse_window

        records = []
        for directory in runs:
            if (directory / FIT_FILE).exists():
                records.append(load_record(directory))
            else:
                records += fit_runs([directory], parse_window(DEFAULT_WINDOW), seed=0, save=False)
        sources.append(RunRates(records, dtype))
    return sources
