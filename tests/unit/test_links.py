"""commbench.plan.links: link classes by name and the nominal rates that are given for them."""

import pytest

from commbench.errors import UsageError
from commbench.plan.links import (
    LINK_CLASSES,
    LinkLine,
    collect_link_rates,
    is_network,
    parse_link_line,
    parse_link_rate,
)


@pytest.mark.parametrize("link_class", LINK_CLASSES)
def test_every_class_takes_a_rate(link_class):
    assert parse_link_rate(f"{link_class}=400Mbit/s") == (link_class, 50e6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read the link rate ''"),
        ("net", "cannot read the link rate 'net'"),
        ("=1GB/s", "unknown link class ''"),
        ("Net=1GB/s", "unknown link class 'Net': did you mean net?"),
        ("net=", "cannot read the rate ''"),
        ("net=1", "cannot read the rate '1'"),
        ("net=-1GB/s", "cannot read the rate '-1GB/s'"),
        ("net=1GB/s=2", "cannot read the rate '1GB/s=2'"),
    ],
)
def test_refuses_a_bad_link_rate(text, message):
    with pytest.raises(UsageError) as caught:
        parse_link_rate(text)
    assert message in str(caught.value)


def test_a_rate_may_be_said_twice_but_not_two():
    assert collect_link_rates((("net", 1e9), ("node", 2e9), ("net", 1e9))) == (("net", 1e9), ("node", 2e9))
    with pytest.raises(UsageError, match="net two rates"):
        collect_link_rates((("net", 1e9), ("net", 2e9)))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("net=400Mbit/s", LinkLine("net", 50e6, 0.0)),
        ("nvlink=150GB/s,3us", LinkLine("nvlink", 150e9, 3e-6)),
        ("net.rail=25GB/s, 4 us", LinkLine("net.rail", 25e9, 4e-6)),
    ],
)
def test_a_line_is_a_rate_and_an_alpha(text, line):
    assert parse_link_line(text) == line


@pytest.mark.parametrize("text", ["net=1GB/s,", "net=1GB/s,-1us", "net=1GB/s,1us,1us", "3us,net=1GB/s"])
def test_refuses_a_bad_line(text):
    with pytest.raises(UsageError):
        parse_link_line(text)


def test_which_classes_leave_the_node():
    assert [name for name in LINK_CLASSES if is_network(name)] == ["net", "net.rail", "net.cross"]
