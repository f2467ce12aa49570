"""Answers of NCCL's RAS, of our own making: text as of 2.24, 2.25 and of 2.26 to 2.28.3, JSON as from 2.28.7 on."""

import json
from collections.abc import Mapping, Sequence

_HEAD = """\
NCCL version 2.27.5+cuda12.9 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.00s)
=============

  Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
      #  in group  per comm  per node  per comm  in group
"""


def _status(rows: str, errors: str = "", warnings: str = "") -> str:
    return f"{_HEAD}{rows}\nErrors\n======\n\n{errors}\nWarnings\n========\n\n{warnings}"


EVEN = _status("      0         1         2         4         8         8   RUNNING      OK\n"
               "      1         2         1         4         4         8   RUNNING      OK\n")  # fmt: skip

# One rank behind, and two in another operation.
BEHIND = _status(
    "      0         1         2         4         8         8   RUNNING  MISMATCH\n"
    "      1         2         1         4         4         8   RUNNING      OK\n",
    warnings="""\
#0-0 (5a1f00c0ffee0001) MISMATCH
  Communicator ranks have different Broadcast operation counts
  6 ranks have launched up to operation 12
  2 ranks have not launched any operations
  Rank 1 -- GPU 1 managed by process 4101 on node 10.1.0.1
  Rank 6 -- GPU 2 (NVML 6) managed by process 5102 on node 10.1.0.2

  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 941
  Rank 3 has launched up to operation 940 -- GPU 3 managed by process 4103 on node 10.1.0.1

""",
)

# A process that is stopped, and a rank that has not launched anything.
STOPPED = _status(
    "      0         1         2       3-4         8         7   RUNNING  INCOMPLETE,MISMATCH\n",
    errors="""\
INCOMPLETE
  Missing communicator data from 1 job process
  Process 5101 on node 10.1.0.2 managing GPU 1

#0-0 (5a1f00c0ffee0001) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 5 -- GPU 1 managed by process 5101 on node 10.1.0.2

""",
    warnings="""\
TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

#0-0 (5a1f00c0ffee0001) MISMATCH
  Communicator ranks have different status
  6 ranks have status RUNNING
  Rank 2 has status INIT -- GPU 2 managed by process 4102 on node 10.1.0.1
  Communicator ranks have different AllReduce operation counts
  6 ranks have launched up to operation 77
  Rank 2 has not launched any operations -- [process information not found]

""",
)

# 2.24 counts all operations together, lists missing ranks in one line, and does not know `SET FORMAT`.
OLD = "OK\nERROR: Unknown command SET FORMAT json\n" + _status(
    "      0         1         2       3-4         8         6   RUNNING  INCOMPLETE,MISMATCH\n",
    errors="""\
DEAD
  2 job processes are considered dead (unreachable via the RAS network)
  Process 5100 on node 10.1.0.2 managing GPU 0
  Process 5101 on node 10.1.0.2 managing GPU 1

#0-0 (00000000c0ffee01) INCOMPLETE
  Missing communicator data from 2 ranks
  The missing ranks: 4,5

""",
    warnings="""\
#0-0 (00000000c0ffee01) MISMATCH
  Communicator ranks have different collective operation counts
  4 ranks have launched up to operation 6650
  2 ranks have launched up to operation 6649

""",
)

CUT_OFF = _HEAD.partition("Communicators...")[0] + "Communicators..."


def json_status(counts: Sequence[Mapping[str, int] | None], first_pid: int = 4100, unresponsive: bool = True) -> str:
    """JSON of one communicator, with the counts of each of its ranks; None: it is missing."""
    ranks = [
        {"rank": rank, "host": "10.1.0.1", "pid": first_pid + rank, "cuda_dev": rank, "nvml_dev": rank, **more}
        for rank, count in enumerate(counts)
        for more in [
            {"status": {"unresponsive": unresponsive, "considered_dead": False}}
            if count is None
            else {
                "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                           "abort_flag": False},
                "collective_counts": dict(count),
            }
        ]
    ]  # fmt: skip
    missing = [rank for rank in ranks if "collective_counts" not in rank]
    communicator = {
        "hash": "0x5a1f00c0ffee0001", "secondary_hash": "0x1:0x2", "size": len(ranks),
        "ranks_count": len(ranks) - len(missing), "missing_ranks_count": len(missing),
        "ranks": [rank for rank in ranks if rank not in missing], "missing_ranks": missing,
    }  # fmt: skip
    document = {
        "nccl_version": "2.29.2", "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
        "timestamp": "2026-01-31 12:00:00", "communicators_count": 1, "communicators": [communicator],
        "ras": {"collection_time_sec": 0.001, "timeouts_count": 0},
    }  # fmt: skip
    return json.dumps(document, indent=2) + "\n"


_COUNTS = {"Broadcast": 0, "Reduce": 0, "AllGather": 3, "ReduceScatter": 0, "AllReduce": 941}
JSON = "OK\nOK\n" + json_status([_COUNTS, _COUNTS, {**_COUNTS, "AllReduce": 940}, None])

SAMPLES = {"even": EVEN, "behind": BEHIND, "stopped": STOPPED, "old": OLD, "cut off": CUT_OFF, "json": JSON}
