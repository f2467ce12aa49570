"""Whatever the bytes: a machine that can be shown, or one sentence."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.errors import CommbenchError
from commbench.report.topology import TOPOLOGY_FORMATS
from commbench.topology import FORMATS, read_topology
from tests.unit.results.importers.mutate import mutate
from tests.unit.topology.samples import SAMPLES

EXAMPLES = 120
OTHERS = [text.encode() for text in SAMPLES.values()]


def show(data: bytes, format_name: str | None) -> str | None:
    """The sentence that refuses `data`; None where it was read, and every form of the result could be written."""
    try:
        topology = read_topology(data, "topo.txt", format_name)
    except CommbenchError as error:
        return str(error)
    keys = [device.key for device in topology.devices]
    assert len(set(keys)) == len(keys)
    assert {key for link in topology.links for key in (link.first, link.second)} <= set(keys)
    assert all(write(topology) for write in TOPOLOGY_FORMATS.values())
    return None


def test_every_format_has_a_sample():
    assert list(SAMPLES) == list(FORMATS)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "nccl-graph"])
def test_a_sample_is_recognised(name):
    assert read_topology(SAMPLES[name].encode(), "topo.txt").format == name


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_text_is_a_machine_or_one_sentence(name):
    rng = random.Random(f"1/{name}")
    results = [
        show(mutate(SAMPLES[name].encode(), rng, OTHERS), name if number % 2 else None) for number in range(EXAMPLES)
    ]
    assert [text for text in results if text is not None and ("\n" in text or not text.endswith("."))] == []
    assert name == "nccl-graph" or None in results  # which is refused in any case


@pytest.mark.parametrize("name", [None, *SAMPLES])
@given(data=st.binary(max_size=300))
def test_any_bytes_are_a_machine_or_one_sentence(name, data):
    sentence = show(data, name)
    assert sentence is None or (sentence.endswith(".") and "\n" not in sentence)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(
    "piece", ["a", " ", "\t", "|", "GPU0 ", "GPU0\t", "X ", "<a>", "&", "\x1b[", "NIC0: a\n", "CA 'a'\n", "0,", "\n"]
)
def test_time_grows_with_the_text_only(name, piece):
    """Twice as much takes three times as long at most, but for a second."""

    def seconds(count: int) -> float:
        began = time.process_time()
        show((SAMPLES[name] + piece * count).encode(), name)
        show((piece * count + SAMPLES[name]).encode(), None)
        return time.process_time() - began

    count = 40_000
    assert seconds(count) <= 3.0 * seconds(count // 2) + 1.0
