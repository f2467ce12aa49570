"""What goes into one curve, what stays apart, and why some rows make none."""

from dataclasses import replace

import numpy as np
import pytest

from commbench.analysis.curves import Launch, group_launches, make_curves
from commbench.results.schema import Host
from tests.factories import UNMEASURED, make_group_record, make_row
from tests.unit.analysis.make import make_launch, rows_of

TIMES = {1024: 1e-4, 2048: 2e-4, 4096: 4e-4}


def curves_of(*launches: Launch):
    return make_curves(launches)


def test_a_curve_has_its_points_by_size():
    (curve,), unfitted = curves_of(make_launch(rows_of({4096: 4e-4, 1024: 1e-4, 2048: 2e-4})))
    assert curve.nbytes.tolist() == [1024, 2048, 4096]
    assert curve.seconds.tolist() == [1e-4, 2e-4, 4e-4]
    assert (curve.factor, curve.steps, curve.groups, curve.launches) == (1.0, 2, 1, 1)
    assert np.isnan(curve.half_widths).all()
    assert unfitted == []


@pytest.mark.parametrize(
    "condition",
    [
        {"mode": "latency"},
        {"dtype": "int32"},
        {"concurrency": "together"},
        {"redop": "max"},
        {"in_place": False},
        {"link_class": "net"},
        {"backend": "nccl"},
        {"ranks": 4},
    ],
)
def test_other_conditions_are_another_curve(condition):
    rows = [*rows_of(TIMES), *rows_of({size: 3 * t for size, t in TIMES.items()}, 3, **condition)]
    curves, _ = curves_of(make_launch(rows))
    assert [curve.seconds[0] for curve in curves] == [1e-4, pytest.approx(3e-4)]


def test_samples_are_the_values_of_a_launch():
    (curve,), _ = curves_of(make_launch(rows_of(TIMES), {(0, 0): [3e-4, 1e-4, 2e-4]}))
    assert curve.points[0].launches[0].tolist() == [1e-4, 2e-4, 3e-4]
    assert curve.points[0].seconds == 2e-4
    assert curve.points[1].launches[0].tolist() == [2e-4]


def test_launches_count_with_their_medians():
    launches = [make_launch(rows_of({size: factor * t for size, t in TIMES.items()})) for factor in (1.0, 2.0, 9.0)]
    (curve,), _ = curves_of(*launches)
    assert curve.launches == 3
    assert curve.seconds.tolist() == pytest.approx([2e-4, 4e-4, 8e-4])


def test_several_groups_count_with_the_median_group_and_the_slowest_is_told():
    groups = [make_group_record(layout="node", name=f"node{index}") for index in range(3)]
    rows = [
        row
        for index, (size, seconds) in enumerate(TIMES.items())
        for group, factor in zip(groups, (1.0, 5.0, 1.1), strict=True)
        for row in rows_of({size: factor * seconds}, index, layout="node", group=group.name)
    ]
    (curve,), _ = curves_of(make_launch(rows, groups=groups))
    assert curve.groups == 3
    assert curve.seconds.tolist() == pytest.approx([1.1e-4, 2.2e-4, 4.4e-4])
    assert curve.slowest_ratio == pytest.approx(5 / 1.1)


def test_the_nominal_rate_is_the_group_s():
    (curve,), _ = curves_of(make_launch(rows_of(TIMES), groups=[make_group_record(bytes_per_second=5e9)]))
    assert curve.nominal_bytes_per_second == 5e9


@pytest.mark.parametrize("status", ["wrong", "unsupported", "skipped", "missing", "failed", "suspect"])
def test_a_row_that_is_not_sound_is_no_point(status):
    rows = [*rows_of(TIMES), *rows_of({8192: 1.0}, 3, status=status)]
    (curve,), _ = curves_of(make_launch(rows))
    assert len(curve.points) == 3


def test_a_message_between_two_ranks_is_one_step_and_every_byte():
    rows = [replace(row, collective="point_to_point") for row in rows_of(TIMES)]
    (curve,), _ = curves_of(make_launch(rows))
    assert (curve.factor, curve.steps) == (1.0, 1)


@pytest.mark.parametrize("seconds", [0.0, -1e-4, 1e-300, 1e300])
def test_a_time_that_cannot_be_is_no_point(seconds):
    rows = [*rows_of(TIMES), *rows_of({8192: seconds}, 3)]
    (curve,), _ = curves_of(make_launch(rows))
    assert len(curve.points) == 3
    samples = {(3, 0): [1e-4, seconds, 2e-4]}
    (curve,), _ = curves_of(make_launch([*rows_of(TIMES), *rows_of({8192: 1e-4}, 3)], samples))
    assert len(curve.points) == 3


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ranks": 1}, "one rank has no link"),
        ({"ranks": None}, "the number of ranks is not known"),
        ({"collective": "barrier", "size_bytes": 0}, "it moves no data"),
        ({"collective": "hypercube"}, "its traffic factor is not known"),
        ({"size_bytes": None}, "the size is not known"),
    ],
)
def test_what_has_no_curve_says_why(changes, reason):
    rows = [replace(row, **changes) for row in rows_of(TIMES)]
    curves, (unfitted,) = curves_of(make_launch(rows))
    assert curves == []
    assert unfitted.reason.startswith(reason)


def test_two_sizes_are_too_few():
    rows = [*rows_of({1024: 1e-4, 2048: 2e-4}), make_row(2, size_bytes=4096, **UNMEASURED)]
    curves, (unfitted,) = curves_of(make_launch(rows))
    assert curves == []
    assert unfitted.reason == "2 measured sizes, a line needs 3"


def test_another_algorithm_is_another_measurement_and_other_debug_output_is_not():
    free, ring, told = (
        make_launch(rows_of(TIMES), environment=environment)
        for environment in ({}, {"NCCL_ALGO": "Ring"}, {"NCCL_DEBUG": "INFO", "MASTER_ADDR": "n0"})
    )
    ring = replace(ring, run=replace(ring.run, directory=ring.run.directory.with_name("run2")))
    assert [len(members) for members in group_launches([free, ring, told, ring])] == [4]
    curves, _ = curves_of(free, ring, told, ring)
    assert [(curve.key.source, curve.launches) for curve in curves] == [("run", 2), ("run2", 2)]


def test_other_software_is_another_machine_and_other_hosts_another_source():
    here = make_launch(rows_of(TIMES))
    there = make_launch(rows_of(TIMES), hosts=(Host("node2", "a CPU", 2, "6.1"),))
    newer = make_launch(rows_of(TIMES), versions={"torch": "3.0"})
    there = replace(there, run=replace(there.run, directory=there.run.directory.with_name("run2")))
    assert [len(members) for members in group_launches([here, there, newer, here])] == [3, 1]
    curves, _ = curves_of(here, there, here)
    assert [(curve.key.source, curve.launches) for curve in curves] == [("run", 2), ("run2", 1)]
