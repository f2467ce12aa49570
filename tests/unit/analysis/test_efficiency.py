"""Findings: each oddity is named with its explanation, and a sound machine has none."""

import numpy as np
import pytest

from commbench.analysis.efficiency import find_efficiency
from commbench.analysis.fit import DEFAULT_WINDOW, fit_curve
from tests.unit.analysis.make import line, make_curve


def findings_of(*curves):
    fits = [fit_curve(curve, DEFAULT_WINDOW, np.random.default_rng(0)) for curve in curves]
    return find_efficiency(fits, DEFAULT_WINDOW)


def by_rule(*curves):
    return {finding.rule: finding for finding in findings_of(*curves)}


def ring(collective="all_reduce", rate=150e9, **how):
    return make_curve(line(40e-6, rate), collective=collective, nominal=how.pop("nominal", 200e9), **how)


def test_a_sound_machine_has_no_findings():
    assert findings_of(ring()) == []


@pytest.mark.parametrize(
    ("collective", "rate", "nodes", "verdict", "word"),
    [
        ("all_reduce", 100e9, 1, "warn", "width and speed"),
        ("all_reduce", 340e9, 1, "ok", "network that reduces"),
        ("all_reduce", 500e9, 1, "warn", "not that of these links"),
        ("all_reduce", 500e9, 2, "ok", "all links of a node"),
        ("all_gather", 250e9, 1, "warn", "not that of these links"),
        ("all_gather", 700e9, 2, "ok", "all links of a node"),
        ("all_to_all", 250e9, 1, "warn", "not that of these links"),
        ("all_to_all", 340e9, 2, "ok", "all links of a node"),
        ("all_to_all", 500e9, 2, "warn", "not that of these links"),
        ("send_recv", 250e9, 2, "warn", "not that of these links"),
    ],
)
def test_the_rate_against_the_link(collective, rate, nodes, verdict, word):
    finding = by_rule(ring(collective, rate, nodes=nodes))["fit.rate"]
    assert finding.verdict == verdict
    assert word in finding.action
    assert f"{rate / 200e9:.1%}" in finding.observed


def test_an_unknown_rate_is_skipped_not_fine():
    finding = by_rule(ring(nominal=None))["fit.rate"]
    assert (finding.verdict, finding.subject) == ("skip", "nvlink")


def test_a_larger_size_that_is_faster():
    curve = make_curve(lambda q: (40e-6 + q / 150e9) * (3 if 50e6 < q < 70e6 else 1), nominal=200e9)
    finding = by_rule(curve)["fit.monotony"]
    assert "64 MiB" in finding.observed
    assert "32 MiB" in finding.observed


def test_noise_is_not_a_broken_order():
    assert "fit.monotony" not in by_rule(make_curve(lambda q: 40e-6, noise=0.2, batches=30, nominal=200e9))


def test_a_bend_upwards():
    curve = make_curve(
        lambda q: 40e-6 + (q / 150e9 if q < 4e6 else 3 * q / 150e9), nominal=200e9, noise=0.005, batches=30
    )
    finding = by_rule(curve)["fit.bend"]
    assert finding.observed.startswith("from 4 MiB on a byte costs 3.0")


def test_a_poor_line_says_why():
    curve = make_curve(lambda q: 40e-6 + (q / 150e9 if q < 4e7 else 5 * q / 150e9), nominal=200e9)
    finding = by_rule(curve)["fit.line"]
    assert "above 10%" in finding.observed
    assert "--window" in finding.action


def test_a_slow_group():
    assert "2.50 times" in by_rule(ring(slowest_ratio=2.5))["fit.groups"].observed


def test_all_reduce_is_its_two_parts():
    curves = [make_curve(line(steps * 5e-6, 150e9), collective=name, nominal=200e9)
              for name, steps in (("all_reduce", 14), ("reduce_scatter", 7), ("all_gather", 7))]  # fmt: skip
    (finding,) = findings_of(*curves)
    assert (finding.rule, finding.verdict, finding.action) == ("fit.parts", "ok", "")
    assert "is 1.00 of" in finding.observed


def test_a_backend_that_reduces_everything_and_drops_the_rest():
    curves = [
        make_curve(line(40e-6, 150e9), collective="all_reduce", nominal=200e9),
        make_curve(line(40e-6, 75e9), collective="reduce_scatter"),
        make_curve(line(20e-6, 150e9), collective="all_gather"),
    ]
    found = by_rule(*curves)
    assert found["fit.reduce-scatter"].action.startswith("reduce_scatter takes as long as all_reduce here")
    assert "1.00 of T(all_reduce)" in found["fit.reduce-scatter"].observed
    assert "fit.parts" not in found


@pytest.mark.parametrize(("rate", "verdict"), [(60e9, "warn"), (400e9, "ok")])
def test_all_reduce_apart_from_its_parts(rate, verdict):
    curves = [ring("all_reduce", rate), ring("reduce_scatter"), ring("all_gather")]
    assert by_rule(*curves)["fit.parts"].verdict == verdict


def test_a_rate_that_falls_with_n():
    curves = [ring(rate=rate, ranks=ranks, nominal=160e9) for ranks, rate in ((2, 150e9), (4, 148e9), (8, 115e9))]
    finding = by_rule(*curves)["fit.scaling"]
    assert finding.observed == "B against 2 ranks: 99% at 4 ranks, 77% at 8 ranks"


def test_modes_are_not_compared():
    curves = [ring(), ring("reduce_scatter", 75e9, mode="latency"), ring("all_gather")]
    assert "fit.reduce-scatter" not in by_rule(*curves)
