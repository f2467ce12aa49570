"""What else changed, in which order."""

from commbench.analysis.environment import NOT_SET, list_differences
from commbench.results.schema import Host
from tests.factories import make_group_record, make_record


def names(base: dict[str, object], new: dict[str, object]) -> list[str]:
    return [found.name for found in list_differences([make_record(**base)], [make_record(**new)])]


def test_nothing_changed() -> None:
    assert names({"seed": 1, "created_utc": "2026-01-01T00:00:00+00:00"}, {}) == []


def test_only_nccl_algo_changed() -> None:
    (found,) = list_differences([make_record()], [make_record(environment={"NCCL_ALGO": "Tree"})])
    assert (found.name, found.base, found.new, found.suspicion) == ("NCCL_ALGO", NOT_SET, "Tree", 100)


def test_the_most_suspicious_comes_first() -> None:
    base = {"versions": {"python": "3.11", "nccl": "2.21", "torch": "2.8", "commbench": "1"}}
    new = {
        "versions": {"python": "3.12", "nccl": "2.22", "torch": "2.9", "commbench": "1", "nvidia driver": "580"},
        "environment": {"NCCL_DEBUG": "INFO", "NCCL_PROTO": "LL", "MASTER_ADDR": "n1"},
        "hosts": (Host("node2", "a CPU", 2, "6.2", interface="eth1"),),
        "groups": (make_group_record(link_class="net"),),
        "launcher": "slurm",
    }
    assert names(base, new) == [
        "NCCL_PROTO", "nccl", "link of world, 2 ranks", "nvidia driver", "interface", "hosts", "kernel", "torch",
        "binding", "launcher", "python", "NCCL_DEBUG", "MASTER_ADDR",
    ]  # fmt: skip


def test_a_nominal_rate_that_changed_is_told() -> None:
    rates = [make_record(groups=(make_group_record(bytes_per_second=rate),)) for rate in (25e9, 12.5e9)]
    (found,) = list_differences(rates[:1], rates[1:])
    assert (found.base, found.new) == ("loopback 25 GB/s", "loopback 12.5 GB/s")


def test_values_that_differ_within_a_side_are_all_named() -> None:
    base = [make_record(environment={"NCCL_ALGO": "Ring"}), make_record()]
    (found,) = list_differences(base, [make_record()])
    assert found.base == "Ring | not set"


def test_many_values_are_counted() -> None:
    base = [make_record(environment={"NCCL_ALGO": str(number)}) for number in range(10)]
    (found,) = list_differences(base, [make_record()])
    assert found.base.endswith("| and 4 more")
