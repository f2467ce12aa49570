"""Groups of real ranks: whoever is not in one waits for nobody, and ranks may be in more of them than others."""

import socket
import sys
from pathlib import Path

import pytest

from commbench.results.store import load_run
from tests.conftest import Commands, sweep

pytestmark = pytest.mark.dist


def test_a_group_costs_those_that_are_not_in_it_no_waiting(commands: Commands) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    started = [
        commands.start(
            [sys.executable, "-m", "tests.dist.make_groups"], RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=port
        )
        for rank in range(3)
    ]
    assert [(commands.end(process, timeout=90).code) for process in started] == [0, 0, 0]


LAYOUTS = ("world", "node", "rail", "mesh:dp=2,tp=2", "pairs", "halves", "strided:3", "ladder", "ranks:0/1-3")


def test_every_layout_on_five_or_four_ranks(commands: Commands, tmp_path: Path) -> None:
    for ranks, layouts in ((4, LAYOUTS), (5, ("ladder", "pairs", "world", "ranks:4/0-1", "strided:2"))):
        out = tmp_path / str(ranks)
        chosen = [option for layout in layouts for option in ("--layout", layout)]
        options = (
            "--ranks",
            str(ranks),
            "--collectives",
            "all_reduce",
            "--sizes",
            "1K",
            "--budget",
            "1s",
            "--no-plots",
        )
        ended = commands.run(sweep(*options, *chosen, "--concurrency", "alone", "--concurrency", "together",
                                   "--out", str(out)))  # fmt: skip
        assert ended.code == 0, ended.err
        rows = load_run(out).rows
        assert all(row.wrong == 0 and row.seconds_median for row in rows if row.ranks > 1)
        assert {row.layout.partition(":")[0] for row in rows} == {layout.partition(":")[0] for layout in layouts}
