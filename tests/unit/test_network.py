"""commbench.machine.network: the interface that reaches the others, and never one that does not."""

import socket
from collections import namedtuple

import pytest

from commbench.errors import RendezvousError
from commbench.machine.network import Interface, choose_interface

UP = {"lo": "127.0.0.1", "eth0": "10.0.0.3", "ib0": "192.168.7.3"}


def _choose(master: str, all_here: bool = False, up: dict[str, str] = UP, **environment: str) -> Interface:
    routes = {"n1": "192.168.7.3", "192.0.2.1": "10.0.0.3", "me": "127.0.1.1", "tunnel": "10.9.9.9"}
    return choose_interface(
        master, all_here=all_here, environment=environment, addresses=up, route=lambda target: routes.get(target)
    )


@pytest.mark.parametrize(
    ("master", "all_here", "chosen"),
    [
        ("n1", True, Interface("lo", "127.0.0.1", "all ranks are on this node")),
        ("127.0.0.1", False, Interface("lo", "127.0.0.1", "all ranks are on this node")),
        ("localhost", False, Interface("lo", "127.0.0.1", "all ranks are on this node")),
        ("n1", False, Interface("ib0", "192.168.7.3", "on the way to n1")),
        ("me", False, Interface("eth0", "10.0.0.3", "it has the default route")),  # Debian: 127.0.1.1 is my own name
        ("nobody", False, Interface("eth0", "10.0.0.3", "it has the default route")),
        ("tunnel", False, Interface("eth0", "10.0.0.3", "it has the default route")),
    ],
)
def test_choose_interface(master: str, all_here: bool, chosen: Interface) -> None:
    assert _choose(master, all_here) == chosen


def test_without_any_route_the_first_that_is_up() -> None:
    up = {"lo": "127.0.0.1", "eth1": "10.1.0.3"}
    assert _choose("me", up=up) == Interface("eth1", "10.1.0.3", "the first one that is up")


def test_what_the_user_set_is_obeyed() -> None:
    assert _choose("n1", GLOO_SOCKET_IFNAME="eth0") == Interface("eth0", "10.0.0.3", "GLOO_SOCKET_IFNAME says so")
    assert _choose("n1", all_here=True, GLOO_SOCKET_IFNAME="eth0,ib0").name == "eth0,ib0"


def test_what_the_user_set_wrongly_is_named() -> None:
    with pytest.raises(RendezvousError, match=r"GLOO_SOCKET_IFNAME=eth9 names 'eth9', .* it has lo, eth0, ib0\."):
        _choose("n1", GLOO_SOCKET_IFNAME="eth9")


def test_loopback_never_reaches_another_node() -> None:
    with pytest.raises(RendezvousError, match="no interface but loopback is up here, and n1 is another node's address"):
        _choose("n1", up={"lo": "127.0.0.1"})


def test_interfaces_that_are_down_or_a_container_bridge_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    address = namedtuple("address", "family address")
    stats = namedtuple("stats", "isup")
    v4 = {"lo": "127.0.0.1", "docker0": "172.17.0.1", "eth0": "10.0.0.3", "eth1": "10.1.0.3"}
    found = {name: [address(socket.AF_INET, text), address(socket.AF_INET6, "fe80::1%x")] for name, text in v4.items()}
    monkeypatch.setattr("psutil.net_if_addrs", lambda: found)
    monkeypatch.setattr("psutil.net_if_stats", lambda: {name: stats(name != "eth0") for name in v4})
    chosen = choose_interface("n9", all_here=False, environment={}, route=lambda target: None)
    assert chosen == Interface("eth1", "10.1.0.3", "the first one that is up")


def test_this_machine_itself_is_reached_over_loopback() -> None:
    assert choose_interface("127.0.0.1", all_here=False, environment={}).name == "lo"
