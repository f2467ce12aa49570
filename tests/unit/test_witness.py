"""NCCL's log as witness: which links it tells of, what it finds, and what is kept of it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from commbench.analysis.witness import judge
from commbench.analysis.witness_topology import judge_nodes
from commbench.engines.fake import open_engine
from commbench.machine.facts import Facts
from commbench.measure import nccl_debug, wiring
from commbench.measure.nccl_debug import open_debug_log
from commbench.measure.wiring import RankTold, Wiring
from commbench.measure.witness import Evidence, Witness, read_evidence
from commbench.plan.groups import World
from commbench.results.schema import GroupRecord
from commbench.topology.from_facts import LIVE
from commbench.topology.graph import Device, Link, Topology
from tests.factories import write_run
from tests.unit.boards import MemoryBoard
from tests.unit.results.nccl_log.samples import modern
from tests.unit.results.nccl_log.test_world import EVEN, WHOLE, channel, head, several

NVLINKED = Topology(
    LIVE,
    "the node",
    tuple(Device(f"GPU{number}", "gpu", bus_id=f"0000:{number + 1}b:00.0") for number in range(4)),
    tuple(
        Link(f"GPU{one}", f"GPU{other}", "nvlink", 18, 450e9) for one in range(4) for other in range(one + 1, 4)
    ),
)  # fmt: skip
RING = [channel(rank, WHOLE, (rank + 1) % 4) for rank in WHOLE]


def group(ranks: str = "0-3", **changes: object) -> GroupRecord:
    size = 4 if ranks == "0-3" else 2
    record = GroupRecord("world", ranks, ranks, size, 1, "nvlink", 450e9, None, "wiring")
    return replace(record, **changes)


def four_ranks(nodes: tuple[int, ...] = (0, 0, 0, 0), topology: Topology = NVLINKED) -> Wiring:
    ranks = tuple(RankTold(f"0000:{rank + 1}b:00.0", "n1", 100 + rank, keeps_log=True) for rank in range(4))
    return Wiring(World(nodes), ranks, (topology,) * (max(nodes) + 1))


def all_findings(log, wired):
    return (*judge(log), *judge_nodes(log, wired))


def told_by(
    files: list[str], *groups: GroupRecord, cut: tuple[int, ...] = (), ranks: Wiring | None = None, **rates: float
) -> Evidence:
    """What the logs of ranks 0, 1, … say; an empty one is not there."""
    texts = [(rank, text.encode()) for rank, text in enumerate(files) if text]
    return read_evidence(texts, cut, ranks or four_ranks(), groups or (group(),), rates, all_findings)


def test_a_log_that_confirms_the_wiring_keeps_its_rate():
    told = told_by(several(*RING))
    assert told.groups == (group(link_source="log"),)
    assert [found.rule for found in told.findings if found.verdict != "ok"] == []


def test_memory_of_the_host_is_no_nvlink_whatever_joins_the_gpus():
    told = told_by(several(*(line.replace("P2P/CUMEM", "SHM/direct/direct") for line in RING)))
    assert told.groups == (group(link_class="phb", bytes_per_second=None, link_source="log"),)
    rules = {found.rule: found for found in told.findings}
    assert rules["LOG-UNEXPECTED-PATH"].observed.startswith("went over SHM although NVLink connects them")
    assert rules["LOG-UNEXPECTED-PATH"].where.startswith("nccl/rank")


def test_the_rate_of_another_class_is_what_the_user_said():
    told = told_by(several(*(line.replace("P2P/CUMEM", "SHM/direct/direct") for line in RING)), phb=20e9)
    assert told.groups[0].bytes_per_second == 20e9


def test_groups_have_what_their_own_pairs_took():
    shared = channel(2, WHOLE, 3, "SHM/direct/direct")
    told = told_by(several(*RING[:2], shared, RING[3]), group(), group("0-1"), group("2-3"))
    assert [one.link_class for one in told.groups] == ["phb", "nvlink", "phb"]


def test_a_group_of_which_the_log_tells_no_pair_keeps_the_wiring():
    assert told_by(several(*RING), group("0,2")).groups == (group("0,2"),)


@pytest.mark.parametrize("lost", [(), (3,)])
def test_a_group_with_a_member_whose_log_is_cut_or_left_out_keeps_the_wiring(lost):
    files = several(*RING)
    told = told_by([*files[:3], files[3] if lost else ""], group(), group("0-1"), cut=(3,))
    assert [one.link_source for one in told.groups] == ["wiring", "log"]
    assert told.findings[0].rule == "LOG-LEFT-OUT"
    assert (told.findings[0].subject, told.findings[0].verdict) == ("ranks 3", "skip")


def test_a_connection_that_may_be_of_two_pairs_leaves_both_groups_to_the_wiring():
    doubtful = channel(0, WHOLE, 1, "SHM/direct/direct", gpus=False)  # or that of 0 and 2 in EVEN
    told = told_by(several(*RING, doubtful), group(), group("0-1"), group("2-3"))
    assert [one.link_source for one in told.groups] == ["wiring", "wiring", "log"]


def test_processes_that_cannot_be_told_apart_say_nothing():
    """Two hosts of one short name, and by chance of one process id."""
    ranks = four_ranks().ranks
    twins = replace(four_ranks(), ranks=(*ranks[:3], replace(ranks[3], pid=100)))
    assert told_by(several(*RING), group(), group("1-2"), ranks=twins).groups == (
        group(), group("1-2", link_source="log"),
    )  # fmt: skip


def test_nvlink_between_nodes_is_told_by_the_log_alone():
    wide = group(nodes=2, link_class="net", bytes_per_second=None, link_source="")
    told = told_by(
        several(*(line.replace("P2P/CUMEM", "P2P/MNNVL") for line in RING)), wide, ranks=four_ranks((0, 0, 1, 1))
    )
    assert told.groups == (replace(wide, link_class="nvlink", link_source="log"),)


def test_a_machine_whose_gpus_were_not_seen_is_not_held_against_the_log():
    blind = four_ranks(topology=Topology(LIVE, "the node", ()))
    told = told_by(several(*RING), ranks=blind)
    assert "LOG-EXPECTED" not in {found.rule for found in told.findings}
    assert told.groups == (group(),)


def test_logs_in_which_nothing_is_said_are_a_skip():
    told = told_by(["what is this\n"])
    assert told.groups == (group(),)
    assert (told.findings[0].rule, told.findings[0].verdict) == ("LOG-UNREAD", "skip")


def test_sockets_that_carry_nothing_are_no_finding_where_groups_are_small():
    """One node, and no communicator of all: EVEN is begun by its members alone."""
    files = [text.replace("0a0123", "lost") for text in several(channel(0, EVEN, 2), channel(2, EVEN, 0))]
    files[0] += f"{head(0)}Using network Socket\n"
    told = told_by(files, group("0,2"))
    assert [found.verdict for found in told.findings if found.rule == "LOG-SOCKET"] == ["ok"]


# -- a rank's part in it -----------------------------------------------------------------------------------------------


class OnNccl:
    """An engine of one rank, as far as its witness needs it."""

    backend, ranks, world, pci_address = "nccl", (0,), World((0,)), "0000:1b:00.0"

    def gather_texts(self, text: str) -> list[str]:
        return [text]


@pytest.fixture
def witness(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Witness:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(wiring, "read_facts", Facts)
    for name in ("NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"):
        monkeypatch.delenv(name, raising=False)
    witness = Witness(OnNccl(), MemoryBoard())
    yield witness
    witness.close()


def write(text: str) -> None:
    with open(os.environ["NCCL_DEBUG_FILE"], "w") as file:
        file.write(text)


def test_an_engine_without_nccl_has_no_part_in_it(monkeypatch, tmp_path):
    monkeypatch.setattr(nccl_debug, "open_debug_log", lambda: pytest.fail("a log was opened"))
    witness = Witness(open_engine(ranks=2, spec="", seed=0), None)
    witness.hand_over()
    assert (witness.wiring, witness.settings, witness.waiting_seconds) == (None, {}, None)
    assert witness.testify(tmp_path, (), {}, all_findings) is None
    assert witness.keep(tmp_path) == ""


def test_the_log_comes_to_lie_beside_the_run(witness, tmp_path):
    directory = write_run(tmp_path)
    write(modern())
    witness.hand_over()
    told = witness.testify(directory, (group(),), {}, all_findings)
    assert (directory / "nccl" / "rank0.log").read_text() == modern()
    assert told.groups == (group(),)  # its processes are others


def test_a_run_that_ends_early_keeps_its_log(witness, tmp_path):
    assert witness.keep(tmp_path) == ""  # nothing was written
    write("NCCL version 2.30.7\n")
    directory = write_run(tmp_path)
    assert witness.keep(directory) == (
        f"NCCL's log of rank 0 is {directory / 'nccl' / 'rank0.log'}: commbench logs reads it."
    )
    assert (directory / "nccl" / "rank0.log").read_text() == "NCCL version 2.30.7\n"


def test_a_run_that_ends_before_it_has_a_directory_keeps_its_log_elsewhere(witness, tmp_path):
    write("NCCL version 2.30.7\n")
    said = witness.keep(tmp_path / "run")
    path = Path(said.removeprefix("NCCL's log of rank 0 is ").partition(":")[0])
    assert path.read_text() == "NCCL version 2.30.7\n"
    assert path.is_relative_to(tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_log_that_cannot_be_kept_is_not_the_error_that_is_told(witness, tmp_path):
    directory = write_run(tmp_path)
    (directory / "nccl").write_text("a file in its place")
    write("NCCL version 2.30.7\n")
    assert witness.keep(directory) == ""


def test_a_user_with_settings_of_his_own_keeps_them(monkeypatch, witness, tmp_path):
    witness.close()
    monkeypatch.setenv("NCCL_DEBUG", "VERSION")
    assert open_debug_log() is None
    own = Witness(OnNccl(), MemoryBoard())
    own.hand_over()
    assert (own.settings, own.waiting_seconds, own.keep(tmp_path)) == ({}, None, "")
    assert own.wiring is not None
