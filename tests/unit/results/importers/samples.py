"""One small file of every format, of our own making. The fuzzers start from these."""

import json
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from tests.unit.results.importers.make import SIZES, nccl, nccl_json, seconds_of

OSU = """
# OSU MPI-CUDA Allreduce Latency Test v7.4
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                       2.75              2.50              3.10        1000
1048576               410.20            400.10            431.70         100

# OSU MPI Bandwidth Test v7.4
# Size      Bandwidth (MB/s)        Validation
1                       0.95              Pass
4194304             23982.18              Pass
"""

IMB = """#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part
# Benchmarking Allreduce
# #processes = 8
# ( 8 additional processes waiting in MPI_Barrier)
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.03         0.04         0.03
         1024         1000         4.03         4.44         4.23
      4194304           10      1200.10      1304.20      1250.00

# Benchmarking Sendrecv
# #processes = 4
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
        65536          640        10.00        10.00        10.00     13107.20
      1048576           40       100.00       100.00       100.00     20971.52

# Benchmarking Allgather
# #processes = 4
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1024         1000         4.03         4.44         4.23
         2048   time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over; use "-time X" or SECS_PER_SAMPLE
"""

PERFTEST = """---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Link type       : Ethernet
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x025d PSN 0x5cac14
 remote address: LID 0000 QPN 0x025e PSN 0xe849fe
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 1200.5 != 1251.3. CPU Frequency is not max.
 65536      5000             11000.00           10000.00\t\t   0.160000
 1048576    5000                 0.00           11000.00\t\t   0.011000
---------------------------------------------------------------------------------------
"""

PERFTEST_LATENCY = """                    RDMA_Write Latency Test
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
99% percentile[usec]   99.9% percentile[usec]
 2       1000          1.10           7.50         1.20    \t       1.25       \t0.05   \t\t1.40   \t\t6.60
 4096    1000          2.10           9.50         2.20    \t       2.25       \t0.05   \t\t2.40   \t\t8.60
"""

PERFTEST_JSON = json.dumps(
    {
        "test_info": {"test": "RDMA_Write BW Test", "Device": "mlx5_0", "Link_type": "IB"},
        "results": {
            "MsgSize": 65536,
            "n_iterations": 5000,
            "BW_peak": 92.4,
            "BW_average": 92.39908,
            "MsgRate": 0.176237,
        },
    }
)

NVBANDWIDTH = json.dumps(
    {
        "nvbandwidth": {
            "CUDA Runtime Version": 12080,
            "Driver Version": "570.86.15",
            "git_version": "v0.8",
            "testcases": [
                {
                    "name": "device_to_device_memcpy_read_ce",
                    "status": "Passed",
                    "bandwidth_matrix": [["N/A", "394.12"], ["395.30", "N/A"]],
                },
                {"name": "multinode_device_to_device", "status": "Waived"},
                {"name": "host_to_device_memcpy_ce", "status": "Error"},
            ],
        }
    }
)

GLOO = """Device:      tcp, pci=0000:00:05.0, iface=eth0, speed=10000, addr=[10.0.0.1]
Algorithm:   allreduce_ring_chunked
Options:     processes=4, inputs=1, threads=1

   size (B)   elements   min (us)   p50 (us)   p99 (us)   max (us)   bandwidth (GB/s)   iterations
        400        100         50         60         90        120              0.006         5000
   20000000    5000000       9000      10000      12000      13000              1.863          200
"""

PARAM = """
\tCOMMS-RES-all_reduce-float32              size (B)       nElementsPerRank   Latency(us):p50  p75  p95  Min  Max  \
AlgBW(GB/s)   BusBW(GB/s)
\tCOMMS-RES-all_reduce-float32               1048576              262144       100.0   101.0   110.0   90.0   120.0   \
10.486   18.350
\tCOMMS-RES-all_reduce-float32             268435456            67108864      2684.4  2690.0  2700.0  2600.0  2800.0   \
100.000  175.000
"""

IPERF3 = json.dumps(
    {
        "start": {
            "version": "iperf 3.16",
            "connected": [{"local_host": "10.0.0.1", "remote_host": "10.0.0.2"}],
            "test_start": {"protocol": "TCP", "num_streams": 4, "blksize": 131072},
        },
        "end": {"sum_received": {"bytes": 12_500_000_000, "seconds": 10.0, "bits_per_second": 1e10}},
    }
)

AIC_COLUMNS = ("framework", "version", "device", "op_name", "kernel_source", "nccl_dtype", "num_gpus", "message_size",
               "latency")  # fmt: skip
AIC_ROWS = [
    ("TRTLLM", "2.27.3", "NVIDIA B200", name, "NCCL", dtype, ranks, size, 0.005 + size * 1e-8)
    for name in ("all_reduce", "alltoall")
    for dtype in ("half", "int8")
    for ranks in (2, 4)
    for size in (256, 65536, 1 << 20)
]
AIC_CSV = "\n".join([",".join(AIC_COLUMNS), *(",".join(map(str, values)) for values in AIC_ROWS), ""])


def aic_parquet() -> bytes:
    table = pa.table({name: [values[place] for values in AIC_ROWS] for place, name in enumerate(AIC_COLUMNS)})
    file = BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def _rccl_rows(shifted: bool) -> list[list[object]]:
    rows: list[list[object]] = []
    for nbytes in SIZES:
        algbw = nbytes / seconds_of(nbytes) / 1e9
        for in_place in (0, 1):
            measured = [f"{seconds_of(nbytes) * 1e6:.2f}", f"{algbw:.2f}", f"{algbw * 1.75:.2f}", '"0"']
            ranks: list[object] = [1, 8, 8, 1] if shifted else [8]
            rows.append([0, '"AllReduce"', *ranks, nbytes, '"float"', '"sum"', in_place, *measured])
    return rows


def rccl_csv(shifted: bool = True) -> str:
    """The MPI build's header is one name short."""
    ranks = "ranks,rankspernode,gpusperrank" if shifted else "gpus"
    lines = [f"numCycle,collective,{ranks},size,type,redop,inplace,time,algbw,busbw,#wrong"]
    return "\n".join([*lines, *(",".join(map(str, row)) for row in _rccl_rows(shifted)), ""])


RCCL_JSON = json.dumps(
    [
        {
            "numCycle": 0, "name": "AllReduce", "nodes": 1, "ranks": 8, "ranksPerNode": 8, "gpusPerRank": 1,
            "size": nbytes, "type": "float", "redop": "sum", "inPlace": in_place,
            "time": round(seconds_of(nbytes) * 1e6, 2), "algBw": round(nbytes / seconds_of(nbytes) / 1e9, 2),
            "busBw": round(nbytes / seconds_of(nbytes) / 1e9 * 1.75, 2), "wrong": "0",
        }
        for nbytes in SIZES for in_place in (0, 1)
    ]
)  # fmt: skip

SAMPLES: dict[str, tuple[str, bytes]] = {
    name: (format_name, text if isinstance(text, bytes) else text.encode())
    for name, format_name, text in (
        ("nccl-tests text", "nccl-tests", nccl()),
        ("nccl-tests JSON", "nccl-tests-json", nccl_json()),
        ("rccl-tests CSV", "csv", rccl_csv()),
        ("rccl-tests JSON", "rccl-tests-json", RCCL_JSON),
        ("OSU", "osu", OSU),
        ("IMB", "imb", IMB),
        ("perftest rates", "perftest", PERFTEST),
        ("perftest latencies", "perftest", PERFTEST_LATENCY),
        ("perftest JSON", "perftest-json", PERFTEST_JSON),
        ("nvbandwidth", "nvbandwidth", NVBANDWIDTH),
        ("gloo", "gloo", GLOO),
        ("PARAM", "param", PARAM),
        ("iperf3", "iperf3", IPERF3),
        ("AIConfigurator CSV", "aiconfigurator", AIC_CSV),
        ("AIConfigurator Parquet", "aiconfigurator", aic_parquet()),
    )
}
