"""Resuming: which cases are done, what makes it another run, and how the ranks agree when only rank 0 can read."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from commbench.errors import CommbenchError, UsageError
from commbench.measure.request import SweepRequest
from commbench.measure.resume import Resumption, StoredRun, find_left, take_request
from commbench.measure.sampling import SamplingRules
from commbench.plan.plan import PlanRequest
from commbench.results.lock import RunLock
from commbench.results.resume import DONE, DoneCase, find_differences, find_done
from commbench.results.schema import Host, RunRecord
from commbench.results.store import load_run, read_samples
from commbench.results.writer import keep_cases
from tests.factories import (
    UNMEASURED,
    batches,
    make_case_record,
    make_group_record,
    make_record,
    make_row,
    make_sample,
    write_run,
)

THREE = [1e-4, 2e-4, 3e-4]


def done_row(case: int = 0, **changes: Any) -> Any:
    """A row that counts the three batches of `THREE`."""
    return make_row(case, **({"samples": 3} | changes))


# -- which cases are done ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["ok", "noisy", "wrong", "unsupported", "skipped", "partial", "missing"])
def test_a_case_is_done_by_its_status(tmp_path, status):
    directory = write_run(tmp_path, batches(0, THREE), [done_row(status=status, reason="why")], outcome="running")
    found = find_done(load_run(directory))
    assert found == ([DoneCase(0, status, "why", (0,))] if status in DONE else [])


def test_the_statuses_that_are_done():
    assert sorted(DONE) == ["noisy", "ok", "skipped", "unsupported", "wrong"]


def test_a_case_without_samples_can_be_done(tmp_path):
    row = make_row(**UNMEASURED, status="skipped")
    assert [case.index for case in find_done(load_run(write_run(tmp_path, [], [row])))] == [0]


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_a_row_that_counts_more_batches_than_there_are_is_not_done(tmp_path, lost):
    samples = batches(0, THREE)
    directory = write_run(tmp_path, samples[: len(samples) - lost], [done_row()])
    assert [case.index for case in find_done(load_run(directory))] == ([] if lost else [0])


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_case_is_done_when_all_its_groups_are(tmp_path, rows):
    groups = tuple(make_group_record(layout="node", name=name) for name in ("0-1", "2-3"))
    record = make_record(groups=groups, cases=(make_case_record(layout="node", groups=(0, 1)),))
    samples = [*batches(0, THREE), *(make_sample(0, seconds, group=1) for seconds in THREE)]
    written = [done_row(layout="node", group=name, wrong=None) for name in ("0-1", "2-3")]
    directory = write_run(tmp_path, samples, written[:rows], record=record)
    assert find_done(load_run(directory)) == ([DoneCase(0, "ok", "", (None, None))] if rows == 2 else [])


def test_keeping_cases_drops_the_samples_and_rows_of_others(tmp_path):
    directory = write_run(tmp_path, [*batches(0, THREE), *batches(1, THREE)], [done_row(1), done_row(0, size_bytes=7)])
    keep_cases(load_run(directory), {1})
    assert list(read_samples(directory)) == batches(1, THREE)
    assert [row.status for row in load_run(directory).rows] == ["missing", "ok"]
    assert sorted(path.name for path in directory.iterdir()) == ["run.json", "samples.csv", "summary.csv"]


# -- what makes it another run -----------------------------------------------------------------------------------------


def test_a_record_does_not_differ_from_itself():
    later = make_record(created_utc="2027", command=("x",), outcome="complete", launcher="Slurm", measured_seconds=3.0,
                        environment={"MASTER_ADDR": "node7"}, resumed_utc=("2026",))  # fmt: skip
    assert find_differences(make_record(), later) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"schema_version": 99}, "schema (stored 2, now 99)"),
        ({"versions": {"torch": "2.9.0", "commbench": "0.2.0"}}, "commbench (stored 0.1.0, now 0.2.0)"),
        ({"versions": {"commbench": "0.1.0"}}, "torch (stored 2.9.0, now none)"),
        ({"engine": "cupy"}, "engine (stored torch, now cupy)"),
        ({"backend": "nccl"}, "backend (stored gloo, now nccl)"),
        ({"world_size": 4}, "world size (stored 2, now 4)"),
        ({"hosts": (Host("a", "", 1, "", "0"), Host("b", "", 1, "", "1"))},
         "ranks of each host (stored node1: 0-1, now a: 0, b: 1)"),
        ({"environment": {"NCCL_ALGO": "Ring"}}, "environment (stored , now NCCL_ALGO=Ring)"),
        ({"layouts": ("node",)}, "layouts (stored world, now node)"),
        ({"groups": (make_group_record(ranks="1-2"),)}, "groups (stored world world: 0-1, now world world: 1-2)"),
        ({"groups": (make_group_record(link_class="net"),)}, "link classes (stored loopback, now net)"),
        ({"groups": (make_group_record(bytes_per_second=5e7),)}, "link rates (stored None, now 50000000.0)"),
        ({"cases": (make_case_record(),)}, "sizes (stored 1 KiB, 4 KiB, now 1 KiB)"),
        ({"seed": 1}, "seed (stored 0, now 1)"),
        ({"precision": 0.02}, "precision (stored 0.05, now 0.02)"),
        ({"budget_seconds": 9.0}, "budget (stored 30 s, now 9 s)"),
    ],
)  # fmt: skip
def test_a_difference_is_told_with_both_values(changes, sentence):
    assert find_differences(make_record(), make_record(**changes))[0] == sentence


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"collective": "reduce"}, "collectives"),
        ({"dtype": "int8"}, "dtypes"),
        ({"redop": "max"}, "redops"),
        ({"mode": "latency"}, "mode"),
        ({"concurrency": "together"}, "concurrency"),
        ({"in_place": False}, "cases in place"),
        ({"index": 7}, "plan"),
    ],
)
def test_a_case_that_differs_is_told(changes, name):
    record = make_record()
    cases = tuple(replace(case, **changes) for case in record.cases)
    assert find_differences(record, replace(record, cases=cases))[0].startswith(f"{name} (stored ")


def test_links_that_nccls_log_told_of_are_no_difference():
    """A new run knows the wiring only; what another group crosses, or another wiring, still is one."""
    pair = make_group_record(name="pair", link_class="nvlink", bytes_per_second=450e9, link_source="wiring")
    stored = make_record(groups=(make_group_record(link_class="phb", link_source="log"), pair))
    wired = make_group_record(link_class="nvlink", bytes_per_second=450e9, link_source="wiring")
    assert find_differences(stored, replace(stored, groups=(wired, pair))) == []
    slower = replace(pair, link_class="pix", bytes_per_second=31e9)
    names = [text.partition(" (")[0] for text in find_differences(stored, replace(stored, groups=(wired, slower)))]
    assert names == ["link classes", "link rates"]


def test_a_long_value_is_cut():
    cases = tuple(make_case_record(index, requested_nbytes=1 << index) for index in range(40))
    (sizes, _) = find_differences(make_record(), make_record(cases=cases))
    assert sizes.endswith("…)")
    assert len(sizes) < 200


# -- the ranks agree ---------------------------------------------------------------------------------------------------


class Ranks:
    """Processes as threads that can tell each other texts, and nothing else."""

    def __init__(self, size: int) -> None:
        self._texts = [""] * size
        self._met = Barrier(size)

    def run(self, act: Callable[[int, Any], Any]) -> list[Any]:
        """What `act(rank, engine)` returns, or the error that it raises, by rank."""
        ended: list[Any] = [None] * len(self._texts)

        def one(rank: int) -> None:
            try:
                ended[rank] = act(rank, _Teller(rank, self._texts, self._met))
            except CommbenchError as error:
                ended[rank] = error

        threads = [Thread(target=one, args=(rank,)) for rank in range(len(ended))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=10)
        assert not any(thread.is_alive() for thread in threads)  # none waits for another
        return ended


class _Teller:
    backend = "gloo"

    def __init__(self, rank: int, texts: list[str], met: Barrier) -> None:
        self._rank, self._texts, self._met = rank, texts, met

    def gather_texts(self, text: str) -> list[str]:
        self._texts[self._rank] = text
        self._met.wait(timeout=10)
        return list(self._texts)


def request_for(directory: Path, **changes: Any) -> SweepRequest:
    plan = PlanRequest(("all_reduce",), (1024, 4096), ("world",))
    return replace(SweepRequest(plan, SamplingRules(), directory, resume=True), **changes)


def test_all_ranks_take_the_request_of_rank_0(tmp_path):
    stored = request_for(tmp_path, rules=SamplingRules(precision=0.01), verify=False, link_rates=(("net", 5e7),))
    stored = replace(stored, plan=replace(stored.plan, layouts=("mesh:dp=2,tp=1",), seed=3))
    default = request_for(Path("/not/here"))
    taken = Ranks(3).run(lambda rank, engine: take_request(engine, default if rank else stored))
    assert taken == [stored, *[replace(stored, directory=Path("/not/here"))] * 2]


def test_a_rank_that_was_started_in_another_way_is_named_on_all(tmp_path):
    ended = Ranks(3).run(
        lambda rank, engine: take_request(engine, request_for(tmp_path, bind="none" if rank == 2 else "auto"))
    )
    assert {str(error) for error in ended} == {
        "rank 2 was started with --backend gloo --bind none, the stored run has --backend gloo --bind auto: "
        "give these on all ranks, only rank 0 reads the run."
    }
    assert all(isinstance(error, UsageError) for error in ended)


def test_a_new_run_asks_nobody(tmp_path):
    request = request_for(tmp_path, resume=False)
    assert take_request(None, request) is request  # type: ignore[arg-type]
    assert find_left(None, 0, request, make_record()) == (Resumption(), None)  # type: ignore[arg-type]


def left_of(directory: Path, now: RunRecord, size: int = 3) -> list[Any]:
    """What every rank learns; only rank 0 can see the directory."""
    return Ranks(size).run(
        lambda rank, engine: find_left(engine, rank, request_for(Path("/not/here") if rank else directory), now)
    )


def test_all_ranks_learn_what_is_done(tmp_path):
    directory = write_run(tmp_path, batches(0, THREE), [done_row(status="noisy", reason="r")], outcome="interrupted")
    first, *others = left_of(directory, make_record())
    assert [left for left, _ in (first, *others)] == [Resumption((DoneCase(0, "noisy", "r", (0,)),))] * 3
    assert isinstance(first[1], StoredRun)
    assert [stored for _, stored in others] == [None, None]
    first[1].lock.release()


@pytest.mark.parametrize(
    ("spoil", "kind", "sentence"),
    [
        (
            lambda directory: None,
            UsageError,
            "it differs in world size (stored 2, now 4); seed (stored 0, now 9)",
        ),
        (lambda directory: (directory / "run.json").unlink(), CommbenchError, "no run in"),
        (lambda directory: (directory / "samples.csv").write_text("x\n"), CommbenchError, "does not start with"),
    ],
)
def test_a_refusal_ends_all_ranks(tmp_path, spoil, kind, sentence):
    directory = write_run(tmp_path, batches(0, THREE), [done_row()], outcome="running")
    spoil(directory)
    now = make_record() if "differs" not in sentence else make_record(world_size=4, seed=9)
    ended = left_of(directory, now)
    assert type(ended[0]) is kind
    assert all(isinstance(error, UsageError) for error in ended[1:])
    assert all(sentence in str(error) for error in ended)
    RunLock(directory).release()  # a run that is refused is not locked


@pytest.mark.parametrize("outcome", ["complete", "running"])
def test_complete_is_done_and_ended(tmp_path, outcome):
    rows = [make_row(case, **UNMEASURED, status="skipped") for case in (0, 1)]
    directory = write_run(tmp_path, [], rows, outcome=outcome)
    (left, stored), *_ = left_of(directory, make_record(), size=1)
    assert left.complete is (outcome == "complete")
    stored.lock.release()


def test_going_on_says_so_in_the_record_and_adds_up_the_seconds(tmp_path):
    directory = write_run(tmp_path, [*batches(0, THREE), *batches(1, THREE)], [done_row()], outcome="interrupted")
    for number in (1, 2):
        (_, stored), *_ = left_of(directory, make_record(), size=1)
        writer = stored.writer()
        document = json.loads((directory / "run.json").read_text())
        assert (document["outcome"], len(document["resumed_utc"])) == ("running", number)
        assert list(read_samples(directory)) == batches(0, THREE)
        writer.add_samples(batches(1, THREE)[:2])
        writer.finish("interrupted", 0.25)
        assert load_run(directory).record.measured_seconds == 1.5 + 0.25 * number


# -- one writer at a time ----------------------------------------------------------------------------------------------


def test_a_lock_is_held_until_it_is_released(tmp_path):
    lock = RunLock(tmp_path)
    with pytest.raises(UsageError, match="another process is writing"):
        RunLock(tmp_path)
    for _ in range(2):
        lock.release()
    RunLock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


def test_where_directories_cannot_be_locked_nobody_is_refused(tmp_path, monkeypatch):
    def refuse(*_: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refuse)
    first, second = RunLock(tmp_path), RunLock(tmp_path)
    first.release()
    second.release()
