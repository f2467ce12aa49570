"""Planners that come from no package registry: their formulas, as they publish them, against what we predict; the exact
keys of their files; and their own code, where an environment variable names a checkout:

COMMBENCH_CALCULON_CHECKOUT, COMMBENCH_SIMUMAX_CHECKOUT, COMMBENCH_NNSCALER_CHECKOUT, COMMBENCH_ASTRA_SIM_CHECKOUT (of
astra-network-analytical, with g++ and libyaml-cpp-dev).
"""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from commbench.analysis.records import FitRecord
from commbench.plan.collectives import MAIN_COLLECTIVES
from tests.planners.bases import CALCULON_SYSTEM, SIMUMAX_SYSTEM
from tests.planners.conftest import (
    BETWEEN,
    CONSUMERS,
    INSIDE,
    NODES,
    RANKS_PER_NODE,
    SIZES,
    Consumer,
    Exporter,
    Planted,
    assert_answers,
    commbench,
)

MIB, GIB = 1 << 20, 1 << 30
TIERS = [(INSIDE, RANKS_PER_NODE, "node"), (BETWEEN, NODES, "rail")]


def checkout(name: str) -> str:
    """The folder that the environment names, or no test: real code is run where somebody has it."""
    variable = f"COMMBENCH_{name}_CHECKOUT"
    if variable not in os.environ:
        pytest.skip(f"{variable} names no checkout")
    return os.environ[variable]


def load(path: Path) -> Any:
    return json.loads(path.read_text())


class TestCalculon:
    """seconds = latency + scalar × S (1 + offset/N) / (GB/s × 1e9 × efficiency), of calculon/network.py."""

    NAMES = (("all_reduce", "all_reduce"), ("all_gather", "all_gather"), ("reduce_scatter", "reduce_scatter"),
             ("send_recv", "p2p"))  # fmt: skip

    @pytest.mark.parametrize(("tier", "link", "ranks", "layout"), [(0, *TIERS[0]), (1, *TIERS[1])])
    @pytest.mark.parametrize(("name", "its"), NAMES)
    def test_formula(
        self,
        name: str,
        its: str,
        tier: int,
        link: Planted,
        ranks: int,
        layout: str,
        exported: Exporter,
        record: FitRecord,
    ) -> None:
        network = load(exported("calculon") / "networks.json")[tier]
        scalar, offset = network["ops"][its]
        group = 2 if its == "p2p" else ranks
        answers = [
            network["latency"]
            + scalar * size * (1 + (offset or 0) / group) / (network["bandwidth"] * 1e9 * network["efficiency"])
            for size in SIZES
        ]
        # One latency for all: that of all_reduce.
        alpha = None if name == "all_reduce" else link.alpha_total("all_reduce", ranks)
        assert_answers(answers, record, link, name, ranks, layout, alpha=alpha)

    def test_exact_keys_and_nothing_else_of_the_base_changed(self, exported: Exporter, tmp_path: Path) -> None:
        """Its reader asserts both sets of keys."""
        system = load(self.system(exported, tmp_path))
        assert {key: system[key] for key in CALCULON_SYSTEM if key != "networks"} == {
            key: value for key, value in CALCULON_SYSTEM.items() if key != "networks"
        }
        for network in system["networks"]:
            assert set(network) == {
                "bandwidth",
                "efficiency",
                "size",
                "latency",
                "ops",
                "must_be_filled",
                "processor_usage",
            }
            assert set(network["ops"]) == {"p2p", "reduce_scatter", "all_gather", "all_reduce"}
            assert network["ops"]["p2p"][1] is None
            assert 0 < network["efficiency"] <= 1
        assert [network["size"] for network in system["networks"]] == [8, 16]

    @pytest.mark.checkout
    def test_its_own_code(self, exported: Exporter, planner: Consumer, tmp_path: Path, record: FitRecord) -> None:
        folder = checkout("CALCULON")
        questions = [f"{tier},all_reduce,{size},{TIERS[tier][1]}" for tier in (0, 1) for size in SIZES]
        answers = planner("calculon_runs.py", folder, self.system(exported, tmp_path), *questions)
        for tier, (link, ranks, layout) in enumerate(TIERS):
            found = answers[tier * len(SIZES) : (tier + 1) * len(SIZES)]
            assert_answers(found, record, link, "all_reduce", ranks, layout)

    @staticmethod
    def system(exported: Exporter, tmp_path: Path) -> Path:
        (tmp_path / "base.json").write_text(json.dumps(CALCULON_SYSTEM))
        return exported("calculon", "--base", str(tmp_path / "base.json"), "--name", "mybox") / "mybox.json"


class TestSimuMax:
    """compute_net_op_time of simumax/core/config.py, with eight ranks a node: a latency for each step."""

    NAMES = (("all_reduce", "all_reduce"), ("all_gather", "all_gather"), ("reduce_scatter", "reduce_scatter"),
             ("all_to_all", "all2all"), ("send_recv", "p2p"))  # fmt: skip

    @pytest.mark.parametrize(
        ("net", "link", "ranks", "layout"), [("high_intra_node", *TIERS[0]), ("inter_node", *TIERS[1])]
    )
    @pytest.mark.parametrize(("name", "its"), NAMES)
    def test_formula(
        self,
        name: str,
        its: str,
        net: str,
        link: Planted,
        ranks: int,
        layout: str,
        exported: Exporter,
        record: FitRecord,
    ) -> None:
        network = load(exported("simumax") / "networks.json")["networks"][net]
        entry, gib = network["op"][its], network["bandwidth"]["gbps"]
        gib /= RANKS_PER_NODE if net == "inter_node" else 1  # a node's, of which every rank's group has its part
        steps = 1 if its == "p2p" else entry["scale"] * (ranks + entry["offset"])
        answers = [
            entry["scale"] * size * (1 + entry["offset"] / ranks) / (gib * GIB * entry["efficient_factor"])
            + entry["latency_us"] * steps / 1e6
            for size in SIZES
        ]
        assert_answers(answers, record, link, name, ranks, layout)

    def test_with_other_than_eight_ranks_a_node_the_latency_is_the_whole(
        self, four_ranks: Path, tmp_path: Path
    ) -> None:
        commbench("export", str(four_ranks), "--to", "simumax", "-o", str(tmp_path / "out"), "-q")
        entry = load(tmp_path / "out" / "networks.json")["networks"]["high_intra_node"]["op"]["all_reduce"]
        assert entry["latency_us"] == pytest.approx(INSIDE.alpha_total("all_reduce", 4) * 1e6, rel=1e-3)

    def test_a_base_keeps_its_other_networks(self, exported: Exporter, tmp_path: Path) -> None:
        system = load(self.system(exported, tmp_path))
        assert set(system["networks"]) == {"intra_node_pcie_2x", "low_intra_node", "high_intra_node", "inter_node"}
        assert system["networks"]["intra_node_pcie_2x"] == SIMUMAX_SYSTEM["networks"]["intra_node_pcie_2x"]
        assert system["num_per_node"] == RANKS_PER_NODE
        entries = [
            entry for net in ("high_intra_node", "inter_node") for entry in system["networks"][net]["op"].values()
        ]
        assert {frozenset(entry) for entry in entries} == {
            frozenset({"scale", "offset", "efficient_factor", "latency_us"})
        }

    @pytest.mark.checkout
    def test_its_own_code(self, exported: Exporter, planner: Consumer, tmp_path: Path, record: FitRecord) -> None:
        folder, system = checkout("SIMUMAX"), self.system(exported, tmp_path)
        cases = [("high_intra_node", name, its, *TIERS[0]) for name, its in self.NAMES]
        cases += [("inter_node", name, name, *TIERS[1]) for name in ("all_reduce", "all_gather", "reduce_scatter")]
        questions = [f"{net},{its},{size},{ranks}" for net, _, its, _, ranks, _ in cases for size in SIZES]
        answers = planner("simumax_runs.py", folder, system, *questions)
        for number, (_, name, _, link, ranks, layout) in enumerate(cases):
            found = answers[number * len(SIZES) : (number + 1) * len(SIZES)]
            assert_answers(found, record, link, name, ranks, layout)

    @staticmethod
    def system(exported: Exporter, tmp_path: Path) -> Path:
        (tmp_path / "base.json").write_text(json.dumps(SIMUMAX_SYSTEM))
        return exported("simumax", "--base", str(tmp_path / "base.json"), "--name", "mybox") / "mybox.json"


class TestNnScaler:
    """primitive_to_cost of autodist/cost_database.py: the table, by MiB of the full tensor."""

    @pytest.mark.parametrize("name", MAIN_COLLECTIVES)
    def test_table(self, name: str, exported: Exporter, record: FitRecord) -> None:
        sizes, seconds = load(exported("nnscaler") / "comm" / "intra_8.json")[name.replace("_", " ")]
        beside = RANKS_PER_NODE if name == "all_to_all" else 1  # of its full tensor a rank holds 1/N
        assert [size * MIB / beside for size in sizes] == list(SIZES)
        assert_answers(seconds, record, INSIDE, name, RANKS_PER_NODE, "node")

    def test_exact_keys_of_every_power_of_two(self, exported: Exporter) -> None:
        folder = exported("nnscaler") / "comm"
        assert {path.name for path in folder.iterdir()} == {f"intra_{ranks}.json" for ranks in (2, 4, 8, 16)}
        for path in folder.iterdir():
            assert set(load(path)) == {"all gather", "all reduce", "reduce scatter", "all to all"}

    @pytest.mark.checkout
    def test_its_own_code(self, exported: Exporter, planner: Consumer, record: FitRecord) -> None:
        folder = checkout("NNSCALER")
        names = {"all_reduce": 1, "all_to_all": RANKS_PER_NODE}
        questions = [f"{name.replace('_', ' ')},{size * beside}" for name, beside in names.items() for size in SIZES]
        answers = planner("nnscaler_runs.py", folder, exported("nnscaler"), RANKS_PER_NODE, *questions)
        for number, name in enumerate(names):
            found = answers[number * len(SIZES) : (number + 1) * len(SIZES)]
            assert_answers(found, record, INSIDE, name, RANKS_PER_NODE, "node")


class TestAstraSim:
    """A message takes hops × latency + nbytes / (GiB/s × 2^30), two hops in a Switch; a ring sends 2(N-1) of S/N."""

    @pytest.mark.parametrize(("tier", "link", "ranks", "layout"), [(0, *TIERS[0]), (1, *TIERS[1])])
    def test_formula(
        self, tier: int, link: Planted, ranks: int, layout: str, exported: Exporter, record: FitRecord
    ) -> None:
        network = read_flat_yaml(exported("astra-sim") / "network.yml")
        latency, gib = network["latency"][tier], network["bandwidth"][tier]
        messages = 2 * (ranks - 1)
        answers = [messages * (2 * latency / 1e9 + size / ranks / (gib * GIB)) for size in SIZES]
        assert_answers(answers, record, link, "all_reduce", ranks, layout)

    def test_exact_keys(self, exported: Exporter) -> None:
        folder = exported("astra-sim")
        network, system = read_flat_yaml(folder / "network.yml"), load(folder / "system.json")
        assert list(network) == ["topology", "npus_count", "bandwidth", "latency"]
        assert (network["topology"], network["npus_count"]) == (["Switch", "Switch"], [RANKS_PER_NODE, NODES])
        assert set(system) == {
            "scheduling-policy", "endpoint-delay", "active-chunks-per-dimension", "preferred-dataset-splits",
            "all-reduce-implementation", "all-gather-implementation", "reduce-scatter-implementation",
            "all-to-all-implementation", "collective-optimization", "local-mem-bw", "boost-mode",
        }  # fmt: skip
        assert system["all-reduce-implementation"] == ["ring", "ring"]

    @pytest.mark.parametrize(("destination", "link", "ranks", "layout"), [(1, *TIERS[0]), (RANKS_PER_NODE, *TIERS[1])])
    @pytest.mark.checkout
    def test_its_own_code(
        self, destination: int, link: Planted, ranks: int, layout: str, exported: Exporter, tmp_path: Path,
        record: FitRecord,
    ) -> None:  # fmt: skip
        """The messages of a ring, by its simulator: rank 1 is in the first dimension, rank 8 in the second."""
        probe = build_probe(Path(checkout("ASTRA_SIM")), tmp_path / "probe")
        network = exported("astra-sim") / "network.yml"
        arguments = [probe, network, str(destination), *(str(size // ranks) for size in SIZES)]
        ended = subprocess.run(arguments, capture_output=True, text=True, check=True)
        answers = [2 * (ranks - 1) * ns / 1e9 for ns in json.loads(ended.stdout)]
        assert_answers(answers, record, link, "all_reduce", ranks, layout)


def read_flat_yaml(path: Path) -> dict[str, Any]:
    import yaml

    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def build_probe(source: Path, target: Path) -> Path:
    """The program of astra_sim_probe.cpp, with the simulator's sources."""
    parts: Sequence[Path] = [
        *source.glob("common/*.cpp"), *source.glob("common/network-parser/*.cpp"),
        *source.glob("congestion_unaware/*/*.cpp"),
    ]  # fmt: skip
    command = [
        "g++",
        "-std=c++17",
        f"-I{source}/include/astra-network-analytical",
        str(CONSUMERS / "astra_sim_probe.cpp"),
    ]
    subprocess.run([*command, *map(str, parts), "-lyaml-cpp", "-o", str(target)], check=True, timeout=300)
    return target
