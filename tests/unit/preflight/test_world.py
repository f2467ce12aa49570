"""Where ranks meet although MASTER_ADDR is wrong."""

import pytest

from commbench.launch.environment import find_place
from commbench.preflight.world import find_meeting

SLURM = {
    "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "0", "SLURM_STEP_TASKS_PER_NODE": "1(x4)",
    "SLURM_NODEID": "1", "SLURM_STEP_NODELIST": "n[1-4]", "SLURM_JOB_ID": "7",
}  # fmt: skip
POD = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        (SLURM, "n1"),
        (SLURM | {"MASTER_ADDR": "127.0.0.1"}, "n1"),  # every node would wait for itself
        (SLURM | {"MASTER_ADDR": "localhost"}, "n1"),
        (SLURM | {"MASTER_ADDR": "n2"}, "n2"),
        (POD | {"MASTER_ADDR": "127.0.0.1"}, "127.0.0.1"),  # its launcher knows no other
        (POD | {"MASTER_ADDR": "127.0.0.1", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}, "127.0.0.1"),  # all are here
    ],
)
def test_where_ranks_meet(environment: dict[str, str], address: str) -> None:
    place = find_place(environment)
    assert place is not None
    assert find_meeting(place, environment).master_addr == address
