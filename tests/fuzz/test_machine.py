"""Whatever is in the files: facts, with what is garbled unseen, and a snapshot and a topology of them."""

import random

import pytest

from commbench.machine.snapshot import format_snapshot, read_snapshot
from commbench.topology.from_facts import make_topology
from tests.trees import Files, Link, dgx_facts, dgx_files
from tests.unit.results.importers.mutate import mutate

TREES = 15
_FILES = {
    path: text if isinstance(text, bytes) else f"{text}\n".encode()
    for path, text in dgx_files(roce=True).items()
    if text is not None and not isinstance(text, Link)
}
_WORDS = [b"0", b"-1", b"0xffff", b"4: ACTIVE", b"0-7\n", b"32.0 GT/s PCIe\n", bytes(64), b"\xff" * 4096]


def damaged(rng: random.Random) -> Files:
    """A tree in which a third of the files is damaged, missing, a word of another, or a link to anywhere."""
    edits: Files = {}
    for path in rng.sample(sorted(_FILES), len(_FILES) // 3):
        what = rng.random()
        if what < 0.6:
            edits[path] = mutate(_FILES[path], rng, _WORDS)
        elif what < 0.8:
            edits[path] = rng.choice([*_WORDS, None])
        else:
            edits[path] = Link(rng.choice(sorted(_FILES)) if what < 0.95 else path)
    return edits


@pytest.mark.parametrize("seed", range(TREES))
def test_a_damaged_tree_gives_facts(seed):
    facts = dgx_facts(damaged(random.Random(seed)), roce=True)
    assert read_snapshot(format_snapshot(facts).encode(), "host.json") == facts
    assert make_topology(facts).devices
