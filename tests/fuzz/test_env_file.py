"""Whatever the bytes: variables or none, or one sentence, in bounded time."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.machine.env_file import parse_env
from commbench.machine.software import is_kept
from tests.unit.machine.test_env_file import SAMPLES, SCRIPT
from tests.unit.results.importers.mutate import mutate


def judge(data: bytes) -> None:
    found = parse_env(data, "file")
    assert found.variables.keys() == found.sources.keys()
    assert all(map(is_kept, found.variables))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_file_has_variables_or_none(name):
    rng, others = random.Random(f"1/{name}"), list(SAMPLES.values())
    for _ in range(100):
        judge(mutate(SAMPLES[name], rng, others))


@given(data=st.binary(max_size=300))
def test_any_bytes_have_variables_or_none(data):
    judge(data)


PIECES = [
    "a", " ", "=", '"', "'", "\\", "name:", "value: ", "A=", "-x A=1 ", "export NCCL_X", "NCCL_A=1 ", "[", "{", "\n",
    "#SBATCH --export=", "--export ", "$(", "- ", "\n- name: A", "\nNCCL_A: x",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_time_grows_with_the_text_only(piece):
    """Twice as much takes three times as long at most, but for a second."""

    def seconds(count: int) -> float:
        began = time.process_time()
        judge((piece * count).encode())
        judge((SCRIPT + piece * count).encode())
        return time.process_time() - began

    assert seconds(10_000) <= 3.0 * seconds(5_000) + 1.0
