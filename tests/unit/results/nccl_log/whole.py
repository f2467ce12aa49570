"""From bytes to every form of the result, as the fuzzers go."""

from commbench.analysis.witness import judge
from commbench.analysis.witness_topology import judge_against, judge_nodes
from commbench.report.nccl_log import WITNESS_FORMATS, Witness
from commbench.results.nccl_log import read_logs
from commbench.results.nccl_log.link_class import link_class, pair_classes
from commbench.results.nccl_log.world import in_world
from commbench.topology import read_topology
from tests.unit.topology.make import MATRIX

TOPOLOGY = read_topology(MATRIX.encode(), "topo.txt")


def show_whole(data: bytes, _name: str | None = None) -> None:
    """Read `data`, judge it, and show it in every form. Raises CommbenchError where it is refused."""
    log = read_logs([("nccl.log", data)])
    assert log.counts.lost >= len(log.lost)
    for comm in {connection.comm for connection in log.connections}:
        link_class(pair_classes(log, comm), range(4))
    places = [(seen.host, seen.pid) for comm in log.comms for seen in comm.members if seen.pid is not None]
    told = in_world(log, {place: rank for rank, place in enumerate(dict.fromkeys(places))}, 4).log
    judge_nodes(told, [(TOPOLOGY, {seen.host for seen in told.ranks})])
    witness = Witness(log, (*judge(log), *judge_against(log, TOPOLOGY)), TOPOLOGY.source)
    assert all(write(witness) for write in WITNESS_FORMATS.values())
