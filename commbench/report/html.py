"""report.html: one or several runs on one page that needs nothing else, no network and no script. Records in, text out.

Whatever comes from a file is escaped by the templates; the drawings hold no text of a run.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from commbench import __version__
from commbench.analysis.curves import Launch
from commbench.analysis.fit import DEFAULT_WINDOW, format_window
from commbench.analysis.record_file import fit_launches
from commbench.report.contention import contention_lines
from commbench.report.fit_plots import PanelPlots, draw_panel, nominal_rates, shown_rates
from commbench.report.fits import FIT_LEGEND, common_conditions, fit_tables, group_findings
from commbench.report.grid import Grid, case_grid, first_lines, fit_grid, line_grid
from commbench.report.heat_map import MOST_MAPS, make_heat_maps
from commbench.report.ladder_plot import draw_ladders
from commbench.report.reported import Reported, label_runs
from commbench.report.run_facts import list_facts
from commbench.report.series import MOST_PANELS, Panel, make_panels
from commbench.report.table import lines_below, run_title
from commbench.report.verdict import Statement, headline, judge_run, worst_level
from commbench.results.schema import Finding
from commbench.units import GB

_MOST_CASES = 400  # in the tables of all runs together
_MOST_LINES = 60  # of notes, findings or reasons of one run
_GLYPHS = "●■▲◆▼✚✖◀▶★"  # as the markers of the plots


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What is said of one run, above all else."""

    label: str
    title: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class _ShownPanel:
    """A panel with its pictures, and the sentences below them."""

    panel: Panel
    plots: PanelPlots
    lines: Grid
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Fits:
    """The fit of one run: tables, findings by (rule, explanation), and why some curves have none."""

    label: str
    conditions: str
    grids: tuple[Grid, ...]
    unfitted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Findings:
    """Findings of one run that share a rule and its explanation. `left_out`: how many more there are."""

    label: str
    rule: str
    action: str
    findings: tuple[Finding, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class _Cases:
    """The table of one run, and the lines below it."""

    grid: Grid
    lines: tuple[str, ...]


def format_html(launches: Sequence[Launch], command: Sequence[str]) -> str:
    """The page for these runs, with their samples where they have them; `command` made it. At least one run.

    Each run is fitted on its own, so that runs on the same hosts can be compared.
    """
    labels = label_runs([launch.run.directory for launch in launches])
    fits = [fit_launches([launch], DEFAULT_WINDOW, seed=0) for launch in launches]
    reported = [Reported(label, launch.run, fit) for label, launch, fit in zip(labels, launches, fits, strict=True)]
    return _render(_page(reported, command))


def _render(page: dict[str, Any]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("commbench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html.j2").render(page)


def _page(reported: Sequence[Reported], command: Sequence[str]) -> dict[str, Any]:
    verdicts = [_Verdict(one.label, run_title(one.run), tuple(judge_run(one))) for one in reported]
    statements = [statement for verdict in verdicts for statement in verdict.statements]
    panels, maps = make_panels(reported), make_heat_maps(reported)
    return {
        "reported": reported,
        "verdicts": verdicts,
        "headline": headline(statements),
        "level": worst_level(statements),
        "facts": list_facts(reported),
        "panels": [_shown_panel(panel) for panel in panels[:MOST_PANELS]],
        "panels_left_out": max(0, len(panels) - MOST_PANELS),
        "ladders": draw_ladders(reported),
        "maps": maps[:MOST_MAPS],
        "maps_left_out": max(0, len(maps) - MOST_MAPS),
        "findings": [shown for one in reported for shown in _findings(one)],
        "fits": [_fits(one) for one in reported],
        "fit_legend": FIT_LEGEND,
        "cases": [_cases(one, len(reported)) for one in reported],
        "glyphs": _GLYPHS,
        "command": shlex.join(command),
        "version": __version__,
    }


def _shown_panel(panel: Panel) -> _ShownPanel:
    rates, shown = nominal_rates(panel), shown_rates(panel)
    remarks = [f"Theory ceiling: {rate / GB:.4g} GB/s, the nominal rate of {name}." for name, rate in shown.items()]
    remarks += [
        f"The nominal rate of {name}, {rate / GB:.4g} GB/s, is far above this picture."
        for name, rate in rates.items()
        if name not in shown
    ]
    fitted = sum(series.fit is not None for series in panel.series)
    if fitted < len(panel.series):
        without = "No curve" if not fitted else f"{fitted} of {len(panel.series)} curves"
        remarks.append(f"{without} could be fitted; the reasons are below, at the fits.")
    if panel.left_out:
        remarks.append(f"{panel.left_out} more curves are not drawn; summary.csv has them.")
    return _ShownPanel(panel, draw_panel(panel), line_grid(panel, format_window(DEFAULT_WINDOW)), tuple(remarks))


def _findings(one: Reported) -> list[_Findings]:
    groups = group_findings([*one.run.record.findings, *one.fit.findings])
    return [
        _Findings(one.label, rule, _sentence(action), tuple(found[:_MOST_LINES]), max(0, len(found) - _MOST_LINES))
        for (rule, action), found in groups.items()
    ]


def _sentence(text: str) -> str:
    """With a capital and a full stop, unless its first word is a name such as all_reduce."""
    if not text:
        return ""
    return f"{text if '_' in text.partition(' ')[0] else text[0].upper() + text[1:]}."


def _fits(one: Reported) -> _Fits:
    grids = tuple(fit_grid(table) for table in fit_tables(one.fit) if table.rows)
    reasons = [f"{item.collective}, {item.subject}: {item.reason}." for item in one.fit.unfitted]
    shown = first_lines(reasons, _MOST_LINES, "commbench fit prints them")
    return _Fits(one.label, common_conditions(one.fit), grids, tuple(shown))


def _cases(one: Reported, runs: int) -> _Cases:
    lines = [*lines_below(one.run), *contention_lines(one.run)]
    shown = first_lines(lines, _MOST_LINES, "commbench report prints them")
    return _Cases(case_grid(one.label, one.run, _MOST_CASES // runs), tuple(shown))
