"""Every other format: what its file says, in our words and units, and what it does not say."""

import json
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commbench.errors import CommbenchError, UsageError
from commbench.results.importers import FORMATS, recognise
from commbench.results.importers.records import Source
from tests.unit.results.importers.make import SIZES, nccl_json, read, read_one, rules, seconds_of, statuses
from tests.unit.results.importers.samples import (
    AIC_CSV,
    GLOO,
    IMB,
    IPERF3,
    NVBANDWIDTH,
    OSU,
    PARAM,
    PERFTEST,
    PERFTEST_JSON,
    PERFTEST_LATENCY,
    RCCL_JSON,
    SAMPLES,
    aic_parquet,
    rccl_csv,
)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_is_recognised(name):
    format_name, data = SAMPLES[name]
    assert recognise(Source("results", data)) == format_name
    assert any(table.rows for table in read(data, "results"))


def test_every_format_has_a_sample():
    assert {format_name for format_name, _ in SAMPLES.values()} == set(FORMATS)


def test_as_overrides_and_an_unknown_one_is_a_usage_error():
    with pytest.raises(CommbenchError, match="was read as osu"):
        read(PERFTEST, as_format="osu")
    with pytest.raises(UsageError, match="unknown format 'ozu': did you mean osu"):
        read(OSU, as_format="ozu")


# -- nccl-tests JSON ---------------------------------------------------------------------------------------------------


def test_nccl_json():
    table = read_one(nccl_json())
    assert (table.collective, table.ranks, table.nodes, table.outcome) == ("all_reduce", 4, 2, "complete")
    assert statuses(table) == ["ok"] * 10
    assert [row.nbytes for row in table.rows[::2]] == list(SIZES)
    assert {row.root for row in table.rows} == {-1}
    assert "hunter2" not in repr(table)


def test_nccl_json_keeps_raw_iterations():
    document = json.loads(nccl_json())
    for result in document["results"]:
        result["out_of_place_per_iter"] = {"times_us": [10.0, 12.0, 11.0], "min_us": 10.0, "max_us": 12.0}
    table = read_one(json.dumps(document))
    assert table.rows[0].samples == pytest.approx((1e-5, 1.2e-5, 1.1e-5))
    assert table.rows[1].samples == ()
    assert "CUDA events" in table.time_means


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"out_of_bounds": {"count": 2, "okay": "false"}}, "failed"),
        ({"errors": ["common.cu:12 unhandled system error"]}, "failed"),
        ({"average_bus_bandwidth": {"bandwidth": 1.0, "okay": "false"}}, "failed"),
    ],
)
def test_nccl_json_of_a_failed_run(change, outcome):
    assert read_one(nccl_json(**change)).outcome == outcome


def test_nccl_json_that_the_writer_did_not_finish():
    whole = nccl_json()
    table = read_one(whole[: whole.index("268435456") + 40])
    assert table.outcome == "incomplete"
    assert [row.nbytes for row in table.rows[::2]] == list(SIZES[:4])
    assert "no-footer" in rules(table)


def test_nccl_json_with_nan_null_and_wrong_elements():
    document = json.loads(nccl_json())
    document["results"][0]["out_of_place"] = {"time": "nan", "alg_bw": "nan", "bus_bw": "nan", "nwrong": None}
    document["results"][1]["in_place"]["nwrong"] = 7.0
    table = read_one(json.dumps(document))
    assert statuses(table)[:4] == ["incomplete", "ok", "ok", "wrong"]
    assert table.rows[3].wrong == 7


# -- rccl-tests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shifted", [True, False], ids=["MPI build, header one short", "other build"])
def test_rccl_csv(shifted):
    table = read_one(rccl_csv(shifted))
    assert (table.tool, table.collective, table.ranks) == ("rccl-tests", "all_reduce", 8)
    assert statuses(table) == ["ok"] * 10
    assert [row.in_place for row in table.rows] == [False, True] * 5
    assert [row.nbytes for row in table.rows[::2]] == list(SIZES)
    assert {(row.dtype, row.redop, row.wrong) for row in table.rows} == {("float32", "sum", 0)}


def test_rccl_json():
    table = read_one(RCCL_JSON)
    assert (table.tool, table.collective, table.ranks) == ("rccl-tests", "all_reduce", 8)
    assert statuses(table) == ["ok"] * 10


# -- CSV that people make ----------------------------------------------------------------------------------------------


def halves(size: int, factor: float) -> list[str]:
    algbw = size / seconds_of(size) / 1e9
    return [f"{seconds_of(size) * 1e6:.2f}", f"{algbw:.2f}", f"{algbw * factor:.2f}"]


def test_csv_with_units_in_its_names_and_one_body():
    lines = ["size_bytes,time_us,algbw_GBs,busbw_GBs", "0,0.42,0.00,0.00"]
    lines += [",".join([str(size), *halves(size, 0.75)]) for size in SIZES]
    table = read_one("\n".join(lines))
    assert (table.collective, table.ranks) == ("unknown", 4)
    assert statuses(table) == ["skipped"] + ["ok"] * 5
    assert {"collective-unknown", "not-checked"} <= rules(table)


def test_csv_with_every_name_twice():
    lines = ["size,count,type,redop,root,time,algbw,busbw,#wrong,time,algbw,busbw,#wrong"]
    for size in SIZES:
        wrong = "12" if size == SIZES[3] else "0"
        lines.append(
            ",".join([str(size), str(size // 4), "float,sum,-1", *halves(size, 1.75), "0", *halves(size, 1.75), wrong])
        )
    table = read_one("\n".join(lines))
    assert (table.collective, table.ranks) == ("all_reduce", 8)
    assert [row.status for row in table.rows if row.in_place] == ["ok"] * 3 + ["wrong", "ok"]


def test_csv_without_a_header_is_understood_by_its_numbers():
    lines = [",".join(["runs/a.txt", str(size), *halves(size, 1.875), *halves(size, 1.875), "tree"]) for size in SIZES]
    table = read_one("\n".join(lines))
    assert table.ranks == 16
    assert [row.in_place for row in table.rows] == [False, True] * 5
    assert {row.variant for row in table.rows} == {"tree"}


def test_csv_of_summaries_says_what_it_lacks():
    with pytest.raises(CommbenchError, match="have no size with a time or a bandwidth"):
        read('file,test,nodes,avg_busbw_GBs\na.log,alltoall_perf,"n[1,2]",13.4\n')


def test_csv_lines_that_are_no_rows_are_lost_and_said():
    lines = ["size,time,algbw,busbw", *(",".join([str(size), *halves(size, 1.0)]) for size in SIZES), "total,1,2,3"]
    table = read_one("\n".join(lines))
    assert [lost.line for lost in table.lost] == [7]


# -- OSU ---------------------------------------------------------------------------------------------------------------


def test_osu():
    collective, rate = read(OSU, ranks=16)
    assert (collective.collective, collective.ranks, collective.mode) == ("all_reduce", 16, "latency")
    assert (collective.backend, collective.version) == ("mpi-cuda", "7.4")
    assert [row.nbytes for row in collective.rows] == [4, 1 << 20]
    assert collective.rows[1].seconds.value == pytest.approx(431.7e-6)  # the slowest rank's, as ours are
    assert {row.dtype for row in collective.rows} == {"float32"}
    assert (rate.collective, rate.ranks, rate.mode) == ("point_to_point", 2, "throughput")
    assert rate.rows[1].seconds.value == pytest.approx(4194304 / 23982.18e6)
    assert {row.wrong for row in rate.rows} == {0}
    assert "point-to-point" in rules(rate)


def osu(title: str, *rows: str, header: str = "# Size       Avg Latency(us)") -> str:
    return "\n".join(["", f"# OSU MPI {title} Test v5.3", header, *rows, ""])


def test_osu_does_not_say_how_many_ranks():
    table = read_one(osu("Allreduce Latency", "1024    12.5"))
    assert (table.ranks, table.rows[0].nbytes) == (None, 1024)
    assert "ranks-unknown" in rules(table)


@pytest.mark.parametrize("title", ["Allgather", "All-to-All Personalized Exchange", "Alltoall", "Gather", "Scatter"])
def test_osu_sizes_of_one_block_need_the_ranks(title):
    text = osu(f"{title} Latency", "1024    12.5")
    with pytest.raises(CommbenchError, match="give --ranks N"):
        read(text)
    assert read_one(text, ranks=8).rows[0].nbytes == 8192


def test_osu_takes_the_ranks_of_the_command_above():
    assert read_one("$ mpirun -np 4 ./osu_allgather" + osu("Allgather Latency", "1024    12.5")).rows[0].nbytes == 4096


def test_osu_counts_both_directions_and_all_pairs():
    both = read_one(osu("Bi-Directional Bandwidth", "1048576  2000.00", header="# Size      Bandwidth (MB/s)"))
    assert (both.collective, both.rows[0].algbw.value) == ("send_recv", 1e9)
    header = "# [ pairs: 4 ] [ window size: 64 ]\n# Size                  MB/s        Messages/s"
    pairs = read_one(osu("Multiple Bandwidth / Message Rate", "1048576  4000.00  3814.70", header=header))
    assert (pairs.world_size, pairs.concurrency, pairs.rows[0].algbw.value) == (8, "together", 1e9)


def test_osu_validation_that_failed():
    table = read_one(osu("Bandwidth", "1  0.95  Fail", header="# Size      Bandwidth (MB/s)        Validation"))
    assert statuses(table) == ["wrong"]


def test_osu_title_twice_is_one_table_and_a_torn_row_is_lost():
    text = osu("Latency", header="# OSU MPI Latency Test v5.3\n# Size          Latency (us)") + "1     1.25\n2\n"
    table = read_one(text)
    assert len(table.rows) == 1
    assert [lost.reason for lost in table.lost] == ["the row is cut off"]


def test_osu_barrier_has_no_size():
    table = read_one(osu("Barrier Latency", "   12.34", header="# Avg Latency(us)"))
    assert (table.collective, table.rows[0].nbytes) == ("barrier", 0)
    assert table.rows[0].seconds.value == pytest.approx(12.34e-6)


# -- IMB ---------------------------------------------------------------------------------------------------------------


def test_imb():
    reduce, ring, gather = read(IMB)
    assert (reduce.collective, reduce.ranks, reduce.version) == ("all_reduce", 8, "2021.3")
    assert [row.nbytes for row in reduce.rows] == [0, 1024, 4194304]
    assert reduce.rows[2].seconds.value == pytest.approx(1304.2e-6)
    assert (ring.collective, ring.ranks, statuses(ring)) == ("send_recv", 4, ["ok", "ok"])
    assert (gather.collective, gather.rows[0].nbytes) == ("all_gather", 4096)
    assert (statuses(gather), gather.outcome) == (["ok", "failed"], "failed")


def test_imb_row_that_contradicts_itself():
    table = read(IMB.replace("20971.52", "12345.67"))[1]
    assert statuses(table) == ["ok", "suspect"]


# -- perftest ----------------------------------------------------------------------------------------------------------


def test_perftest_mib_is_two_to_the_twenty():
    table = read_one(PERFTEST)
    assert (table.collective, table.ranks, table.mode) == ("point_to_point", 2, "throughput")
    assert [row.algbw.value for row in table.rows] == [10000 * 2**20, 11000 * 2**20]
    assert statuses(table) == ["ok", "ok"]
    older = read_one(PERFTEST.replace("MiB/sec", "MB/sec"))
    assert [row.algbw for row in older.rows] == [row.algbw for row in table.rows]


def test_perftest_in_gigabits_contradicts_a_message_rate_of_other_bytes():
    assert statuses(read_one(PERFTEST.replace("MiB/sec", "Gb/sec"))) == ["suspect", "suspect"]


def test_perftest_latencies():
    table = read_one(PERFTEST_LATENCY)
    row = table.rows[1]
    assert (table.mode, row.nbytes, row.spread.samples) == ("latency", 4096, 1000)
    assert row.seconds.value == pytest.approx(2.2e-6)
    assert (row.spread.minimum, row.spread.p99, row.spread.maximum) == pytest.approx((2.1e-6, 2.4e-6, 9.5e-6))


def test_perftest_client_and_server_of_one_test_count_once():
    other = (
        PERFTEST.replace("local address", "x")
        .replace("remote address", "local address")
        .replace("x:", "remote address:")
    )
    table = read_one(PERFTEST + other)
    assert len(table.rows) == 2
    assert "both-ends" in rules(table)
    assert len(read(PERFTEST + PERFTEST.replace("0x025d", "0x9999"))) == 2


def test_perftest_both_directions():
    table = read_one(PERFTEST.replace("RDMA_Write BW", "RDMA_Write Bidirectional BW"))
    assert (table.collective, table.rows[0].algbw.value) == ("send_recv", 5000 * 2**20)


def test_perftest_json_tells_its_unit_by_the_message_rate():
    table = read_one(PERFTEST_JSON)
    assert table.rows[0].algbw.value == pytest.approx(92.39908e9 / 8)
    assert "last-size-only" in rules(table)
    document = json.loads(PERFTEST_JSON)
    document["results"]["MsgRate"] = 1.0
    with pytest.raises(CommbenchError, match="its unit cannot be told"):
        read(json.dumps(document))


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_nvbandwidth():
    passed, waived, error = read(NVBANDWIDTH)
    assert [(row.algbw.value, row.nbytes, row.seconds) for row in passed.rows] == [
        (394.12e9, None, None),
        (395.3e9, None, None),
    ]
    assert (passed.collective, passed.version) == ("point_to_point", "v0.8")
    assert {"point-to-point", "size-unknown"} <= rules(passed)
    assert (waived.rows, waived.outcome) == ((), "complete")
    assert (statuses(error), error.outcome) == (["failed"], "failed")


def test_gloo_calls_gib_gb():
    table = read_one(GLOO)
    assert (table.collective, table.ranks, table.mode) == ("all_reduce", 4, "latency")
    assert statuses(table) == ["ok", "ok"]
    row = table.rows[1]
    assert (row.nbytes, row.seconds.value, row.spread.maximum, row.spread.samples) == (20_000_000, 0.01, 0.013, 200)
    assert {row.variant for row in table.rows} == {"ring_chunked"}
    assert "gib-labelled-gb" in rules(table)


def test_gloo_without_a_size_column():
    head = "   elements   min (us)   p50 (us)   p99 (us)   max (us)   avg (GB/s)    samples"
    text = "Algorithm:   broadcast_one_to_all\nOptions:     processes=2, inputs=1\n\n" + head
    table = read_one(f"{text}\n   1000000   900   1000   1200   1300   3.725   200\n")
    assert (table.collective, table.rows[0].nbytes, table.rows[0].dtype) == ("broadcast", 4_000_000, "float32")


def test_param():
    table = read_one(PARAM)
    assert (table.collective, table.ranks) == ("all_reduce", 8)
    assert statuses(table) == ["ok", "ok"]
    assert table.rows[0].spread.p95 == pytest.approx(110e-6)


def test_iperf3():
    table = read_one(IPERF3)
    (row,) = table.rows
    assert (table.collective, table.ranks, table.nodes, table.version) == ("point_to_point", 2, 2, "3.16")
    assert (row.nbytes, row.seconds.value, row.variant) == (12_500_000_000, 10.0, "4 streams")


def test_iperf3_that_failed():
    table = read_one(json.dumps({"start": {}, "error": "unable to connect to server: Connection refused"}))
    assert (statuses(table), table.outcome) == (["failed"], "failed")
    assert "Connection refused" in table.rows[0].reason


@pytest.mark.parametrize("data", [AIC_CSV.encode(), aic_parquet()], ids=["CSV", "Parquet"])
def test_aiconfigurator_counts_elements_and_milliseconds(data):
    tables = read(data)
    assert [(table.collective, table.ranks) for table in tables] == [
        ("all_reduce", 2), ("all_reduce", 4), ("all_to_all", 2), ("all_to_all", 4),
    ]  # fmt: skip
    halves_rows = [row for row in tables[0].rows if row.dtype == "float16"]
    assert [row.nbytes for row in halves_rows] == [512, 131072, 1 << 21]
    assert halves_rows[0].seconds.value == pytest.approx((0.005 + 256e-8) * 1e-3)
    assert tables[0].versions == (("nccl", "2.27.3"),)
    assert tables[0].hosts[0].devices == ("NVIDIA B200",)


def test_parquet_without_the_columns():
    file = BytesIO()
    pq.write_table(pa.table({"x": [1]}), file)
    with pytest.raises(CommbenchError, match="without the columns op_name"):
        read(file.getvalue())
    with pytest.raises(CommbenchError, match="does not read as Parquet"):
        read(file.getvalue()[:-20])


def test_csv_names_the_nodes_in_a_path():
    lines = [",".join([f"jobs/2_nodes/{size}.txt", str(size), *halves(size, 1.875)]) for size in SIZES]
    assert read_one("\n".join(lines)).nodes == 2
