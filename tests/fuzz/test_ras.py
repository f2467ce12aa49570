"""Whatever comes from RAS's port: a sentence, or no status."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.measure.flight import describe_ras
from commbench.results.nccl_ras import parse_ras
from tests.unit.results.importers.mutate import mutate
from tests.unit.results.ras_samples import BEHIND, SAMPLES

EXAMPLES = 60
OTHERS = [text.encode() for text in SAMPLES.values()]


def say(data: bytes, _name: str | None = None) -> str | None:
    """What a message says of an answer; None where it is no status."""
    status = parse_ras(data.decode(errors="replace"))
    return None if status is None else describe_ras(status, 4100)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_answer_is_a_sentence_or_no_status(name: str) -> None:
    rng = random.Random(f"1/{name}")
    said = [say(mutate(SAMPLES[name].encode(), rng, OTHERS)) for _ in range(EXAMPLES)]
    assert [text for text in said if text and (not text.isprintable() or not text.endswith("."))] == []
    assert any(text is not None for text in said) or name == "cut off"
    assert None in said


@given(data=st.binary(max_size=300) | st.lists(st.sampled_from(BEHIND.splitlines())).map("\n".join).map(str.encode))
def test_any_answer_is_a_sentence_or_no_status(data: bytes) -> None:
    text = say(data)
    assert not text or (text.isprintable() and text.endswith("."))


@pytest.mark.parametrize(
    "piece", ["[", '{"a":', "#0-0 (1) M\n", "Rank 1 -- \n", "1 ", "OK\n", " ", "1,", "7 ranks have "]
)
def test_time_grows_with_the_answer_only(piece: str) -> None:
    """Twice as much takes three times as long at most, but for a second."""

    def seconds(count: int) -> float:
        began = time.process_time()
        say((BEHIND + piece * count).encode())
        say(("{" + piece * count).encode())
        return time.process_time() - began

    assert seconds(40_000) <= 3.0 * seconds(20_000) + 1.0
