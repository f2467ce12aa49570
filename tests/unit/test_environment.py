"""commbench.launch.environment: what every launcher leaves behind, and what only half a launcher does."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commbench.errors import UsageError
from commbench.launch.environment import RankPlace, expected_hosts, find_place

MEETING = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
JOB_POD = {"RANK": "2", "WORLD_SIZE": "4", **MEETING}
TORCHRUN = {**JOB_POD, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
SLURM = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "2",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
    "SLURM_STEP_NODELIST": "gpu[07-10]",
    "SLURM_JOB_NODELIST": "gpu[01-10]",
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "prterun-host-77@1",
}
MPICH = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "3", "MPI_LOCALNRANKS": "4"}


def _without(environment: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in names}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"PATH": "/bin", **MEETING},
        _without(SLURM, "SLURM_STEP_NUM_TASKS"),  # a batch script
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "4711"},
    ],
    ids=["empty", "a meeting place only", "batch script", "batch script with tasks"],
)
def test_no_launcher_no_place(environment: dict[str, str]) -> None:
    assert find_place(environment) is None


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        (TORCHRUN, RankPlace("torchrun", 2, 4, 0, 2, "10.0.0.1", 29500)),
        (JOB_POD, RankPlace("torchrun", 2, 4, 0, 1, "10.0.0.1", 29500)),
        ({**SLURM, **TORCHRUN}, RankPlace("torchrun", 2, 4, 0, 2, "10.0.0.1", 29500)),
        ({**OPEN_MPI, **TORCHRUN}, RankPlace("torchrun", 2, 4, 0, 2, "10.0.0.1", 29500)),
        ({**SLURM, "MASTER_PORT": "1"}, RankPlace("Slurm", 5, 7, 1, 2, "gpu07", 1)),
        ({**SLURM, **MEETING}, RankPlace("Slurm", 5, 7, 1, 2, "10.0.0.1", 29500)),
        (
            {**SLURM, "MASTER_PORT": "1", "SLURM_PROCID": "6", "SLURM_LOCALID": "0", "SLURM_NODEID": "3"},
            RankPlace("Slurm", 6, 7, 0, 1, "gpu07", 1),
        ),
        (
            {**_without(SLURM, "SLURM_STEP_NODELIST"), "MASTER_PORT": "65535"},
            RankPlace("Slurm", 5, 7, 1, 2, "gpu01", 65535),
        ),
        ({**OPEN_MPI, "MASTER_PORT": "1"}, RankPlace("Open MPI", 1, 2, 1, 2, "127.0.0.1", 1)),
        (
            {**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "4", **MEETING},
            RankPlace("Open MPI", 1, 4, 1, 2, "10.0.0.1", 29500),
        ),
        (
            {**SLURM, **OPEN_MPI, "SLURM_STEP_NUM_TASKS": "1", "MASTER_PORT": "1"},
            RankPlace("Open MPI", 1, 2, 1, 2, "127.0.0.1", 1),
        ),
        ({**MPICH, "MASTER_PORT": "1"}, RankPlace("MPICH (PMI)", 3, 4, 3, 4, "127.0.0.1", 1)),
        ({**MPICH, "MPI_LOCALNRANKS": "4", **MEETING}, RankPlace("MPICH (PMI)", 3, 4, 3, 4, "10.0.0.1", 29500)),
        ({"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "1"}, RankPlace("torchrun", 0, 1, 0, 1, "127.0.0.1", 1)),
        ({**OPEN_MPI, "RANK": "1", "WORLD_SIZE": "2", **MEETING}, RankPlace("torchrun", 1, 2, 0, 1, "10.0.0.1", 29500)),
    ],
    ids=[
        "torchrun",
        "PyTorchJob",
        "torchrun under srun",
        "torchrun under mpirun",
        "Slurm, several nodes",
        "Slurm, address given",
        "Slurm, last node",
        "Slurm, node list of the job",
        "Open MPI, one node",
        "Open MPI, several nodes",
        "mpirun in a Slurm job",
        "MPICH",
        "MPICH, address given",
        "one rank by hand",
        "wrapper of mpirun",
    ],
)
def test_place(environment: dict[str, str], place: RankPlace) -> None:
    assert find_place(environment) == place


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"RANK": "0"}, ["RANK", "WORLD_SIZE"]),
        ({"WORLD_SIZE": "2", **MEETING}, ["WORLD_SIZE", "RANK"]),
        ({"LOCAL_RANK": "0"}, ["LOCAL_RANK", "RANK"]),
        (_without(TORCHRUN, "MASTER_PORT"), ["RANK", "MASTER_PORT"]),
        (_without(TORCHRUN, "MASTER_ADDR"), ["torchrun", "MASTER_ADDR"]),
        ({**TORCHRUN, "RANK": "4"}, ["RANK=4", "WORLD_SIZE=4"]),
        ({**TORCHRUN, "WORLD_SIZE": "0"}, ["RANK=2", "WORLD_SIZE=0"]),
        ({**TORCHRUN, "LOCAL_RANK": "2"}, ["LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"]),
        ({**TORCHRUN, "LOCAL_WORLD_SIZE": "8"}, ["LOCAL_WORLD_SIZE=8", "WORLD_SIZE=4"]),
        (
            {**JOB_POD, **OPEN_MPI},
            ["RANK=2", "WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"],
        ),
        ({**JOB_POD, **MPICH}, ["RANK=2", "WORLD_SIZE=4", "PMI_RANK=3", "PMI_SIZE=4"]),
        (_without(OPEN_MPI, "OMPI_COMM_WORLD_SIZE"), ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"]),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "4"}, ["Open MPI", "several nodes", "MASTER_ADDR"]),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "4", "MASTER_ADDR": ""}, ["several nodes", "MASTER_ADDR"]),
        ({"PMI_RANK": "0"}, ["PMI_RANK", "PMI_SIZE"]),
        ({**MPICH, "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}, ["MPICH", "several nodes", "MASTER_ADDR"]),
        ({**SLURM, "SLURM_PROCID": "7"}, ["SLURM_PROCID=7", "SLURM_STEP_NUM_TASKS=7"]),
        ({**SLURM, "SLURM_LOCALID": "2"}, ["SLURM_LOCALID=2", "SLURM_STEP_TASKS_PER_NODE=2"]),
        ({**SLURM, "SLURM_NODEID": "4"}, ["SLURM_NODEID=4", "SLURM_STEP_TASKS_PER_NODE='2(x3),1'"]),
        ({**SLURM, "SLURM_STEP_NODELIST": "gpu[07-"}, ["SLURM_STEP_NODELIST='gpu[07-'", "MASTER_ADDR"]),
        ({**SLURM, "SLURM_STEP_NODELIST": "gpu[1-" + "9" * 5000 + "]"}, ["SLURM_STEP_NODELIST", "MASTER_ADDR"]),
        ({**SLURM, "SLURM_STEP_NODELIST": ","}, ["SLURM_STEP_NODELIST=','", "MASTER_ADDR"]),
        (_without(SLURM, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"), ["Slurm", "MASTER_ADDR"]),
        ({**TORCHRUN, "MASTER_PORT": "0"}, ["MASTER_PORT=0"]),
        ({**SLURM, "MASTER_PORT": "65536"}, ["MASTER_PORT=65536"]),
    ],
    ids=lambda value: "" if isinstance(value, dict) else " ".join(value)[:60],
)
def test_half_set_or_contradictory_variables_are_named(environment: dict[str, str], named: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        find_place(environment)
    said = str(caught.value)
    assert [name for name in named if name not in said] == []
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        *((TORCHRUN, name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT")),
        *((OPEN_MPI, name) for name in list(OPEN_MPI)[:4]),
        *((MPICH, name) for name in MPICH),
        *((SLURM, name) for name in list(SLURM)[:5]),
    ],
)
def test_what_is_no_number_is_named(environment: dict[str, str], name: str) -> None:
    for value in ("", "x", "-1", "1.5", " 1", "1e3", "nan", "²", "٣", "9" * 5000):
        with pytest.raises(UsageError, match=f"{name}="):
            find_place({**environment, name: value})


@pytest.mark.parametrize("tasks", ["2(x", "2(3)", "(x3)", "2(xx3)", "2,,1", "2(x3),", "2(x٣)", "2(x9999999)"])
def test_unreadable_tasks_per_node_are_named(tasks: str) -> None:
    with pytest.raises(UsageError, match="SLURM_STEP_TASKS_PER_NODE="):
        find_place({**SLURM, "SLURM_STEP_TASKS_PER_NODE": tasks})


@pytest.mark.parametrize(
    ("job", "peer", "other"),
    [
        (SLURM, {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}, {"SLURM_JOB_ID": "4712"}),
        (SLURM, {"SLURM_PROCID": "6", "SLURM_LOCALID": "0", "SLURM_NODEID": "3"}, {"SLURM_STEP_ID": "1"}),
        (
            OPEN_MPI,
            {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "0"},
            {"PMIX_NAMESPACE": "prterun-host-78@1"},
        ),
        (
            {**MPICH, "PMI_ID": "3", "PMI_JOBID": "1.0"},  # PMI_ID is the rank
            {"PMI_RANK": "0", "MPI_LOCALRANKID": "0", "PMI_ID": "0"},
            {"PMI_JOBID": "2.0"},
        ),
    ],
    ids=["Slurm job", "Slurm step", "Open MPI", "MPICH"],
)
def test_derived_port_is_one_a_job(job: dict[str, str], peer: dict[str, str], other: dict[str, str]) -> None:
    mine, theirs, foreign = (find_place({**job, **changed}).master_port for changed in ({}, peer, other))
    assert mine == theirs != foreign
    assert 20_000 <= mine <= 29_999
    assert 20_000 <= foreign <= 29_999


def test_derived_ports_of_many_jobs_stay_in_their_range_and_spread() -> None:
    ports = [find_place({**SLURM, "SLURM_JOB_ID": str(job)}).master_port for job in range(1000)]
    assert all(20_000 <= port <= 29_999 for port in ports)
    assert len(set(ports)) > 900


NAMES = sorted({*TORCHRUN, *SLURM, *OPEN_MPI, *MPICH, "PMI_JOBID"})
# os.environ holds lone surrogates where a variable is not UTF-8.
VALUES = st.integers(0, 3).map(str) | st.text() | st.text("0123456789(x),[]-²\udcff")


@given(st.dictionaries(st.sampled_from(NAMES), VALUES), st.sampled_from([{}, TORCHRUN, SLURM, OPEN_MPI, MPICH]))
@example({"PMIX_NAMESPACE": "\udcff"}, OPEN_MPI)
def test_any_environment_gives_a_place_or_none_or_is_refused(changed: dict[str, str], launcher: dict[str, str]) -> None:
    try:
        place = find_place({**launcher, **changed})
    except UsageError:
        return
    if place is not None:
        assert 0 <= place.local_rank < place.local_size <= place.world_size
        assert 0 <= place.rank < place.world_size
        assert 0 < place.master_port < 65536
        assert place.master_addr


@pytest.mark.parametrize(
    ("environment", "hosts"),
    [
        (SLURM, ("gpu07", "gpu07", "gpu08", "gpu08", "gpu09", "gpu09", "gpu10")),
        (SLURM | {"SLURM_DISTRIBUTION": "cyclic"}, ("?",) * 7),
        (SLURM | {"SLURM_STEP_NODELIST": "gpu[07-08]"}, ("?",) * 7),
        (JOB_POD, ("?",) * 4),
    ],
)
def test_expected_hosts(environment: dict[str, str], hosts: tuple[str, ...]) -> None:
    place = find_place(environment)
    assert place is not None
    assert expected_hosts(environment, place) == hosts
