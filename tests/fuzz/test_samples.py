"""Every foreign sample goes the whole way: to plots, and to a page."""

from pathlib import Path

import pytest

from commbench.analysis.curves import Launch
from commbench.report.html import format_html
from commbench.report.plots import draw_plots
from commbench.results.store import Run
from tests.unit.report.outline import Outline
from tests.unit.results.importers.samples import SAMPLES
from tests.unit.results.importers.whole import import_whole


@pytest.mark.parametrize("name", SAMPLES)
def test_it_is_drawn_and_a_page(name: str) -> None:
    imported = import_whole(SAMPLES[name][1])
    run = Run(Path("/runs/run"), imported.record, imported.rows)
    if any(row.seconds_median and row.size_bytes for row in run.rows):
        assert draw_plots(run)
    page = format_html([Launch(run, {})], ("commbench", "report", "a run"))
    assert Outline(page).open == []
    assert f"results of {imported.record.engine}" in page
