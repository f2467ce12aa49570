"""Which NCCL a process has loaded, from its map of memory."""

from pathlib import Path

import pytest

from commbench.machine import nccl_loaded
from commbench.machine.nccl_loaded import ask_nccl_version, format_nccl_version, loaded_nccl

MAPS = """\
7f10-7f20 r-xp 00000000 08:01 11 /usr/lib/libc.so.6
7f20-7f30 r-xp 00000000 08:01 12 /opt/my own/lib/libnccl.so.2.27.5
7f30-7f40 r-xp 00000000 08:01 13 /opt/lib/libnccl-net.so
7f40-7f50 rw-p 00000000 00:00 0
"""


def test_the_mapped_library_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "maps").write_text(MAPS)
    monkeypatch.setattr(
        nccl_loaded, "ask_nccl_version", lambda path: ("2.27.5", "") if "my own" in path else ("", "no")
    )
    found = {"nccl": "2.27.5", "nccl_library": "/opt/my own/lib/libnccl.so.2.27.5"}
    assert loaded_nccl(tmp_path / "maps") == found


def test_a_plugin_is_no_nccl_and_no_map_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "maps").write_text(MAPS.replace("/opt/my own/lib/libnccl.so.2.27.5", "/opt/libnccl-tuner.so"))
    assert loaded_nccl(tmp_path / "maps") == {}
    assert loaded_nccl(tmp_path / "absent") == {}


def test_what_does_not_load_says_why(tmp_path: Path) -> None:
    (tmp_path / "maps").write_text(f"7f20-7f30 r-xp 00000000 08:01 12 {tmp_path}/libnccl.so.2\n")
    assert loaded_nccl(tmp_path / "maps") == {"nccl_library": f"{tmp_path}/libnccl.so.2"}
    assert "cannot open" in ask_nccl_version(f"{tmp_path}/libnccl.so.2")[1]


@pytest.mark.parametrize(("code", "text"), [(2804, "2.8.4"), (22105, "2.21.5"), (23007, "2.30.7"), (20903, "2.9.3")])
def test_versions_are_numbers_of_two_kinds(code: int, text: str) -> None:
    assert format_nccl_version(code) == text
