"""One line for a link class, and lines over N: exact where the world is a ring, honest where it is not."""

from dataclasses import replace

import numpy as np
import pytest

from commbench.analysis.fit import DEFAULT_WINDOW, fit_curve
from commbench.analysis.joint import fit_joint
from commbench.analysis.scaling import fit_scaling, scaled_seconds
from commbench.plan.collectives import COLLECTIVES, MAIN_COLLECTIVES
from tests.unit.analysis.make import SIZES, line, make_curve

STEP, RATE = 5e-6, 150e9


def ring(collective, ranks, step=STEP, rate=RATE, **how):
    cost = line(COLLECTIVES[collective].steps(ranks) * step, rate)
    return make_curve(cost, collective=collective, ranks=ranks, **how)


def joint_of(curves):
    return fit_joint(curves, DEFAULT_WINDOW, np.random.default_rng(0))


def scaling_of(curves):
    fits = [fit_curve(curve, DEFAULT_WINDOW, np.random.default_rng(0)) for curve in curves]
    return fit_scaling(fits, DEFAULT_WINDOW)


def test_rings_share_one_step_and_one_rate():
    curves = [ring(name, ranks) for name in MAIN_COLLECTIVES for ranks in (2, 8)]
    (joint,) = joint_of(curves)
    assert joint.alpha_step.value == pytest.approx(STEP)
    assert joint.bytes_per_second.value == pytest.approx(RATE)
    assert joint.errors.largest < 1e-6
    assert joint.own_mape < 1e-6
    assert joint.errors.left_out_mape < 1e-6
    assert joint.curves == tuple(f"{name} {ranks}" for name in MAIN_COLLECTIVES for ranks in (2, 8))


def test_the_price_of_one_line_is_told():
    """One collective at half the rate: lines of their own fit exactly, a joint one cannot."""
    curves = [ring("all_reduce", 8), ring("all_gather", 8, rate=RATE / 2)]
    (joint,) = joint_of(curves)
    assert joint.own_mape < 1e-6
    assert joint.errors.mape > 0.1
    assert joint.errors.left_out_mape > joint.errors.mape


def test_link_classes_and_modes_stay_apart():
    curves = [
        ring(name, 8, step=step, link_class=link_class, mode=mode)
        for name in ("all_reduce", "all_gather")
        for link_class, mode, step in (
            ("nvlink", "throughput", 1e-6),
            ("net", "throughput", 2e-6),
            ("net", "latency", 3e-6),
        )
    ]
    found = joint_of(curves)
    assert [(joint.link_class, joint.mode) for joint in found] == [
        ("nvlink", "throughput"),
        ("net", "throughput"),
        ("net", "latency"),
    ]
    assert [joint.alpha_step.value for joint in found] == pytest.approx([1e-6, 2e-6, 3e-6])


def test_one_curve_or_too_few_sizes_are_no_joint_line():
    assert joint_of([ring("all_reduce", 8)]) == []
    assert joint_of([ring(name, 8, sizes=SIZES[:8]) for name in MAIN_COLLECTIVES]) == []


def test_the_joint_interval_holds_the_planted_step():
    curves = [ring(name, 8, noise=0.02, batches=30, seed=seed) for seed, name in enumerate(MAIN_COLLECTIVES)]
    (joint,) = joint_of(curves)
    assert joint.alpha_step.low < STEP < joint.alpha_step.high
    assert joint.bytes_per_second.low < RATE < joint.bytes_per_second.high


def test_a_ring_is_followed_to_other_n():
    (scaling,) = scaling_of([ring("all_reduce", ranks) for ranks in (2, 4, 8)])
    assert scaling.per_step_seconds == pytest.approx(STEP)
    assert scaling.base_seconds == pytest.approx(0, abs=1e-9)
    assert [at.ranks for at in scaling.rates] == [2, 4, 8]
    assert scaling.left_out_mape < 1e-3
    spec = COLLECTIVES["all_reduce"]
    expected = spec.steps(32) * STEP + spec.factor(32) * (1 << 26) / RATE
    assert scaled_seconds(scaling, 1 << 26, 32) == pytest.approx(expected, rel=1e-3)


def test_with_two_n_the_error_is_not_known():
    (scaling,) = scaling_of([ring("all_reduce", ranks) for ranks in (2, 4)])
    assert scaling.left_out_mape is None


def test_one_n_is_no_model():
    assert scaling_of([ring("all_reduce", 8), ring("all_gather", 4)]) == []


def test_messages_between_ranks_have_no_n_model():
    curves = [make_curve(line(1e-6, 1e10), ranks=ranks) for ranks in (2, 4)]
    pairs = [replace(curve, key=replace(curve.key, collective="point_to_point")) for curve in curves]
    assert scaling_of(pairs) == []


def test_a_rate_that_falls_shows_in_the_n_that_is_left_out():
    rates = {2: 200e9, 4: 190e9, 8: 90e9}
    (scaling,) = scaling_of([ring("all_reduce", ranks, rate=rate) for ranks, rate in rates.items()])
    assert scaling.left_out_mape > 0.15
    assert {at.ranks: at.bytes_per_second for at in scaling.rates} == pytest.approx(rates, rel=1e-3)


def test_between_two_n_the_rate_is_between():
    (scaling,) = scaling_of([ring("all_reduce", ranks, rate=rate) for ranks, rate in ((2, 200e9), (8, 100e9))])
    huge = 1 << 40
    busbw = COLLECTIVES["all_reduce"].factor(4) * huge / scaled_seconds(scaling, huge, 4)
    assert busbw == pytest.approx(150e9, rel=0.01)


def test_latency_and_throughput_are_two_models():
    curves = [ring("all_reduce", ranks, mode=mode) for ranks in (2, 4) for mode in ("throughput", "latency")]
    assert [scaling.mode for scaling in scaling_of(curves)] == ["throughput", "latency"]
