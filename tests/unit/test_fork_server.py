"""The server of local workers ends as soon as the command does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_MODULE = "import atexit, pathlib\natexit.register(pathlib.Path('taken_apart').touch)\n"
_COMMAND = "from multiprocessing import forkserver as f\nf.set_forkserver_preload({0})\nf.ensure_running()\n"


@pytest.mark.parametrize(("last", "taken_apart"), [([], True), (["commbench.launch.fork_server"], False)])
def test_what_it_loaded_is_not_taken_apart(tmp_path: Path, last: list[str], taken_apart: bool) -> None:
    (tmp_path / "heavy.py").write_text(_MODULE)
    command = [sys.executable, "-c", _COMMAND.format(["heavy", *last])]
    # The pipe is open until the server has ended, too.
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": "."}, stdout=subprocess.PIPE, check=True)
    assert (tmp_path / "taken_apart").exists() is taken_apart
