"""The fake engine: its machine's grammar, and virtual times that can be worked out by hand."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commbench.engines.base import Link
from commbench.engines.fake import FakeEngine, open_engine
from commbench.engines.fake_machine import FAKE_KEYS, FakeLine, FakeMachine, parse_fake_machine
from commbench.errors import UsageError
from commbench.measure.loop import time_batch
from commbench.plan.collectives import COLLECTIVES
from commbench.plan.groups import Group
from tests.factories import make_case, make_group

DEFAULT = FakeMachine()
NVLINK, NET = DEFAULT.lines
US = 1e-6


@pytest.mark.parametrize(
    ("spec", "machine"),
    [
        ("", DEFAULT),
        (" , ,", DEFAULT),
        ("ranks-per-node=4", FakeMachine(ranks_per_node=4)),
        ("noise=2%", FakeMachine(noise=0.02)),
        ("noise=0", DEFAULT),
        ("nvlink=3us:1GB/s", FakeMachine(lines=(NET, FakeLine("nvlink", 0, 3 * US, 1e9)))),
        ("net=1ms:400mbit", FakeMachine(lines=(NVLINK, FakeLine("net", 0, 1e-3, 50e6)))),
        ("net@64K=20us:1GB/s", FakeMachine(lines=(NVLINK, NET, FakeLine("net", 65536, 20 * US, 1e9)))),
        ("net@1K=1us:1GB/s, net@1K=2us:2GB/s", FakeMachine(lines=(NVLINK, NET, FakeLine("net", 1024, 2 * US, 2e9)))),
        ("slow-rank=3:2", FakeMachine(slow_ranks={3: 2.0})),
        ("slow-rank=3:x1.5,slow-rank=0:4", FakeMachine(slow_ranks={3: 1.5, 0: 4.0})),
        ("contention=2.5", FakeMachine(contention=2.5)),
        ("slow-link=0-9:10", FakeMachine(slow_links={(0, 9): 10.0})),
        ("ranks-per-node=2,noise=0.5,slow-rank=1:2", FakeMachine(2, noise=0.5, slow_ranks={1: 2.0})),
    ],
)
def test_parse(spec, machine):
    assert parse_fake_machine(spec) == machine


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ("speed=9", "'speed'"),
        ("ranks-per-nod=9", "did you mean ranks-per-node?"),
        ("=4", "''"),
        ("noise", "'noise'"),
        ("ranks-per-node", "'ranks-per-node'"),
        ("noise=2%,ranks-per-node=0", "'ranks-per-node=0'"),
        ("ranks-per-node=-1", "'ranks-per-node=-1'"),
        ("ranks-per-node=2.5", "'ranks-per-node=2.5'"),
        ("ranks-per-node=" + "9" * 5000, "ranks-per-node=99"),
        ("ranks-per-node@4=4", "'ranks-per-node@4=4'"),
        ("noise=100%", "'noise=100%'"),
        ("noise=-1", "'noise=-1'"),
        ("noise@64K=2%", "'noise@64K=2%'"),
        ("net=3us", "'net=3us'"),
        ("net=3us:1GB/s:1", "'net=3us:1GB/s:1'"),
        ("net=:1GB/s", "'net=:1GB/s'"),
        ("net=3us:", "'net=3us:'"),
        ("net=3us:0GB/s", "'net=3us:0GB/s'"),
        ("net=3us:1GB", "'net=3us:1GB'"),
        ("net=nan:1GB/s", "'net=nan:1GB/s'"),
        ("net=3us:1e999GB/s", "'net=3us:1e999GB/s'"),
        ("net@=3us:1GB/s", "'net@=3us:1GB/s'"),
        ("net@0=3us:1GB/s", "'net@0=3us:1GB/s'"),
        ("net@big=3us:1GB/s", "'net@big=3us:1GB/s'"),
        ("slow-rank=1", "'slow-rank=1'"),
        ("slow-rank=a:2", "'slow-rank=a:2'"),
        ("slow-rank=-1:2", "'slow-rank=-1:2'"),
        ("slow-rank=1:0", "'slow-rank=1:0'"),
        ("slow-rank=1:nan", "'slow-rank=1:nan'"),
        ("slow-rank=1:inf", "'slow-rank=1:inf'"),
        ("slow-link=1:2", "'slow-link=1:2'"),
        ("slow-link=1-2-3:2", "'slow-link=1-2-3:2'"),
        ("slow-link=1-1:2", "'slow-link=1-1:2'"),
        ("slow-link=1-x:2", "'slow-link=1-x:2'"),
    ],
)
def test_bad_part_is_named(spec, named):
    with pytest.raises(UsageError) as error:
        parse_fake_machine(spec)
    assert named in str(error.value)


PIECES = st.sampled_from(
    [*FAKE_KEYS, "=", "@", ":", ",", "-", "x", "64K", "3us", "1GB/s", "2%", "0", "7", "nan", "1e9"]
)


@given(spec=st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(max_size=20)))
@example(spec="noise=٣")
@example(spec="slow-rank=" + "1" * 5000 + ":2")
def test_any_text_is_a_machine_or_a_usage_error(spec):
    try:
        machine = parse_fake_machine(spec)
    except UsageError:
        return
    for link_class in ("nvlink", "net"):
        line = machine.line(link_class, 0)
        assert line.from_nbytes == 0
        assert min(line.alpha_step_seconds, line.bytes_per_second, machine.ranks_per_node) > 0


# -- exact times -------------------------------------------------------------------------------------------------------

MACHINE = "ranks-per-node=4,nvlink=1us:100GB/s,nvlink@64K=2us:200GB/s,net=10us:10GB/s"
NODE, FAR, MIXED = make_group(4), Group("rail", (0, 4)), make_group(8)


@pytest.mark.parametrize(
    ("collective", "nbytes", "group", "seconds"),
    [
        ("all_reduce", 1000, NODE, 6 * US + 1.5 * 1000 / 100e9),
        ("all_gather", 4000, NODE, 3 * US + 0.75 * 4000 / 100e9),
        ("send_recv", 4000, NODE, 1 * US + 4000 / 100e9),
        ("broadcast", 4000, NODE, 3 * US + 4000 / 100e9),
        ("barrier", 0, NODE, 3 * US),
        ("all_reduce", 65532, NODE, 6 * US + 1.5 * 65532 / 100e9),  # the last size of the first regime
        ("all_reduce", 65536, NODE, 12 * US + 1.5 * 65536 / 200e9),  # the first of the second
        ("all_reduce", 65539, NODE, 12 * US + 1.5 * 65536 / 200e9),  # the true size counts
        ("all_gather", 65539, NODE, 6 * US + 0.75 * 65536 / 200e9),
        ("all_reduce", 1000, FAR, 20 * US + 1000 / 10e9),
        ("all_reduce", 1 << 20, FAR, 20 * US + (1 << 20) / 10e9),  # the node's regimes are not the network's
        ("all_reduce", 1000, MIXED, 140 * US + 1.75 * 1000 / 10e9),  # one rank elsewhere: all over the net
        ("all_reduce", 1000, make_group(1), 1 * US),
        ("all_reduce", 1000, Group("last", (7,)), 1 * US),
    ],
)
def test_virtual_times_by_hand(collective, nbytes, group, seconds):
    engine = open_engine(ranks=8, spec=MACHINE, seed=0)
    case = make_case(collective, nbytes, group)
    assert engine.seconds(case, group) == pytest.approx(seconds, rel=1e-12)
    call = engine.prepare(case, group, 0)
    assert time_batch(engine.stopwatch, call.run, 3).seconds == pytest.approx(3 * seconds, rel=1e-12)
    assert engine.now_seconds() == pytest.approx(3 * seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("fault", "slow"),
    [
        ("slow-rank=2:3", {"0-3": 3, "2": 3, "4-7": 1, "0,4": 1, "all": 3}),
        ("slow-rank=2:3,slow-rank=5:2", {"0-3": 3, "4-7": 2, "all": 3}),  # the slowest one, not the product
        ("slow-link=0-4:5", {"0-3": 1, "4-7": 1, "0,4": 5, "4,0": 5, "all": 5, "2": 1}),
        ("slow-link=4-0:5", {"0,4": 5, "0-3": 1}),
        ("slow-link=0-4:5,slow-rank=4:7", {"0,4": 7, "4-7": 7, "0-3": 1}),
    ],
)
def test_faults_slow_exactly_the_groups_that_hold_them(fault, slow):
    sound = open_engine(ranks=8, spec=MACHINE, seed=0)
    faulty = open_engine(ranks=8, spec=f"{MACHINE},{fault}", seed=0)
    groups = {"0-3": NODE, "4-7": make_group(4, 4), "0,4": FAR, "4,0": Group("back", (4, 0)), "all": MIXED}
    groups["2"] = Group("2", (2,))
    for name, factor in slow.items():
        case = make_case("all_reduce", 1000, groups[name])
        assert faulty.seconds(case, groups[name]) == pytest.approx(factor * sound.seconds(case, groups[name])), name


def test_links_are_those_of_the_machine():
    engine = open_engine(ranks=8, spec=MACHINE, seed=0)
    assert engine.link(NODE) == Link("nvlink", 100e9, US)
    assert engine.link(FAR) == engine.link(MIXED) == Link("net", 10e9, 10 * US)
    assert [engine.world.node_of_rank[rank] for rank in engine.ranks] == [0, 0, 0, 0, 1, 1, 1, 1]


# -- noise -------------------------------------------------------------------------------------------------------------


def times(engine: FakeEngine, count: int = 400) -> list[float]:
    """The seconds of `count` single calls."""
    call = engine.prepare(make_case("all_reduce", 1000, NODE), NODE, 0)
    return [time_batch(engine.stopwatch, call.run, 1).seconds for _ in range(count)]


def test_noise_is_seeded_and_only_ever_slows():
    exact = open_engine(ranks=8, spec=MACHINE, seed=0).seconds(make_case("all_reduce", 1000, NODE), NODE)
    first, again, other = (times(open_engine(ranks=8, spec=f"{MACHINE},noise=5%", seed=seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert min(first) >= exact * (1 - 1e-9)  # a clock of many calls rounds
    # exp(5 % of |t|): Student's t with 3 degrees of freedom has its middle at 0.765 on one side, and a heavy tail.
    assert sorted(first)[200] == pytest.approx(exact * 1.039, rel=0.01)
    assert max(first) > 1.15 * exact


def test_drift_is_of_the_run_and_of_each_case_and_stays_through_it():
    cases = [make_case("all_reduce", 1000, NODE, index=index) for index in range(3)]

    def off(seed, case):
        engine = open_engine(ranks=8, spec=f"{MACHINE},drift=2%", seed=seed)
        taken = [time_batch(engine.stopwatch, engine.prepare(case, NODE, 0).run, 1).seconds for _ in range(3)]
        assert max(taken) == pytest.approx(min(taken), rel=1e-9)
        return taken[0] / engine.seconds(case, NODE)

    assert len({off(seed, case) for seed in (1, 2) for case in cases}) == 6
    assert off(1, cases[0]) == off(1, cases[0])
    # exp(2 % of the sum of two Student's t with 3 degrees of freedom): of either sign, with a heavy tail.
    found = sorted(off(seed, cases[0]) for seed in range(200))
    assert found[100] == pytest.approx(1.0, abs=0.01)
    assert found[0] < 0.92
    assert found[-1] > 1.08


def test_without_noise_all_calls_take_the_same():
    assert max(times(open_engine(ranks=8, spec=MACHINE, seed=1))) == pytest.approx(6.015e-6, rel=1e-9)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_any_collective_runs_on_thousands_of_ranks(collective):
    engine = open_engine(ranks=5000, spec="", seed=0)
    world = make_group(5000)
    case = make_case(collective, 1 << 20, world)
    assert engine.unsupported(case) is None
    assert 0 < engine.seconds(case, world) < 1
