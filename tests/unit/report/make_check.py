"""Results of checks for tests."""

from commbench.checks.result import CheckedNode, CheckResult, Placed, sort_worst_first
from commbench.results.schema import Finding

MEMLOCK = Finding(
    "HOST-MEMLOCK", "memlock", "fail", "64 KiB", "unlimited", "getrlimit(RLIMIT_MEMLOCK)", "ulimit -l unlimited"
)
DEBUG = Finding("ENV-DEBUG", "NCCL_DEBUG", "warn", "TRACE", "WARN", "the environment", "unset NCCL_DEBUG")
SWAP = Finding("HOST-SWAP", "swap", "ok", "none", "", "/proc/swaps")
NO_GPU = Finding("GPU-ECC", "ECC", "skip", "there is no GPU")
NO_NIC = Finding("NIC-STATE", "ports", "skip", "there is no RDMA device")
FOUR_NODES = tuple(CheckedNode(f"n{node + 1}", (2 * node, 2 * node + 1)) for node in range(4))


def make_result(*findings: Finding | Placed, nodes: tuple[CheckedNode, ...] = (CheckedNode("n1"),)) -> CheckResult:
    """A result with these findings, worst first, of one node without a launcher unless `nodes` are given."""
    placed = [found if isinstance(found, Placed) else Placed(found) for found in findings]
    return CheckResult("/", "2026-03-04T05:06:07+00:00", nodes, sort_worst_first(placed))
