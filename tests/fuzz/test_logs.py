"""Whatever the bytes: a record that can be shown, or one sentence."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.errors import CommbenchError
from tests.unit.results.importers.mutate import mutate
from tests.unit.results.nccl_log.samples import SAMPLES
from tests.unit.results.nccl_log.whole import show_whole

EXAMPLES = 30
OTHERS = [text.encode() for text in SAMPLES.values()]


def show(data: bytes) -> str | None:
    """The sentence that refuses `data`; None where it was read, and every form of the result could be written."""
    try:
        show_whole(data)
    except CommbenchError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_log_is_a_record_or_one_sentence(name):
    rng = random.Random(f"1/{name}")
    results = [show(mutate(SAMPLES[name].encode(), rng, OTHERS)) for _ in range(EXAMPLES)]
    assert [text for text in results if text is not None and ("\n" in text or not text.endswith("."))] == []
    assert None in results


@given(data=st.binary(max_size=300))
def test_any_bytes_are_a_record_or_one_sentence(data):
    sentence = show(data)
    assert sentence is None or (sentence.endswith(".") and "\n" not in sentence)


@pytest.mark.parametrize(
    "piece",
    [
        "a", " ", "a:", "1:", "a:1:1 [0] ", "NCCL INFO ", "[", "-> ",
        "n1:100:105 [0] NCCL INFO Connected all ", "n1:100:\n",
        "|",
        "n1:100:105 [0] NCCL INFO Connected all n1:100:105 [0] NCCL INFO x\n", "\r", "\n",
        "Rank 1 Pid 1 on ", "[0] 1/-1/-1->0",
        "205 [1] NCCL INFO \n", "RUNNING 1 ", "Got completion from ",
    ],
)  # fmt: skip
def test_time_grows_with_the_text_only(piece):
    """Twice as much takes three times as long at most, but for a second."""

    def seconds(count: int) -> float:
        began = time.process_time()
        show((SAMPLES["torn"] + piece * count).encode())
        return time.process_time() - began

    count = 10_000
    assert seconds(count) <= 3.0 * seconds(count // 2) + 1.0
