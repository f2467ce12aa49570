"""Which ranks may share a GPU."""

import os

import pytest

from commbench.engines.gpus import allow_sharing, count_sharers
from commbench.errors import UsageError

NODES = ["a/1", "a/1", "b/2", "b/2"]


def test_the_same_address_on_another_node_is_another_gpu() -> None:
    assert count_sharers(NODES, ["x", "y", "x", "y"], 1) == [1, 1, 1, 1]


def test_sharers_are_counted_as_far_as_they_may_share() -> None:
    assert count_sharers(NODES, ["x", "x", "x", "y"], 2) == [2, 2, 1, 1]


def test_ranks_without_a_known_gpu_share_none() -> None:
    assert count_sharers(NODES, ["", "", "", ""], 1) == [1, 1, 1, 1]


def test_more_than_may_are_named() -> None:
    with pytest.raises(UsageError, match="ranks 2-3 would share GPU x of b, 1 may"):
        count_sharers(NODES, ["x", "y", "x", "x"], 1)


def test_sharing_is_asked_of_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_MULTI_RANK_GPU_ENABLE", "0")
    allow_sharing(1, (2, 18, 1))
    assert os.environ["NCCL_MULTI_RANK_GPU_ENABLE"] == "0"
    allow_sharing(2, (2, 30, 3))
    assert os.environ["NCCL_MULTI_RANK_GPU_ENABLE"] == "1"
