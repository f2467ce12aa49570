"""A short fuzz; `scripts/fuzz_importers` is the long one."""

import random
import time

import pytest

from commbench.errors import CommbenchError
from commbench.results.importers.lines import MAX_FILE_NBYTES, clean_lines
from tests.unit.results.importers.make import nccl, read
from tests.unit.results.importers.mutate import mutate
from tests.unit.results.importers.samples import SAMPLES
from tests.unit.results.importers.whole import import_whole

EXAMPLES = 150
OTHERS = [data for _, data in SAMPLES.values()]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_mutated_file_is_a_run_or_one_sentence(name):
    format_name, data = SAMPLES[name]
    rng = random.Random(f"1/{name}")
    came_through, sentences = 0, []
    for number in range(EXAMPLES):
        try:
            import_whole(mutate(data, rng, OTHERS), format_name if number % 2 else None)
            came_through += 1
        except CommbenchError as error:
            sentences.append(str(error))
    assert [text for text in sentences if "\n" in text or not text.endswith(".")] == []
    assert came_through


@pytest.mark.parametrize(
    "line",
    [
        b"a" * 300_000, b"1 " * 150_000, b"\x1b[" * 100_000, b"[1,0]<stdout>:" * 70_000, b" " * 300_000,
        b"# " * 100_000, b"| " * 100_000, b"{" * 300_000, b'{"a":' * 200_000, b"NCCL INFO " * 90_000, b"1:" * 100_000,
        b"Rank " * 200_000, b"_perf" * 200_000, b"2026-01-02 " * 90_000, b"1 1 float " * 90_000, b"," * 300_000,
        b"a\n" * 100_000, b"\n" * 300_000, b"#bytes #iterations BW average[" * 30_000,
    ],
    ids=lambda line: line[:12].decode(),
)  # fmt: skip
def test_a_line_of_any_length_takes_time_that_grows_with_it_only(line):
    """Twice as much takes three times as long at most, but for a second."""

    def seconds(data: bytes) -> float:
        began = time.process_time()
        for text in (data, nccl().encode() + data, data + b"\n" + nccl().encode()):
            try:
                read(text)
            except CommbenchError:
                continue
        return time.process_time() - began

    half = seconds(line[: len(line) // 2])
    assert seconds(line) <= 3.0 * half + 1.0


def test_a_file_above_the_limit_is_refused():
    with pytest.raises(CommbenchError, match="larger than 64 MiB"):
        read(b" " * (MAX_FILE_NBYTES + 1))


def test_lines_are_cut():
    (line,) = clean_lines("x" * 100_000 + "\n")
    assert len(line.text) == 4096
