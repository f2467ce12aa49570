"""How the GPUs of all ranks are wired, told by one rank of each node."""

import os
import socket
from dataclasses import dataclass, field
from threading import Barrier, Thread

import pytest

from commbench.engines.base import Engine, Link
from commbench.machine.facts import Facts, GpuFacts, NvLinkFacts
from commbench.measure import wiring
from commbench.measure.wiring import Wiring, gather_wiring
from commbench.plan.groups import Group, World

ADDRESSES = ("0000:1b:00.0", "0000:1c:00.0")


@dataclass
class Meeting:
    """Where the ranks of a test leave their texts."""

    size: int
    texts: dict[int, str] = field(default_factory=dict)
    barrier: Barrier = field(init=False)

    def __post_init__(self) -> None:
        self.barrier = Barrier(self.size)


class Rank:
    """What gather_wiring needs of an engine."""

    def __init__(self, rank: int, world: World, meeting: Meeting, address: str | None) -> None:
        self.ranks, self.world, self.pci_address = (rank,), world, address
        self._meeting = meeting

    def gather_texts(self, text: str) -> list[str]:
        self._meeting.texts[self.ranks[0]] = text
        self._meeting.barrier.wait(10)
        return [self._meeting.texts[rank] for rank in range(self._meeting.size)]


def machine(links: int) -> Facts:
    """Two GPUs with so many links to a switch."""
    nvlinks = tuple(NvLinkFacts(number, is_active=True, version=6, peer_kind="switch") for number in range(links))
    return Facts(gpus=tuple(GpuFacts(index, address, nvlinks=nvlinks) for index, address in enumerate(ADDRESSES)))


def gather(nodes: tuple[int, ...], addresses: tuple[str | None, ...], monkeypatch: pytest.MonkeyPatch) -> list[Wiring]:
    """What each rank of a world knows; one rank of each node reads its machine."""
    world, meeting, read = World(nodes), Meeting(len(nodes)), []
    found: dict[int, Wiring] = {}

    def facts() -> Facts:
        read.append(1)
        return machine(18)

    def run(rank: int) -> None:
        found[rank] = gather_wiring(Rank(rank, world, meeting, addresses[rank]), keeps_log=rank == 1)

    monkeypatch.setattr(wiring, "read_facts", facts)
    threads = [Thread(target=run, args=(rank,)) for rank in range(len(nodes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(read) == len(set(nodes))
    return [found[rank] for rank in range(len(nodes))]


def test_every_rank_knows_the_link_of_a_group_on_any_node(monkeypatch):
    for found in gather((0, 0, 1, 1), ADDRESSES * 2, monkeypatch):
        assert found.link(Group("node0", (0, 1))) == found.link(Group("node1", (2, 3))) == Link("nvlink", 450e9)
        assert found.link(Group("world", (0, 1, 2, 3))) is None
        assert (found.link_class(2, 3), found.link_class(1, 2)) == ("nvlink", "unknown")


def test_ranks_say_who_they_are(monkeypatch):
    found = gather((0, 0), ADDRESSES, monkeypatch)[0]
    here = socket.gethostname().partition(".")[0], os.getpid()
    assert [(told.address, told.host, told.pid, told.keeps_log) for told in found.ranks] == [
        (ADDRESSES[0], *here, False), (ADDRESSES[1], *here, True),
    ]  # fmt: skip


def test_a_gpu_whose_address_is_not_told_is_unknown(monkeypatch):
    found = gather((0, 0), (ADDRESSES[0], None), monkeypatch)[0]
    assert found.link(Group("world", (0, 1))) == Link("unknown")


def test_facts_that_do_not_fit_together_are_no_error(monkeypatch):
    one = GpuFacts(0, ADDRESSES[0])
    monkeypatch.setattr(wiring, "read_facts", lambda: Facts(gpus=(one, one)))
    engine: Engine = Rank(0, World((0,)), Meeting(1), ADDRESSES[0])
    assert gather_wiring(engine, keeps_log=False).link(Group("world", (0,))) == Link("unknown")
