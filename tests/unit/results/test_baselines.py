"""Baselines on disk."""

from dataclasses import replace
from pathlib import Path

import pytest

from commbench.errors import CommbenchError, UsageError
from commbench.results.baselines import (
    BASELINE_FILE,
    baselines_directory,
    find_baseline,
    list_baselines,
    load_baseline,
    remove_baseline,
    save_baseline,
)
from commbench.results.schema import Host
from commbench.results.store import load_run
from tests.factories import UNMEASURED
from tests.unit.analysis.launches import make_launch, make_launches, store

NOW = "2026-01-02T03:04:05+00:00"


def test_a_baseline_is_what_was_saved_and_outlives_its_runs(tmp_path: Path) -> None:
    runs = [load_run(Path(path)) for path in store(make_launches(3), tmp_path)]
    saved = save_baseline(tmp_path / "kept", "rack7", runs, NOW)
    for run in runs:
        (run.directory / "run.json").unlink()
    assert list_baselines(tmp_path / "kept") == [saved]
    loaded = load_baseline(tmp_path / "kept", "rack7")
    assert [(run.record, run.rows) for run in loaded] == [(run.record, run.rows) for run in runs]
    assert saved.shape.world_size == 2
    assert saved.shape.hosts == ("1 × a CPU, 2 CPUs",)
    assert saved.sources == tuple(str(run.directory) for run in runs)


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [replace(make_launch(seed), directory=Path(f"{seed}/run")) for seed in range(3)]
    assert save_baseline(tmp_path, "same", runs, NOW).runs == ("run", "run.2", "run.3")
    assert len(load_baseline(tmp_path, "same")) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"world_size": 4}, "world size is 2 in run-0 but 4 in run-1"),
        ({"engine": "cupy"}, "engine is torch in run-0 but cupy in run-1"),
        ({"layouts": ("node",)}, "layouts is"),
        ({"hosts": (Host("n", "another CPU", 2, "6.1"),)}, "hosts is"),
    ],
)
def test_one_baseline_is_of_one_set_up(tmp_path: Path, change: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        save_baseline(tmp_path, "mixed", [make_launch(0), make_launch(1, **change)], NOW)
    assert list(tmp_path.iterdir()) == []


def test_other_hosts_of_the_same_kind_belong(tmp_path: Path) -> None:
    save_baseline(tmp_path, "b", [make_launch(0), make_launch(1, hosts=(Host("node9", "a CPU", 2, "6.1"),))], NOW)
    assert len(load_baseline(tmp_path, "b")) == 2


def test_a_run_without_times_is_no_baseline(tmp_path: Path) -> None:
    run = make_launch(0)
    empty = replace(run, rows=tuple(replace(row, **UNMEASURED, status="missing") for row in run.rows))
    with pytest.raises(UsageError, match="nothing measured"):
        save_baseline(tmp_path, "empty", [empty], NOW)


def test_a_name_is_never_overwritten(tmp_path: Path) -> None:
    save_baseline(tmp_path, "rack7", [make_launch(0)], NOW)
    with pytest.raises(UsageError, match="there is a baseline 'rack7' already"):
        save_baseline(tmp_path, "rack7", [make_launch(1)], NOW)


@pytest.mark.parametrize("name", ["../out", "a/b", "", ".hidden", "-x", "a b", "x" * 101])
def test_a_name_stays_in_its_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a baseline"):
        save_baseline(tmp_path, name, [make_launch(0)], NOW)
    with pytest.raises(UsageError, match="cannot name a baseline"):
        remove_baseline(tmp_path, name)


def test_removed_is_gone(tmp_path: Path) -> None:
    save_baseline(tmp_path, "rack7", [make_launch(0)], NOW)
    remove_baseline(tmp_path, "rack7")
    assert list_baselines(tmp_path) == []
    with pytest.raises(UsageError, match="there are none"):
        find_baseline(tmp_path, "rack7")


def test_an_unknown_name_has_a_near_one(tmp_path: Path) -> None:
    save_baseline(tmp_path, "rack7", [make_launch(0)], NOW)
    with pytest.raises(UsageError, match="did you mean rack7"):
        load_baseline(tmp_path, "rack8")


@pytest.mark.parametrize("text", ["{", '{"schema_version": 9}', '{"schema_version": 1}'])
def test_a_damaged_baseline_is_one_sentence(tmp_path: Path, text: str) -> None:
    save_baseline(tmp_path, "rack7", [make_launch(0)], NOW)
    (tmp_path / "rack7" / BASELINE_FILE).write_text(text)
    with pytest.raises(CommbenchError, match=r"baseline\.json"):
        load_baseline(tmp_path, "rack7")


def test_a_baseline_reads_nothing_outside_of_it(tmp_path: Path) -> None:
    save_baseline(tmp_path, "rack7", [make_launch(0)], NOW)
    path = tmp_path / "rack7" / BASELINE_FILE
    path.write_text(path.read_text().replace('"run-0"\n ],\n "sources"', '"../../etc"\n ],\n "sources"'))
    with pytest.raises(CommbenchError, match="no folder of it"):
        load_baseline(tmp_path, "rack7")


def test_where_baselines_are() -> None:
    assert baselines_directory({}) == Path("results/baselines")
    assert baselines_directory({"COMMBENCH_BASELINES": "/srv/b"}) == Path("/srv/b")
