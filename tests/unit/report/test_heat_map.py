"""Pairs as a square."""

import pytest

from commbench.report.heat_map import MOST_ROWS, make_heat_maps
from commbench.report.slow_groups import SLOW
from tests.unit.report.make import curve_rows, reported, unfitted
from tests.unit.test_slow_groups import HOSTS, all_pairs, grouped


def test_a_slow_rank_stands_out() -> None:
    (heat_map,) = make_heat_maps([unfitted(grouped(all_pairs(4, {2})))])
    assert heat_map.title == "all_reduce 1 KiB float32 sum, layout pairs, alone"
    assert heat_map.usual == "1.00 ms over net"
    assert [(edge.ranks, edge.host, edge.is_slow) for edge in heat_map.edges] == [
        (str(rank), HOSTS[rank].name, rank == 2) for rank in range(4)
    ]
    assert {(cell.row, cell.column) for cell in heat_map.cells} == {
        (a, b) for a in range(4) for b in range(4) if a != b
    }
    for cell in heat_map.cells:
        assert cell.is_slow is (2 in (cell.row, cell.column))
        assert cell.shade == (pytest.approx(0.792, abs=1e-3) if cell.is_slow else 0.0)
        assert cell.text == "0.0102"
    assert heat_map.cells[0].tooltip == "0-1: 1.00 ms, 0.0102 GB/s, 1.00 times the usual time"


def test_shades_are_clipped() -> None:
    seconds = all_pairs(4) | {"0-1": 1.0, "0-2": 1e-6}
    shades = {cell.tooltip[:3]: cell.shade for cell in make_heat_maps([unfitted(grouped(seconds))])[0].cells}
    assert (shades["0-1"], shades["0-2"]) == (1.0, 0.0)


def test_many_ranks_share_a_row_that_shows_the_slowest_pair() -> None:
    size = MOST_ROWS + 10
    (heat_map,) = make_heat_maps([unfitted(grouped(all_pairs(size, slow_pairs={"8-30"})))])
    assert (heat_map.ranks_per_row, len(heat_map.edges)) == (2, size // 2)
    assert heat_map.edges[4].ranks == "8–9"
    assert {(cell.row, cell.column) for cell in heat_map.cells if cell.is_slow} == {(4, 15), (15, 4)}
    assert len(heat_map.cells) <= MOST_ROWS**2
    assert not heat_map.has_text
    assert all(cell.text == "" for cell in heat_map.cells)


def test_several_runs_are_told_apart() -> None:
    maps = make_heat_maps([unfitted(grouped(all_pairs(4)), "before"), unfitted(grouped(all_pairs(4)), "after")])
    assert [heat_map.title.partition(":")[0] for heat_map in maps] == ["before", "after"]


@pytest.mark.parametrize("name", ["0-1", "0-1 2-3"])
def test_pairs_that_do_not_cross_are_no_square(name: str) -> None:
    assert make_heat_maps([unfitted(grouped(dict.fromkeys(name.split(), 1e-3)))]) == []


def test_without_pairs_there_is_none() -> None:
    assert make_heat_maps([reported(curve_rows())]) == []


def test_slow_means_the_same_everywhere() -> None:
    assert SLOW == 1.25
    (heat_map,) = make_heat_maps([unfitted(grouped(all_pairs(4) | {"0-3": 1.26e-3}))])
    assert sum(cell.is_slow for cell in heat_map.cells) == 2
