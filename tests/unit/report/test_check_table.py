"""A check as lines for people: one a finding, with the ranks and nodes; as markdown, and as a Nagios plug-in's line."""

from dataclasses import replace

import pytest

from commbench.checks.result import CheckedNode, Placed
from commbench.report.check_rows import CheckRow, name_place, tell
from commbench.report.check_table import format_markdown, format_table
from commbench.report.nagios import format_nagios
from commbench.results.schema import Finding
from tests.unit.report.make_check import DEBUG, FOUR_NODES, MEMLOCK, NO_GPU, NO_NIC, SWAP, make_result

ALL = (SWAP, NO_GPU, NO_NIC, replace(NO_GPU, subject="clocks"), DEBUG, MEMLOCK)


def test_the_worst_first_one_line_each_and_the_counts_last() -> None:
    assert format_table(make_result(*ALL)) == (
        "fail  HOST-MEMLOCK  memlock: 64 KiB, expected unlimited → ulimit -l unlimited\n"
        "warn  ENV-DEBUG     NCCL_DEBUG: TRACE, expected WARN → unset NCCL_DEBUG\n"
        "6 checks: 1 fail, 1 warn, 1 ok, 3 skipped (2 there is no GPU; 1 there is no RDMA device)\n"
    )


def test_verbose_has_everything_and_where_it_was_read() -> None:
    shown = format_table(make_result(*ALL), verbose=True).splitlines()
    assert len(shown) == len(ALL) + 1
    assert shown[-2] == "ok    HOST-SWAP     swap: none (read in /proc/swaps)"
    assert [line[:4] for line in shown[:-1]] == ["fail", "warn", "skip", "skip", "skip", "ok  "]


def test_quiet_says_nothing_when_healthy() -> None:
    assert format_table(make_result(SWAP, NO_GPU), quiet=True) == ""
    assert format_table(make_result(SWAP, DEBUG), quiet=True).count("\n") == 1


def test_colour_is_round_the_verdict_alone() -> None:
    plain = format_table(make_result(*ALL))
    coloured = format_table(make_result(*ALL), colour=True)
    assert "\x1b[1;31mfail\x1b[0m  HOST-MEMLOCK" in coloured
    assert "\x1b[33mwarn\x1b[0m" in coloured
    assert coloured.replace("\x1b[1;31m", "").replace("\x1b[33m", "").replace("\x1b[0m", "") == plain


def test_reasons_beyond_the_commonest_are_counted() -> None:
    skipped = [replace(NO_GPU, observed=f"reason {number}") for number in range(7)]
    assert "(1 reason 0; 1 reason 1; 1 reason 2; 1 reason 3; 3 for other reasons: -v)" in format_table(
        make_result(*skipped)
    )


def test_what_a_terminal_would_obey_is_escaped() -> None:
    hostile = replace(DEBUG, observed="\x1b[2J\nfail  FORGED", subject="a\tb")
    (line, _) = format_table(make_result(hostile)).splitlines()
    assert "a\\tb: \\x1b[2J\\nfail  FORGED" in line


# -- ranks and nodes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "place"),
    [
        ((4,), "rank 4 on node n3"),
        ((4, 5), "ranks 4-5 on node n3"),
        ((0, 1, 2, 3, 6), "ranks 0-3,6 on nodes n[1-2,4]"),
        (tuple(range(8)), "all 4 nodes"),
        ((), ""),
    ],
)
def test_a_place_in_words(ranks: tuple[int, ...], place: str) -> None:
    assert name_place(make_result(nodes=FOUR_NODES), ranks) == place


def test_a_place_on_one_node_in_words() -> None:
    assert name_place(make_result(nodes=(CheckedNode("n1", (0, 1)),)), (0, 1)) == "all 2 ranks"
    assert name_place(make_result(nodes=(CheckedNode("n1", (0, 1)),)), (1,)) == "rank 1 on node n1"
    assert name_place(make_result(nodes=(CheckedNode("n1", (0,)),)), (0,)) == ""


def test_names_that_cannot_be_folded_stand_side_by_side() -> None:
    nodes = (CheckedNode("a,b", (0,)), CheckedNode("c[", (1,)), CheckedNode("n3", (2,)))
    assert name_place(make_result(nodes=nodes), (0, 1)) == "ranks 0-1 on nodes a,b, c["


def test_a_finding_of_a_node_says_which_and_counts_once() -> None:
    shown = format_table(make_result(Placed(MEMLOCK, (4, 5)), Placed(SWAP, tuple(range(8))), nodes=FOUR_NODES))
    assert shown.splitlines() == [
        "fail  HOST-MEMLOCK  memlock: 64 KiB, expected unlimited [ranks 4-5 on node n3] → ulimit -l unlimited",
        "2 checks on 8 ranks, 4 nodes: 1 fail, 0 warn, 1 ok, 0 skipped",
    ]


def test_findings_that_differ_in_what_was_seen_alone_are_one_line() -> None:
    seen = [Placed(replace(MEMLOCK, observed=f"{64 * (node + 1)} KiB"), (2 * node,)) for node in range(4)]
    (line, last) = format_table(make_result(*seen, nodes=FOUR_NODES)).splitlines()
    assert "memlock: 64 KiB (rank 0 on node n1); 128 KiB (rank 2 on node n2); 192 KiB (rank 4 on node n3)" in line
    assert "; and 1 more value, expected unlimited [ranks 0,2,4,6 on nodes n[1-4]]" in line
    assert last.startswith("1 check on 8 ranks")


# -- markdown and Nagios -----------------------------------------------------------------------------------------------


def test_markdown_has_what_is_not_ok() -> None:
    lines = format_markdown(make_result(replace(DEBUG, observed="a|b"), SWAP, NO_GPU)).splitlines()
    assert lines[0] == "3 checks: 0 fail, 1 warn, 1 ok, 1 skipped (1 there is no GPU)"
    assert lines[4] == "| warn | ENV-DEBUG | NCCL\\_DEBUG | a\\|b | WARN |  | unset NCCL\\_DEBUG |"
    assert len(lines) == 6


def test_markdown_of_a_healthy_machine_has_no_table() -> None:
    assert format_markdown(make_result(SWAP)) == "1 check: 0 fail, 0 warn, 1 ok, 0 skipped\n"


@pytest.mark.parametrize(
    ("findings", "begins"),
    [
        ((SWAP, NO_GPU), "COMMBENCH OK - 0 fail, 0 warn, 1 ok, 1 skip | fail=0 warn=0 ok=1 skip=1\n"),
        ((NO_GPU,), "COMMBENCH UNKNOWN - 0 fail,"),
        ((DEBUG,), "COMMBENCH WARNING - 0 fail, 1 warn, 0 ok, 0 skip: ENV-DEBUG NCCL_DEBUG: TRACE, expected WARN | "),
        ((DEBUG, MEMLOCK), "COMMBENCH CRITICAL - 1 fail, 1 warn, 0 ok, 0 skip: HOST-MEMLOCK memlock: 64 KiB"),
    ],
)
def test_the_line_of_a_plugin(findings: tuple[Finding, ...], begins: str) -> None:
    line = format_nagios(make_result(*findings))
    assert line.startswith(begins)
    assert line.count("\n") == 1


def test_the_line_of_a_plugin_is_short_and_has_one_bar() -> None:
    many = [replace(MEMLOCK, subject=f"a|{number}" * 50) for number in range(50)]
    line = format_nagios(make_result(*many))
    assert len(line) < 1024
    assert "and 46 more | fail=50" in line
    assert line.count("|") == 1


def test_a_variable_is_not_named_twice() -> None:
    row = CheckRow("warn", "ENV-FORCED", "NCCL_ALGO", "NCCL_ALGO=Ring is forced", "unset", "", "", "")
    assert tell(row) == "NCCL_ALGO=Ring is forced, expected unset"
    assert tell(replace(row, observed="Ring")) == "NCCL_ALGO: Ring, expected unset"
