"""commbench.plan.links: link classes by name and the nominal rates that are given for them."""

import pytest

from commbench.errors import UsageError
from commbench.plan.links import LINK_CLASSES, collect_link_rates, parse_link_rate


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
