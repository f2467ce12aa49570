"""The verdict in words, the hosts to leave out, and the map of pairs."""

import numpy as np

from commbench.analysis.cluster import Cluster
from commbench.analysis.localize import localize
from commbench.analysis.retests import plan_retests, settle
from commbench.engines.fake_pairs import FakePairs
from commbench.plan.rounds import pair_rounds
from commbench.report.culprits import exclude_option, excluded_hosts, tell_culprits
from commbench.report.pair_map import draw_pair_map, fold
from commbench.results.pairs import PairTable


def judged(nodes=8, *, retest=True, allowed_seconds=None, **faults):
    machine = FakePairs(nodes, noise=0.002, tail_share=0.0, **faults)
    table = machine.measure(pair_rounds(nodes), seed=1)
    cluster = Cluster.of([f"n{node}" for node in range(nodes)], racks={"r1": ["n0", "n1"]})
    diagnosis = localize(cluster, table, allowed_seconds=allowed_seconds)
    retests = PairTable.of([])
    while retest and (pairs := plan_retests(diagnosis, retests)):
        retests = retests.joined(machine.measure([pairs], len(retests), 1000 + len(retests)))
    return diagnosis, settle(diagnosis, retests), table


def lines(*told):
    return tell_culprits(*told[:2])


def test_culprits_come_with_evidence_what_to_do_and_a_list_to_paste():
    told = judged(slow_send={2: 1.5, 7: 1.5}, slow_receive={2: 1.5})
    text = "\n".join(lines(*told))
    assert text.startswith(
        "64 MiB: to blame: n2, n7.\n  n2 is slow, sending and receiving: 1.50 times the time (67% of"
    )
    assert "n7 is slow, sending: 1.50 times" in text
    assert "14 results in the first 7 rounds with n0, n1, n3, n4, n5, n6, n7, " in text
    assert "; again in 5 of 5 retests with n" in text
    assert "to do: leave the node out; " in text
    assert "\n  --exclude=n[2,7]\n" in text
    assert excluded_hosts(*told[:2]) == ("n2", "n7")


def test_nobody_stands_out():
    first, basis = lines(*judged())
    assert first == "64 MiB: nobody stands out among 8 nodes."
    assert basis.startswith("  28 pairs in 7 rounds; usual 10.00 ms; noise 0.2%, so a node 8% slower would stand out;")
    assert basis.endswith("no reference: judged against each other alone.")


def test_links_racks_and_the_dead():
    link = judged(slow_links={(2, 4): 1.5})
    assert lines(*link)[0] == "64 MiB: to blame: the link n2–n4."
    assert excluded_hosts(*link[:2]) == ()
    rack = judged(slow_racks=(((0, 1), 1.5),))
    assert lines(*rack)[0] == "64 MiB: to blame: rack r1."
    assert exclude_option(excluded_hosts(*rack[:2])) == "--exclude=n[0-1]"
    dead = judged(dead=frozenset({3}))
    assert lines(*dead)[1] == "  n3 does not answer."
    assert "14 directions failed" in lines(*dead)[-1]


def test_two_nodes_and_nothing():
    pair = judged(2, slow_send={1: 1.5})
    assert lines(*pair)[0] == "64 MiB: to blame: n1 or n0."
    assert "which of the two is to blame cannot be told" in lines(*pair)[1]
    assert lines(*judged(2, dead=frozenset({1})))[0].startswith("64 MiB: to blame: n0 or n1")


def test_who_was_not_measured_again_is_suspected_only():
    told = judged(slow_send={2: 1.5}, retest=False)
    assert lines(*told)[:2] == [
        "64 MiB: nobody stands out among 8 nodes.",
        "  suspected, but not measured again often enough: n2.",
    ]
    assert excluded_hosts(*told[:2]) == ()


def test_all_slower_than_expected():
    first = lines(*judged(allowed_seconds=8e-3))[0]
    assert first == "64 MiB: all are slower than expected: the usual pair takes 10.00 ms, at most 8.00 ms is expected."


def test_the_map_has_a_row_for_each_sender_and_is_a_picture():
    diagnosis, verdicts, table = judged(slow_send={2: 1.5}, dead=frozenset({3}), slow_links={(0, 5): 1.5})
    names, ratios, failed, _ = fold(diagnosis, table)
    assert names == [f"n{node}" for node in range(8)]
    assert np.nanmin(ratios[2]) > 1.4 > np.nanmax(ratios[[1, 4, 6, 7]])
    assert failed[3].sum() == failed[:, 3].sum() == 7
    assert draw_pair_map(diagnosis, table, verdicts).startswith(b"\x89PNG")


def test_a_large_map_is_folded():
    machine = FakePairs(300)
    table = machine.measure(pair_rounds(300, 5), seed=1)
    diagnosis = localize(Cluster.of([f"n{node}" for node in range(300)]), table)
    names, ratios, _, rows_of = fold(diagnosis, table)
    assert (len(names), ratios.shape, rows_of[299]) == (100, (100, 100), 99)
    assert names[1] == "n3 …"
