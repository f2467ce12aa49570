"""Baselines for people: what there is, and how far the runs of one differ."""

from collections.abc import Sequence

import numpy as np

from commbench.analysis.matching import Timing, launch_timings
from commbench.report.text_table import format_text_table
from commbench.results.baselines import Baseline
from commbench.results.store import Run
from commbench.units import format_seconds


def format_baselines(baselines: Sequence[Baseline]) -> str:
    """A line a baseline."""
    rows = [
        [
            one.name,
            one.created_utc[:10],
            f"{one.shape.engine}, {one.shape.backend}",
            "; ".join(one.shape.hosts),
            ", ".join(one.shape.layouts),
            "?" if one.shape.world_size is None else str(one.shape.world_size),
            str(len(one.runs)),
        ]
        for one in baselines
    ]
    return format_text_table(["name", "saved", "engine", "nodes", "layouts", "ranks", "runs"], rows, 5) + "\n"


def format_baseline(baseline: Baseline, runs: Sequence[Run]) -> str:
    """Its runs, and each case's geometric mean and spread (standard deviation of the logarithm) from run to run."""
    launches = [launch_timings(run) for run in runs]
    rows = []
    for key in dict.fromkeys(key for launch in launches for key in launch):
        seconds = [found.seconds for launch in launches if isinstance(found := launch.get(key), Timing)]
        logs = np.log(seconds)
        spread = f"{100 * np.std(logs, ddof=1):.1f}%" if len(seconds) > 1 else "?"
        mean = format_seconds(float(np.exp(logs.mean()))) if seconds else "missing"
        rows.append([key.words(), key.layout, key.dtype, key.link_class, str(len(seconds)), mean, spread])
    shape = baseline.shape
    lines = [f"baseline {baseline.name}: {', '.join(shape.hosts)}; {shape.engine}, {shape.backend}"]
    lines += [
        f"  {run.record.created_utc[:19]}  {folder}  ({run.record.outcome}, from {source})"
        for run, folder, source in zip(runs, baseline.runs, baseline.sources, strict=True)
    ]
    table = format_text_table(["case", "layout", "type", "link class", "runs", "time", "spread"], rows, 4)
    unknown = [] if len(runs) > 1 else ["spread: one run does not show how far runs differ; save several."]
    return "\n".join([*lines, "", table, *unknown]) + "\n"
