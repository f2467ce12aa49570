"""nccl-tests' and rccl-tests' text: every layout, and every way in which it arrives damaged."""

import pytest

from commbench.errors import CommbenchError
from commbench.results.importers.records import ForeignTable
from tests.unit.results.importers.make import (
    HEADER,
    SIZES,
    average,
    body,
    devices,
    factor_of,
    nccl,
    read,
    read_one,
    row,
    rules,
    seconds_of,
    statuses,
)

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send_recv")


def known(table: ForeignTable) -> tuple[object, ...]:
    return table.collective, table.ranks, table.nodes, table.outcome


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks", [2, 3, 16])
def test_a_whole_run_says_everything(collective, ranks):
    sizes = [size * 3 for size in SIZES]
    table = read_one(nccl(collective, ranks, sizes))
    assert known(table) == (collective, ranks, -(-ranks // 8), "complete")
    assert (table.version, table.versions) == ("2.18.2", (("nccl", "2.30.7"),))
    assert [host.name for host in table.hosts] == [f"node{node:02d}" for node in range(-(-ranks // 8))]
    assert table.hosts[0].devices[0] == "NVIDIA H100 80GB HBM3 [0000:00:00]"
    assert statuses(table) == ["ok"] * 10
    assert [row.in_place for row in table.rows] == [False, True] * 5
    assert [row.nbytes for row in table.rows[::2]] == sizes
    assert table.rows[-1].seconds.value == pytest.approx(seconds_of(sizes[-1]), rel=1e-5)
    assert {row.dtype for row in table.rows} == {"float32"}
    assert "ranks-contradict-devices" not in rules(table)


@pytest.mark.parametrize("ranks", [2, 4, 16, 48])
def test_ranks_come_from_the_factor_where_no_device_is_listed(ranks):
    table = read_one("\n".join([HEADER, *(row("all_reduce", ranks, nbytes) for nbytes in SIZES)]))
    assert (table.collective, table.ranks, table.nodes) == ("all_reduce", ranks, None)


def test_all_gather_and_all_to_all_look_alike_and_are_not_guessed():
    rows = [row("all_gather", 8, nbytes, wrong="N/A") for nbytes in SIZES]
    table = read_one("\n".join([HEADER, *rows]))
    assert (table.collective, table.ranks) == ("unknown", 8)
    (finding,) = [finding for finding in table.findings if finding.rule == "collective-unknown"]
    assert finding.verdict == "skip"
    assert "all_gather or all_to_all" in finding.observed
    assert read_one("\n".join([HEADER, *rows]), collective="all_gather").collective == "all_gather"


def test_what_is_never_checked_in_place_tells_all_to_all():
    factor = factor_of("all_to_all", 8)
    rows = [f"{size} {size // 32} float none -1 {body(size, factor)} {body(size, factor, 'N/A')}" for size in SIZES]
    assert read_one("\n".join([HEADER, *rows])).collective == "all_to_all"


def test_the_name_of_the_file_is_the_last_witness_and_is_said():
    text = "\n".join([HEADER, *(row("all_gather", 8, nbytes, wrong="N/A") for nbytes in SIZES)])
    table = read_one(text, "nccl_all_gather-h100.log")
    assert table.collective == "all_gather"
    assert "collective-named-by-file" in rules(table)


def test_a_name_that_the_numbers_contradict_is_not_believed():
    table = read_one("\n".join([HEADER, *(row("all_reduce", 8, nbytes) for nbytes in SIZES)]), "all_gather.log")
    assert (table.collective, table.ranks) == ("all_reduce", 8)
    assert "collective-contradicts" in rules(table)


def test_the_command_above_names_the_collective():
    text = "$ mpirun -np 8 ./build/all_gather_perf -b 1K -e 1G\n" + nccl("all_gather", 8, named=False)
    table = read_one(text)
    assert table.collective == "all_gather"
    assert "collective-named-by-file" not in rules(table)


# -- layouts of other versions -----------------------------------------------------------------------------------------

OLD_BODIES = "   time   algbw   busbw  error     time   algbw   busbw  error"
OLD_HEADS = {
    "all_reduce": f"#       size         count    type   redop  {OLD_BODIES}",
    "all_gather": f"#       size         count    type  {OLD_BODIES}",
    "all_to_all": f"#       size         count    type   redop  {OLD_BODIES}",
    "broadcast": f"#       size         count    type    root  {OLD_BODIES}",
    "reduce": f"#       size         count    type   redop    root  {OLD_BODIES}",
}
OLD_MIDDLES = {"all_reduce": "sum", "all_gather": "", "all_to_all": "", "broadcast": "0", "reduce": "sum 0"}


@pytest.mark.parametrize("collective", OLD_HEADS)
def test_layout_of_2_0_to_2_11_also_with_a_blank_redop(collective):
    factor, per_rank = factor_of(collective, 8), collective in ("all_gather", "all_to_all")
    rows = [
        f"{size} {size // (32 if per_rank else 4)} float {OLD_MIDDLES[collective]} {body(size, factor, '5e-07')} "
        f"{body(size, factor, '2e-07')}"
        for size in SIZES
    ]
    table = read_one("\n".join([*devices(8), OLD_HEADS[collective], *rows, "# Avg bus bandwidth : 9"]))
    assert (table.collective, table.ranks, table.nodes) == (collective, 8, 1)
    assert statuses(table) == ["ok"] * 10
    assert {row.wrong for row in table.rows} == {None}  # a rounding error is no count of wrong elements


def test_layout_of_1_0_prints_milliseconds():
    head = "#                                                 out-of-place                    in-place\n"
    head += "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res"
    factor = factor_of("all_reduce", 4)

    def half(size: int) -> str:
        algbw = size / seconds_of(size) / 1e9
        return f"{seconds_of(size) * 1e3:.3f} {algbw:.2f} {algbw * factor:.2f} 0e+00"

    rows = [f"{size} {size // 4} float sum {half(size)} {half(size)}" for size in (1 << 24, 1 << 26, 1 << 28)]
    table = read_one("\n".join([head, *rows]))
    assert (table.collective, table.ranks) == ("all_reduce", 4)
    assert statuses(table) == ["ok"] * 6
    assert table.rows[-1].seconds.value == pytest.approx(seconds_of(1 << 28), rel=1e-2)


def test_per_iteration_columns_and_a_timestamp():
    names = "time algbw busbw #wrong i_min i_max i_p99 i_cv%"
    head = f"# size count type redop root {names} {names}"
    extra = "19.10 31.20 30.90 4.5"
    rows = [
        f"{size} {size // 4} float sum -1 {body(size, 1.75)} {extra} {body(size, 1.75)} {extra} 2025-10-28 12:34:56"
        for size in SIZES
    ]
    for text in ("\n".join([head, *rows]), "\n".join(rows)):
        table = read_one(text)
        assert (table.collective, table.ranks) == ("all_reduce", 8)
        assert statuses(table) == ["ok"] * 10
        spread = table.rows[0].spread
        assert (spread.minimum, spread.maximum, spread.p99) == pytest.approx((19.1e-6, 31.2e-6, 30.9e-6))


def test_algorithm_columns_of_rccl():
    head = f"# size count type redop root {'time algbw busbw #wrong algo proto nchannels ' * 2}"
    rows = [
        f"{size} {size // 4} float sum -1 {body(size, 1.75)} RING LL128 56 {body(size, 1.75)} N/A N/A N/A"
        for size in SIZES
    ]
    table = read_one("\n".join(["rccl-tests: Version develop:abc123", head, *rows, "# Avg bus bandwidth : 9"]))
    assert (table.tool, table.version, table.backend) == ("rccl-tests", "develop:abc123", "rccl")
    assert {row.variant for row in table.rows if not row.in_place} == {"algo=RING proto=LL128 nchannels=56"}
    assert {row.variant for row in table.rows if row.in_place} == {""}


def test_out_of_place_only():
    head = "# size count type redop time algbw busbw #wrong"
    rows = [f"{size} {size // 4} float sum {body(size, 1.5)}" for size in SIZES]
    table = read_one("\n".join([head, *rows]))
    assert (table.collective, table.ranks) == ("all_reduce", 4)
    assert [row.in_place for row in table.rows] == [False] * 5


@pytest.mark.parametrize(
    ("cell", "us"), [("1.2e+06", 1.2e6), ("2e+07", 2e7), ("1234567", 1234567.0)], ids=lambda value: str(value)
)
def test_times_in_scientific_notation(cell, us):
    nbytes = 1 << 34
    algbw = nbytes / us / 1e3
    half = f"{cell} {algbw:.2f} {algbw * 1.5:.2f} 0"
    table = read_one(f"{HEADER}\n{nbytes} {nbytes // 4} float sum -1 {half} {half}\n")
    assert statuses(table) == ["ok", "ok"]
    assert table.rows[0].seconds.value == pytest.approx(us * 1e-6)


def test_the_convention_before_june_2020_is_recognised_and_undone():
    scale = 7 / 8
    rows = [
        f"{size} {size // 32} float {body(size, 1.0, '0e+00', scale)} {body(size, 1.0, '0e+00', scale)}"
        for size in SIZES
    ]
    table = read_one("\n".join([OLD_HEADS["all_gather"], *rows]))
    assert (table.collective, table.ranks) == ("all_gather", 8)
    assert "old-algbw" in rules(table)
    assert statuses(table) == ["ok"] * 10


def test_gib_labelled_gb_is_recognised():
    rows = []
    for size in SIZES:
        half = body(size, 1.75, scale=1e9 / (1 << 30))
        rows.append(f"{size} {size // 4} float sum -1 {half} {half}")
    table = read_one("\n".join([HEADER, *rows]))
    assert "gib-labelled-gb" in rules(table)
    assert statuses(table) == ["ok"] * 10


# -- damage ------------------------------------------------------------------------------------------------------------

PREFIXES = {
    "srun --label": lambda line: f" 0: {line}",
    "mpirun --tag-output": lambda line: f"[1,0]<stdout>:{line}",
    "mpich": lambda line: f"[0] {line}",
    "iso time": lambda line: f"2026-01-02T03:04:05.678901Z {line}",
    "log time": lambda line: f"[2026-01-02 03:04:05,678] {line}",
    "clock": lambda line: f"03:04:05 {line}",
    "both": lambda line: f"2026-01-02 03:04:05 0: {line}",
    "pod": lambda line: f"[worker-0] {line}",
    "quotation": lambda line: f"> {line}",
    "indent": lambda line: f"    {line}",
    "colours": lambda line: f"\x1b[32m{line}\x1b[0m",
    "carriage return": lambda line: f"{line}\r",
    "instrumented": lambda line: f"run(), common.cu:967, {line}" if line.startswith("#") else line,
}


@pytest.mark.parametrize("name", PREFIXES)
def test_what_launchers_and_loggers_put_before_a_line(name):
    text = "\n".join(PREFIXES[name](line) for line in nccl("all_gather", 8).splitlines())
    table = read_one(text)
    assert known(table) == ("all_gather", 8, 1, "complete")
    assert statuses(table) == ["ok"] * 10


def test_tags_in_the_middle_of_a_line_and_standard_error_are_taken_out():
    lines = nccl().splitlines()
    torn = [line.replace("float     sum", "float[1,0]<stdout>:     sum") for line in lines]
    table = read_one("\n".join(["[1,3]<stderr>:some noise", *torn]))
    assert statuses(table) == ["ok"] * 10


def test_a_markdown_fence_and_a_pipe_table():
    fenced = "Some prose.\n\n```text\n" + nccl() + "```\nMore prose.\n"
    assert known(read_one(fenced)) == ("all_reduce", 16, 2, "complete")
    piped = [" | ".join(row("all_reduce", 8, nbytes, dtype="half").split()) for nbytes in SIZES]
    lines = [HEADER.replace("#  ", "\\#  "), piped[0], "-- | -- | --", *piped[1:]]
    table = read_one("\n".join(lines))
    assert len(table.rows) == 10
    assert {row.dtype for row in table.rows} == {"float16"}


@pytest.mark.parametrize("at", [1, 2], ids=["before the first body", "between the bodies"])
def test_a_row_torn_by_a_log_message_is_put_together(at):
    whole = row("all_reduce", 16, SIZES[2])
    cells = whole.split()
    left, right = " ".join(cells[: 5 + 4 * (at - 1)]), " ".join(cells[5 + 4 * (at - 1) :])
    message = "node00:4000:4010 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"
    rows = [row("all_reduce", 16, nbytes) for nbytes in SIZES]
    rows[2] = f"{left}{message}\nnode01:4008:4018 [0] NCCL INFO Connected all rings\n{right}"
    table = read_one(nccl(rows=rows))
    assert statuses(table) == ["ok"] * 10
    assert "joined-rows" in rules(table)
    assert table.lost == ()


def test_pieces_that_do_not_belong_together_are_not_joined():
    rows = [row("all_reduce", 16, nbytes) for nbytes in SIZES]
    first, last = rows[3].split()[:5], rows[4].split()[5:]  # of 16 MiB and of 256 MiB
    rows[3:] = [" ".join(first), " ".join(last)]
    table = read_one(nccl(rows=rows))
    assert statuses(table) == ["ok"] * 6 + ["incomplete"] * 2
    assert [lost.line for lost in table.lost] == [nccl().splitlines().index(rows[0]) + 5]
    assert "does not complete" in table.lost[0].reason


def test_the_second_half_of_a_row_alone_is_reported_as_lost():
    rows = [row("all_reduce", 16, nbytes) for nbytes in SIZES]
    rows[1] = " ".join(rows[1].split()[5:])
    table = read_one(nccl(rows=rows))
    assert len(table.rows) == 8
    assert [lost.reason for lost in table.lost] == ["the first part of this row is not there"]
    assert "rows-missing" in rules(table)


@pytest.mark.parametrize("cells", [5, 6, 8, 9, 11, 12])
def test_a_row_cut_off_keeps_the_half_that_is_whole(cells):
    last = " ".join(row("all_reduce", 16, SIZES[4]).split()[:cells])
    table = read_one(nccl(rows=[*(row("all_reduce", 16, nbytes) for nbytes in SIZES[:4]), last], footer=False))
    assert statuses(table)[:8] == ["ok"] * 8
    assert statuses(table)[8:10] == ["ok" if cells >= 9 else "incomplete", "incomplete"]
    assert [row.seconds for row in table.rows if row.status == "incomplete"] == [None] * (1 if cells >= 9 else 2)
    assert table.outcome == "incomplete"


def test_size_0_is_kept_and_skipped():
    rows = [f"0 0 float sum -1 {body(0, 0.0)} {body(0, 0.0)}"] * 3 + [row("all_reduce", 16, nbytes) for nbytes in SIZES]
    table = read_one(nccl(rows=rows))
    assert statuses(table) == ["skipped"] * 6 + ["ok"] * 10
    assert table.ranks == 16


def test_a_row_that_contradicts_itself_is_kept_and_flagged_with_its_line():
    rows = [row("all_reduce", 16, nbytes) for nbytes in SIZES]
    rows[3] = rows[3].replace(rows[3].split()[5], "1.0", 1)
    text = nccl(rows=rows)
    line = text.splitlines().index(rows[3]) + 1
    table = read_one(text)
    assert statuses(table) == ["ok"] * 6 + ["suspect", "ok"] + ["ok"] * 2
    assert table.rows[6].reason.startswith(f"line {line}: algbw is ")


# -- several tables, several processes ---------------------------------------------------------------------------------


def test_two_tests_in_one_file():
    tables = read(nccl("all_gather", 2) + nccl("send_recv", 2))
    assert [known(table) for table in tables] == [("all_gather", 2, 1, "complete"), ("send_recv", 2, 1, "complete")]


@pytest.mark.parametrize("ending", ["devices", "header"])
def test_a_second_test_that_hung_is_incomplete_whatever_the_first_footer_says(ending):
    second = nccl("send_recv", 2, rows=[], footer=False)
    if ending == "devices":
        second = second[: second.index("#  Rank  1")]
    tables = read(nccl("all_gather", 2) + second)
    assert [table.outcome for table in tables] == ["complete", "incomplete"]
    (left,) = tables[1].rows
    assert (left.status, left.nbytes, left.seconds) == ("incomplete", SIZES[0], None)


def test_blocks_below_headings_inherit_nothing():
    def block(name: str, size: int, rows: int) -> str:
        return "\n".join(
            [f"### ALGO={name} size={size}", *[row("all_reduce", 4, size)] * rows, "# Avg bus bandwidth : 9"][
                : 1 + 2 * rows
            ]
        )

    text = "\n".join([block("Ring", SIZES[3], 1), block("Ring", SIZES[4], 1), block("Collnet", SIZES[4], 0)])
    tables = read(text)
    assert [[row.variant for row in table.rows] for table in tables] == [["ALGO=Ring"] * 2, ["ALGO=Ring"] * 2, []]
    assert "empty-block" in rules(tables[2])


def alone(size: int) -> str:
    return f"{size} {size // 4} float sum -1 {body(size, 0.0)} {body(size, 0.0)}"


def test_processes_that_were_built_without_mpi():
    config = (
        "# nThread 1 nGpus 1 minBytes 1024 maxBytes 268435456 step: 16(factor) warmup iters: 5 iters: 20 validation: 1"
    )
    device = "#  Rank  0 Group  0 Pid {} on node{} device  0 [0x08] Tesla V100"
    rows = [alone(size) for size in SIZES]
    interleaved = [line for pair in zip(rows, rows, strict=True) for line in pair]
    footer = ["# Out of bounds values : 0 OK", "# Avg bus bandwidth : 0"] * 2
    lines = ["$ mpirun -np 2 ./all_reduce_perf", config, config, device.format(1, 0), device.format(2, 1), HEADER]
    table = read_one("\n".join([*lines, *interleaved[:4], HEADER, *interleaved[4:], *footer]))
    assert (table.collective, table.ranks, table.nodes) == ("all_reduce", 1, 1)
    assert len(table.rows) == 20
    assert {"not-built-with-mpi", "several-processes"} <= rules(table)
    assert {finding.verdict for finding in table.findings if finding.rule == "not-built-with-mpi"} == {"fail"}


def test_ranks_that_contradict_the_device_list():
    text = nccl("all_reduce", 16).replace("\n".join(devices(16)), "\n".join([devices(16)[7], devices(16)[15]]))
    table = read_one(text)
    assert (table.ranks, table.nodes, table.hosts) == (16, None, ())
    assert "ranks-contradict-devices" in rules(table)


# -- failed runs -------------------------------------------------------------------------------------------------------


def test_wrong_elements():
    rows = [row("all_reduce", 16, nbytes, wrong="2528" if nbytes == SIZES[2] else "0") for nbytes in SIZES]
    text = nccl(rows=rows).replace("values : 0 OK", "values : 2 FAILED")
    table = read_one(text)
    assert statuses(table) == ["ok"] * 4 + ["wrong"] * 2 + ["ok"] * 4
    assert [row.wrong for row in table.rows] == [0] * 4 + [2528] * 2 + [0] * 4
    assert table.outcome == "failed"
    assert "out-of-bounds" in rules(table)


def test_an_asterisk_marks_an_error_above_the_threshold():
    half = body(SIZES[3], 1.75, "1e+00*")
    table = read_one(f"{OLD_HEADS['all_reduce']}\n{SIZES[3]} {SIZES[3] // 4} float sum {half} {half}")
    assert statuses(table) == ["wrong", "wrong"]


@pytest.mark.parametrize(
    "line",
    [
        "node00: Test NCCL failure common.cu:1128 'unhandled system error / '",
        " .. node00 pid 4000: Test failure common.cu:401",
        "node00: Test timeout (60s) common.cu:512",
        "mpirun noticed that process rank 1 with PID 4001 on node node00 exited on signal 11 (Segmentation fault).",
    ],
)
def test_a_failure_in_the_text(line):
    rows = [row("all_reduce", 16, nbytes) for nbytes in SIZES[:3]]
    table = read_one(nccl(rows=rows, footer=False) + line + "\n")
    assert table.outcome == "failed"
    assert statuses(table) == ["ok"] * 6 + ["failed"]
    assert (table.rows[-1].nbytes, table.rows[-1].seconds) == (SIZES[3], None)
    assert "test-failure" in rules(table)


def test_a_missing_footer():
    table = read_one(nccl(footer=False))
    assert table.outcome == "incomplete"
    assert "no-footer" in rules(table)


def test_the_average_below_the_minimum():
    table = read_one(nccl().replace(f"{average('all_reduce', 16):.4f}", f"{average('all_reduce', 16):.4f} FAILED"))
    assert table.outcome == "failed"
    assert "below-minimum" in rules(table)


@pytest.mark.parametrize("footer", ["-nan", "nan"])
def test_an_average_of_no_rows(footer):
    table = read_one(nccl(rows=[], footer=False) + f"# Avg bus bandwidth    : {footer}\n")
    assert [row.status for row in table.rows] == ["incomplete"]


def test_validation_that_was_off_is_not_right_data():
    rows = [row("all_reduce", 16, nbytes, wrong="N/A") for nbytes in SIZES]
    table = read_one(nccl(rows=rows, validation=0))
    assert {row.wrong for row in table.rows} == {None}
    assert "not-checked" in rules(read_one(nccl(rows=rows)))  # also where only the cells say it
    assert [finding.verdict for finding in table.findings if finding.rule == "not-checked"] == ["skip"]


@pytest.mark.parametrize("text", ["", " \n", "hello\n", "# Rank 0\n", "\x00\x01\x02", "size,time\n", "{}", "[1, 2]"])
def test_no_table_is_one_clear_error(text):
    with pytest.raises(CommbenchError) as error:
        read(text)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_times_of_enqueueing_are_said_to_be_that():
    assert "cpu-time" in rules(read_one(nccl(header=HEADER.replace("    time", " cputime"))))


def test_utf_16_of_a_windows_shell_is_read():
    table = read_one(nccl().encode("utf-16"))
    assert known(table) == ("all_reduce", 16, 2, "complete")


def test_a_command_below_a_footer_names_the_next_table():
    first = nccl("all_gather", 8, named=False)
    second = "$ mpirun -np 8 ./build/all_reduce_perf -b 1K -e 1G\n" + nccl("all_reduce", 8, named=False)
    tables = read("$ ./all_gather_perf\n" + first + second)
    assert [table.collective for table in tables] == ["all_gather", "all_reduce"]
    assert "collective-contradicts" not in rules(tables[0]) | rules(tables[1])
