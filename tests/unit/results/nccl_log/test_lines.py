"""Prefixes, torn lines, and what is lost."""

import pytest

from tests.unit.results.nccl_log.samples import TORN, modern, read

CHANNEL = "n1:1:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n"


@pytest.mark.parametrize(
    "prefix",
    [
        "", "0: ", "[1,0]<stdout>:", "[1,0]<stderr>:", "2025-11-04T02:12:19.123Z ", "[2025-11-04 02:12:19] ", "    ",
        "> ", "pod-0: ", "\x1b[32m", "Nov  4 02:12:19 n1 slurmd[12]: ", "[pod/worker-0/main] ",
        "2025-11-04T02:12:19.1Z stdout F ",
    ],
)  # fmt: skip
def test_prefixes_of_launchers_and_log_drivers(prefix):
    (connection,) = read(prefix + CHANNEL).connections
    assert (connection.source, connection.target, connection.transport.label) == (0, 1, "P2P/CUMEM")
    assert read(prefix + CHANNEL).ranks[0].host == "n1"


def test_the_place_in_the_source_of_an_instrumented_build():
    log = read(CHANNEL.replace("NCCL INFO", "sendSetup, 263 NCCL INFO"))
    assert log.rank(log.connections[0].comm, 0).host == "n1"


def test_a_line_that_is_longer_than_we_read_is_not_believed():
    assert read(CHANNEL + f"n1:1:11 [0] NCCL INFO NCCL_IB_HCA set to {'a' * 9}\n").settings != ()
    log = read(CHANNEL + f"n1:1:11 [0] NCCL INFO Channel 00/02 : {'1 ' * 4000}\n")
    assert log.rings == ()
    assert log.counts.lost == 1


def test_messages_without_a_head():
    log = read(
        "NCCL INFO Using network Socket\nNCCL_IB_HCA set to mlx5_1\n"
        "misc/x.cc:1 (f) NCCL WARN Call to ibv_open_device failed\n"
    )
    assert log.networks == (("", "Socket"),)
    assert log.settings[0].value == "mlx5_1"
    assert log.faults[0].name == "ib-open"


def test_torn_lines_are_put_together_where_it_is_certain():
    log = read(TORN)
    assert log.counts.joined == 2  # `Connected all ` + `rings`, and the head of n2:200:205
    found = {(one.source, one.channel, one.transport.label) for one in log.connections}
    assert (1, 1, "P2P/CUMEM") in found
    assert log.rank(log.connections[0].comm, 1).pid == 200


def test_a_last_line_without_an_end_is_not_believed_where_something_may_be_missing():
    log = read(TORN)
    assert (0, 0, "NET/IB/1") in {(one.source, one.channel, one.transport.label) for one in log.connections}
    assert (0, 1) not in {(one.source, one.channel) for one in log.connections}  # /GDRDMA, or another digit, may follow
    assert [line.line for line in log.lost] == [10]
    assert log.counts.lost == 1


def test_a_last_line_is_believed_where_its_end_is_plain():
    assert len(read(CHANNEL.strip()).connections) == 1


def test_two_rests_that_fit_are_not_guessed():
    head = "n1:1:11 [0] NCCL INFO Using network IB\nn1:1:11 [0] NCCL INFO Connected all rings\n"
    torn = "n1:1:11 [0] NCCL INFO Connected all n1:1:11 [0] NCCL INFO Using network IB\n"
    log = read(f"{head}{torn}{torn}rings\n")
    assert log.counts.joined == 0
    assert log.counts.lost == 2


def test_the_end_of_another_message_does_not_stick_to_a_host():
    log = read(
        f"{CHANNEL}n1:1:11 [0] NCCL INFO Connected aln1:2:12 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/IPC\n"
    )
    assert {seen.host for seen in log.ranks} == {"n1"}


def test_carriage_returns_of_a_progress_bar_do_not_shift_line_numbers():
    log = read(f"bar 1%\rbar 2%\rbar 3%\n{CHANNEL}")
    assert log.connections[0].where == "a.log:2"


def test_line_ends_of_windows_and_utf_16():
    from commbench.results.nccl_log import read_logs

    data = CHANNEL.replace("\n", "\r\n").encode("utf-16")
    assert len(read_logs([("w.log", data)]).connections) == 1


@pytest.mark.parametrize("cut", range(300, len(modern()), 397))
def test_a_log_that_is_cut_anywhere_says_nothing_that_the_whole_does_not(cut):
    whole, part = read(modern()), read(modern()[:cut])
    known = {(one.source, one.target, one.channel, one.transport, one.end) for one in whole.connections}
    assert {(one.source, one.target, one.channel, one.transport, one.end) for one in part.connections} <= known
    assert {(seen.name, seen.value) for seen in part.settings} <= {(seen.name, seen.value) for seen in whole.settings}
