"""Files below a root: within bounds, and never out of a captured tree."""

import os
from pathlib import Path

import pytest

from commbench.machine.tree import Tree, cpu_list, in_order, read_number


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("s3cret")
    return Tree(tmp_path / "root")


def _write(tree: Tree, path: str, content: bytes) -> None:
    file = tree.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"active\n", "active"),
        (b"32768\t60999\n", "32768 60999"),
        (b"", ""),
        (b"a\nb", ""),
        (b"\0\1", ""),
        (b"x" * 257, ""),
        (b"x" * (1 << 20), ""),
    ],
)
def test_a_word_is_one_line_that_prints(tree, content, word):
    _write(tree, "f", content)
    assert tree.word("f") == word


def test_a_file_is_read_up_to_its_limit(tree):
    _write(tree, "log", b"0123456789")
    assert tree.read_bytes("log", 4) == b"0123"
    assert tree.read_bytes("log", 4, tail=True) == b"6789"
    assert tree.read_bytes("log", 4, offset=5) == b"5678"
    assert tree.read_bytes("log", 4, offset=50) == b""
    assert tree.read_bytes("log", 4, offset=1 << 70) is None


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_waited_for(tree, make):
    make(tree.root / "f")
    assert tree.read_bytes("f") is None
    assert tree.word("f") == ""


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "loop"])
def test_a_link_does_not_lead_out_of_a_captured_tree(tree, target):
    os.symlink(target, tree.root / "loop" if target == "loop" else tree.root / "f")
    name = "loop" if target == "loop" else "f"
    assert (tree.text(name), tree.exists(name)) == (None, False)


def test_a_folder_that_leads_out_of_a_captured_tree_is_not_there(tree, tmp_path):
    os.symlink(tmp_path, tree.root / "up")
    assert tree.text("up/secret") is None
    assert tree.names("up") is None
    assert tree.link("up") == ""


def test_links_inside_are_followed(tree):
    _write(tree, "sys/devices/pci0000:3a/0000:3b:00.0/class", b"0x020000")
    os.makedirs(tree.root / "sys/bus")
    os.symlink("../devices/pci0000:3a/0000:3b:00.0", tree.root / "sys/bus/card")
    assert tree.text("sys/bus/card/class") == "0x020000"
    assert tree.link("sys/bus/card") == "sys/devices/pci0000:3a/0000:3b:00.0"
    assert tree.pci_address("sys/bus/card") == "0000:3b:00.0"


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("0x1f", 31), ("-1", None), ("", None), ("1e3", None), ("9" * 21, None), ("٣", None), ("0x", None)],
)
def test_numbers(text, number):
    assert read_number(text) == number


def test_names_are_in_the_order_of_their_numbers():
    assert sorted(["mlx5_10", "mlx5_2", "eth0", "mlx5_1"], key=in_order) == ["eth0", "mlx5_1", "mlx5_2", "mlx5_10"]


def test_cpu_lists():
    assert cpu_list({8, 0, 1, 2, 10, 11}) == "0-2,8,10-11"
    assert cpu_list(()) == ""
