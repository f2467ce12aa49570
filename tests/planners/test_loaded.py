"""The planners' own code loads our files, and answers what we predict: those that install from packages."""

import json
from pathlib import Path

import pytest

from commbench.analysis.records import FitRecord
from commbench.export.galvatron import OVERLAP_COEFFICIENT
from commbench.export.simgrid import OPTIONS as SIMGRID_OPTIONS
from commbench.plan.collectives import COLLECTIVES
from tests.planners.bases import AICONFIGURATOR_SYSTEM, LLM_ANALYSIS_GPU
from tests.planners.conftest import (
    BETWEEN,
    INSIDE,
    NODES,
    RANKS_PER_NODE,
    SIZES,
    Consumer,
    Exporter,
    Planted,
    assert_answers,
)

Answers = dict[str, float]

MIB = 1 << 20
BOTH_TIERS = [(INSIDE, RANKS_PER_NODE, "node"), (BETWEEN, NODES, "rail")]


@pytest.fixture(scope="module")
def galvatron(exported: Exporter, planner: Consumer) -> dict[str, dict[str, float]]:
    answer: dict[str, dict[str, float]] = planner("galvatron_loads.py", exported("galvatron"), NODES, RANKS_PER_NODE)
    return answer


class TestGalvatron:
    @pytest.mark.parametrize(
        ("key", "link", "ranks"),
        [("16", BETWEEN, 16), ("8_1", INSIDE, 8), ("8_0", BETWEEN, 8), ("4_1", INSIDE, 4), ("4_0", BETWEEN, 4),
         ("2_1", INSIDE, 2), ("2_0", BETWEEN, 2)],
    )  # fmt: skip
    def test_all_reduce_bandwidths_are_bus_bandwidths_in_mib_per_ms(
        self, key: str, link: Planted, ranks: int, galvatron: dict[str, dict[str, float]]
    ) -> None:
        """T = 2(N-1)/N × MiB × coefficient, without an alpha: what is left of ours without one."""
        seconds = link.seconds("all_reduce", ranks, 64 * MIB) - link.alpha_total("all_reduce", ranks)
        its = 2 * (ranks - 1) / ranks * 64 * galvatron["reduce_ms_per_mib"][key] / 1e3
        assert its == pytest.approx(seconds, rel=1e-3)
        assert its != pytest.approx(seconds * (1 << 20) / 1e6, rel=0.03)  # MB of 1e6

    def test_stages_are_as_far_apart_as_they_can_be(self, galvatron: dict[str, dict[str, float]]) -> None:
        assert set(galvatron["stage_ms_per_mib"]) == {"2", "4", "8", "16"}
        assert galvatron["stage_ms_per_mib"]["2"] == pytest.approx(MIB / BETWEEN.bytes_per_second * 1e3, rel=1e-3)

    @pytest.mark.parametrize(("ranks", "link"), [(16, BETWEEN), (8, INSIDE), (2, INSIDE)])
    def test_its_line_through_all_reduce_is_ours(
        self, ranks: int, link: Planted, galvatron: dict[str, dict[str, list[float]]], record: FitRecord
    ) -> None:
        """remap_config halves an all_reduce, for its all_gather."""
        slope, alpha = galvatron["allreduce"][str(ranks)]
        seconds = [2 * (slope * size / MIB + alpha) / 1e3 for size in SIZES]
        layout = {16: "world", 8: "node", 2: "mesh:tp"}[ranks]
        assert_answers(seconds, record, link, "all_reduce", ranks, layout)

    @pytest.mark.parametrize(("ranks", "link"), [(16, BETWEEN), (8, INSIDE)])
    def test_a_rank_of_all_to_all_holds_its_share_of_the_full_tensor(
        self, ranks: int, link: Planted, galvatron: dict[str, dict[str, list[float]]], record: FitRecord
    ) -> None:
        slope, alpha = galvatron["all2all"][str(ranks)]
        seconds = [(slope * size * ranks / MIB + alpha) / 1e3 for size in SIZES]
        assert_answers(seconds, record, link, "all_to_all", ranks, {16: "world", 8: "node"}[ranks])

    def test_overlap_is_its_default_until_it_is_measured(self, galvatron: dict[str, float]) -> None:
        assert galvatron["overlap"] == OVERLAP_COEFFICIENT


@pytest.fixture(scope="module")
def systems(exported: Exporter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("base") / "h100.yaml"
    base.write_text(AICONFIGURATOR_SYSTEM)
    folder = exported("aiconfigurator", "--base", str(base), "--name", "mybox")
    (folder / "data" / "mybox" / "trtllm" / "1.0").mkdir(parents=True)  # the tables of a backend, which are its own
    return folder


@pytest.fixture(scope="module")
def aiconfigurator(systems: Path, planner: Consumer) -> Answers:
    """Seconds by question, all asked at once."""
    names = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
    questions = [f"{name},{RANKS_PER_NODE},{size // itemsize},{dtype}"
                 for name in names for size in SIZES for dtype, itemsize in (("half", 2), ("int8", 1))]  # fmt: skip
    questions += [f"all_reduce,{RANKS_PER_NODE},{3 * MIB},half", *(f"p2p,2,{size // 2},half" for size in SIZES)]
    answers = planner("aiconfigurator_loads.py", systems, "mybox", *questions)
    return {question: ms / 1e3 for question, ms in zip(questions, answers, strict=True)}


class TestAIConfigurator:
    @pytest.mark.parametrize(("dtype", "itemsize"), [("half", 2), ("int8", 1)])
    @pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
    def test_times_of_elements(
        self, name: str, dtype: str, itemsize: int, aiconfigurator: Answers, record: FitRecord
    ) -> None:
        its_name = {"all_to_all": "alltoall"}.get(name, name)
        seconds = [aiconfigurator[f"{its_name},{RANKS_PER_NODE},{size // itemsize},{dtype}"] for size in SIZES]
        assert_answers(seconds, record, INSIDE, name, RANKS_PER_NODE, "node")

    def test_between_the_sizes_it_interpolates_on_our_line(self, aiconfigurator: Answers) -> None:
        seconds = aiconfigurator[f"all_reduce,{RANKS_PER_NODE},{3 * MIB},half"]
        assert seconds == pytest.approx(INSIDE.seconds("all_reduce", 8, 6 * MIB), rel=1e-3)

    def test_point_to_point_is_between_nodes(self, aiconfigurator: Answers, record: FitRecord) -> None:
        """Its p2p is of elements of two bytes."""
        seconds = [aiconfigurator[f"p2p,2,{size // 2},half"] for size in SIZES]
        assert_answers(seconds, record, BETWEEN, "send_recv", 2, "rail")

    def test_what_was_not_measured_stays_as_it_was(self, systems: Path) -> None:
        text = (systems / "mybox.yaml").read_text()
        assert "mem_bw: 3350000000000 # kept" in text
        assert "data_dir: data/mybox" in text
        assert "nccl_version: 'unknown'" in text  # the fake engine has no NCCL


@pytest.fixture(scope="module")
def torch_costs(exported: Exporter, planner: Consumer) -> dict[str, list[list[float]]]:
    answer: dict[str, list[list[float]]] = planner("torch_loads.py", exported("torch"), NODES, RANKS_PER_NODE, *SIZES)
    return answer


class TestTorch:
    @pytest.mark.parametrize(("dimension", "link", "ranks", "layout"), [(1, *BOTH_TIERS[0]), (0, *BOTH_TIERS[1])])
    def test_all_reduce(
        self, dimension: int, link: Planted, ranks: int, layout: str, torch_costs: dict[str, list[list[float]]],
        record: FitRecord,
    ) -> None:  # fmt: skip
        seconds = [us / 1e6 for us in torch_costs["all_reduce"][dimension]]
        assert_answers(seconds, record, link, "all_reduce", ranks, layout)

    @pytest.mark.parametrize("name", ["all_gather", "reduce_scatter"])
    def test_halves_have_half_the_steps_beside_torchs_own_base(
        self, name: str, torch_costs: dict[str, list[list[float]]], record: FitRecord
    ) -> None:
        """It adds its 6.6 us to either half too: within what that leaves, the torch_costs is ours."""
        alpha = 6.6e-6 + (INSIDE.alpha_total("all_reduce", 8) - 6.6e-6) / 2
        seconds = [us / 1e6 for us in torch_costs[name][1]]
        assert_answers(seconds, record, INSIDE, name, RANKS_PER_NODE, "node", alpha=alpha)

    def test_inductor_has_gigabytes_of_a_billion_bytes(self, torch_costs: dict[str, list[float]]) -> None:
        assert torch_costs["inductor"] == [220.0, 25.0]


class TestLlmAnalysis:
    def test_bandwidth_and_floor(
        self, exported: Exporter, planner: Consumer, record: FitRecord, tmp_path: Path
    ) -> None:
        """It takes the larger of bus time and floor, so a large message is ours without alpha."""
        base = tmp_path / "gpu.json"
        base.write_text(json.dumps(LLM_ANALYSIS_GPU))
        folder = exported("llm-analysis", "--base", str(base), "--name", "mybox")
        (folder / "commbench-export.json").unlink()  # it reads every file of its folder
        hiddens = [size // 2 for size in SIZES]
        answer = planner("llm_analysis_loads.py", folder, "mybox", RANKS_PER_NODE, *hiddens)
        floor = INSIDE.alpha_total("all_reduce", RANKS_PER_NODE)
        above = [i for i, size in enumerate(SIZES) if INSIDE.seconds("all_reduce", RANKS_PER_NODE, size) > 2.1 * floor]
        seconds = [answer["answers"][i] for i in above]
        sizes = [SIZES[i] for i in above]
        assert_answers(seconds, record, INSIDE, "all_reduce", RANKS_PER_NODE, "node", sizes, alpha=0.0)
        assert answer["answers"][0] == pytest.approx(floor, rel=1e-3)
        assert answer["gpu"]["inter_node_bandwidth_in_GB_per_sec"] == pytest.approx(25.0)
        assert answer["gpu"]["mem_per_GPU_in_GB"] == 80


@pytest.fixture(scope="module")
def vidur(exported: Exporter, planner: Consumer) -> dict[str, list[tuple[float, float]]]:
    rows: dict[str, list[tuple[float, float]]] = planner("vidur_loads.py", exported("vidur"), RANKS_PER_NODE)
    return rows


class TestVidur:
    """It asks by tokens of 2 × 4096 bytes."""

    def test_a_tensor_parallel_all_reduce(self, vidur: dict[str, list[tuple[float, float]]], record: FitRecord) -> None:
        rows = vidur["all_reduce"]
        assert [tokens * 2 * 4096 for tokens, _ in rows] == list(SIZES)
        assert_answers([ms / 1e3 for _, ms in rows], record, INSIDE, "all_reduce", RANKS_PER_NODE, "node")

    @pytest.mark.parametrize(
        ("place", "link", "ranks", "layout"), [("inside", *BOTH_TIERS[0]), ("between", *BOTH_TIERS[1])]
    )
    def test_stages(
        self, place: str, link: Planted, ranks: int, layout: str, vidur: dict[str, list[tuple[float, float]]],
        record: FitRecord,
    ) -> None:  # fmt: skip
        rows = vidur[f"send_recv {place}"]
        assert_answers([ms / 1e3 for _, ms in rows], record, link, "send_recv", ranks, layout)


class TestSimGrid:
    @pytest.mark.parametrize(
        ("file", "link", "ranks", "layout"),
        [("inside-node.xml", *BOTH_TIERS[0]), ("between-nodes.xml", *BOTH_TIERS[1])],
    )
    def test_a_simulated_ring_takes_what_we_predict(
        self,
        file: str,
        link: Planted,
        ranks: int,
        layout: str,
        exported: Exporter,
        simgrid: Consumer,
        record: FitRecord,
    ) -> None:
        answers = simgrid("simgrid_runs.py", exported("simgrid") / file, SIMGRID_OPTIONS, ranks, *SIZES)
        assert_answers(answers[: len(SIZES)], record, link, "all_reduce", ranks, layout)
        single = [link.alpha_step + size / link.bytes_per_second for size in SIZES]
        assert answers[len(SIZES) :] == pytest.approx(single, rel=1e-3)


class TestOurOwn:
    def test_the_file_obeys_its_schema(self, exported: Exporter, planner: Consumer) -> None:
        folder = exported("commbench-json")
        files = [folder / "coefficients.schema.json", folder / "commbench-coefficients.json"]
        assert planner("schema_checks.py", *files) == [[]]

    def test_a_file_that_differs_does_not(self, exported: Exporter, planner: Consumer, tmp_path: Path) -> None:
        folder = exported("commbench-json")
        document = json.loads((folder / "commbench-coefficients.json").read_text())
        document["curves"][0]["line"]["bytes_per_second"] = "220 GB/s"
        document["curves"][1]["steps_of"] = 3
        (tmp_path / "bad.json").write_text(json.dumps(document))
        ((*found,),) = planner("schema_checks.py", folder / "coefficients.schema.json", tmp_path / "bad.json")
        assert len(found) == 2

    @pytest.mark.parametrize("name", ["all_reduce", "all_gather", "all_to_all", "send_recv"])
    def test_its_formula_gives_our_prediction(self, name: str, exported: Exporter, record: FitRecord) -> None:
        document = json.loads((exported("commbench-json") / "commbench-coefficients.json").read_text())
        (curve,) = [c for c in document["curves"] if (c["collective"], c["ranks"], c["layout"]) == (name, 8, "node")]
        alpha, rate = (curve["line"][key]["value"] for key in ("alpha_total", "bytes_per_second"))
        alpha = curve["line"]["alpha_total_as_fitted"] if alpha is None else alpha
        seconds = [alpha + curve["traffic_factor"] * size / rate for size in SIZES]
        assert_answers(seconds, record, INSIDE, name, 8, "node")
        assert curve["line"]["alpha_step"]["value"] in (None, pytest.approx(alpha / COLLECTIVES[name].steps(8)))
