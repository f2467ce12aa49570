"""From foreign tables to a run of ours: on disk, back again, and with everything that is not known left open."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.report.formats import FORMATS
from commbench.results.importers import import_source
from commbench.results.importers.assemble import Imported, assemble
from commbench.results.importers.records import Source
from commbench.results.store import load_run, read_samples
from commbench.results.writer import RunWriter
from tests.unit.results.importers.make import HEADER, SIZES, imported, nccl, nccl_json, row, seconds_of
from tests.unit.results.importers.samples import SAMPLES


def stored(tmp_path: Path, run: Imported) -> Path:
    writer = RunWriter(tmp_path / "run", run.record)
    writer.add_samples(run.samples)
    writer.add_summary(run.rows)
    writer.finish(run.record.outcome, 0.0)
    return tmp_path / "run"


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_becomes_a_run_that_loads_and_is_shown(tmp_path, name):
    found = imported(SAMPLES[name][1], ranks=4) if name == "OSU" else imported(SAMPLES[name][1])
    run = load_run(stored(tmp_path, found))
    assert run.record == found.record
    assert [row.case for row in run.rows] == list(range(len(found.rows)))
    assert [(row.size_bytes, row.status, row.variant) for row in run.rows] == [
        (row.size_bytes, row.status, row.variant) for row in found.rows
    ]
    for write in FORMATS.values():
        assert write(run)


def test_what_is_known_and_where_it_is_from():
    record = imported(nccl(), "reduce.log").record
    assert (record.engine, record.backend, record.world_size, record.outcome) == ("nccl-tests", "nccl", 16, "complete")
    assert record.versions["nccl"] == "2.30.7"
    assert record.versions["nccl-tests"] == record.origin.version == "2.18.2"
    (file,) = record.origin.files
    assert (file.name, file.format, file.nbytes) == ("reduce.log", "nccl-tests", len(nccl()))
    assert len(file.sha256) == 64
    assert [(group.size, group.nodes, group.link_class) for group in record.groups] == [(16, 2, "net")]
    assert (record.seed, record.precision, record.budget_seconds) == (None, None, None)


def test_unknown_is_unknown(tmp_path):
    text = "\n".join([HEADER, *(row("all_gather", 8, nbytes, wrong="N/A") for nbytes in SIZES)])
    run = load_run(stored(tmp_path, imported(text)))
    assert {(row.collective, row.ranks, row.nodes, row.link_class) for row in run.rows} == {
        ("unknown", 8, None, "unknown")
    }
    assert run.rows[-1].busbw_gbps == pytest.approx(SIZES[-1] / seconds_of(SIZES[-1]) / 1e9 * 7 / 8, rel=1e-3)
    header, *lines = (run.directory / "summary.csv").read_text().splitlines()
    assert dict(zip(header.split(","), lines[0].split(","), strict=True))["nodes"] == ""


def test_both_placements_are_cases_of_their_own():
    rows = imported(nccl()).rows
    assert [row.in_place for row in rows] == [False] * 5 + [True] * 5
    assert [row.size_bytes for row in rows] == [*SIZES, *SIZES]


def test_bandwidths_come_from_size_and_time():
    found = imported(nccl()).rows[4]
    assert found.algbw_gbps == pytest.approx(found.size_bytes / found.seconds_median / 1e9)
    assert found.busbw_gbps == pytest.approx(found.algbw_gbps * 2 * 15 / 16)
    assert found.samples == 1


def test_raw_iterations_become_samples(tmp_path):
    document = json.loads(nccl_json())
    times = [30.0, 10.0, 20.0, 12.0, 11.0, 13.0, 14.0]
    document["results"][2]["out_of_place_per_iter"] = {"times_us": times}
    directory = stored(tmp_path, imported(json.dumps(document)))
    assert [sample.seconds for sample in read_samples(directory)] == pytest.approx([us * 1e-6 for us in times])
    row = load_run(directory).rows[2]
    assert (row.samples, row.seconds_median, row.seconds_ci_low is None) == (7, pytest.approx(13e-6), False)


def test_tables_that_repeat_sizes_are_told_apart():
    one, other = nccl(), nccl()
    run = imported(one + other)
    assert {row.variant for row in run.rows} == {"", "table 2"}
    read = [import_source(Source(name, nccl().encode())) for name in ("a.log", "b.log")]
    assert {row.variant for row in assemble(read, "", ()).rows} == {"", "b.log"}


def test_tables_that_continue_each_other_are_one_curve():
    run = imported(nccl(sizes=SIZES[:2]) + nccl(sizes=SIZES[2:]))
    assert {row.variant for row in run.rows} == {""}
    assert [row.size_bytes for row in run.rows] == [*SIZES, *SIZES]


def test_the_run_is_as_bad_as_its_worst_table():
    assert imported(nccl() + nccl(footer=False)).record.outcome == "incomplete"
    failed = nccl().replace("values : 0 OK", "values : 1 FAILED")
    assert imported(failed + nccl(footer=False)).record.outcome == "failed"


def test_lost_lines_and_contradictions_are_findings_and_bounded():
    junk = " ".join(row("all_reduce", 16, SIZES[2]).split()[5:])
    text = nccl(
        rows=[row("all_reduce", 16, SIZES[0]), *[junk] * 80, *(row("all_reduce", 16, size) for size in SIZES[1:])]
    )
    lost = [finding for finding in imported(text).record.findings if finding.rule == "lost-row"]
    assert len(lost) == 51
    assert lost[0].where.startswith("log.txt:")
    assert lost[-1].observed == "30 more of these"


def test_an_unfinished_import_still_loads(tmp_path):
    found = imported(nccl())
    writer = RunWriter(tmp_path / "run", found.record)
    writer.add_summary(found.rows[:3])
    run = load_run(tmp_path / "run")
    assert [row.status for row in run.rows] == ["ok"] * 3 + ["missing"] * 7
    writer.finish("incomplete", 0.0)


# -- properties --------------------------------------------------------------------------------------------------------


@given(
    ranks=st.integers(2, 200),
    collective=st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"]),
    blocks=st.lists(st.integers(1, 1 << 24), min_size=1, max_size=8, unique=True),
)
def test_what_is_printed_is_read(ranks, collective, blocks):
    """Whatever the sizes and ranks: everything comes back, and nothing is suspect."""
    sizes = sorted(4 * block * ranks for block in blocks)
    found = imported(nccl(collective, ranks, sizes))
    assert {row.collective for row in found.rows} == {collective}
    assert {row.ranks for row in found.rows} == {ranks}
    assert [row.size_bytes for row in found.rows] == [*sizes, *sizes]
    assert {row.status for row in found.rows} == {"ok"}
    assert [row.seconds_median for row in found.rows[: len(sizes)]] == pytest.approx(
        [seconds_of(size) for size in sizes], rel=1e-2
    )


@given(ranks=st.integers(2, 64), data=st.data())
def test_ranks_that_the_digits_cannot_tell_are_unknown_not_wrong(ranks, data):
    """Without names and device list: the true N, or none, never another."""
    sizes = data.draw(st.lists(st.integers(1, 1 << 26), min_size=1, max_size=6, unique=True))
    text = "\n".join([HEADER, *(row("all_reduce", ranks, 4 * size) for size in sorted(sizes))])
    assert {row.ranks for row in imported(text).rows} <= {ranks, None}


@given(drop=st.sets(st.integers(0, 200), max_size=60))
def test_lines_that_are_missing_never_invent_a_row(drop):
    lines = nccl("all_gather", 8).splitlines()
    text = "\n".join(line for number, line in enumerate(lines) if number not in drop)
    if not any(f" {size} " in f" {text} " for size in SIZES):
        return
    original = {(row.size_bytes, row.in_place): row.seconds_median for row in imported(nccl("all_gather", 8)).rows}
    for found in imported(text).rows:
        if found.seconds_median is not None:
            assert original[found.size_bytes, found.in_place] == found.seconds_median
