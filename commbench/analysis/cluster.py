"""Who is compared: endpoints (a node, or one rail of it), and groups of them that can be slow as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """Endpoints that share something, such as a rack and its switch; `kind` is the word for it."""

    kind: str
    name: str
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes by name, each with `rails` endpoints: endpoint `node * rails + rail`. Rails are only compared as wholes."""

    hosts: tuple[str, ...]
    rails: int = 1
    groups: tuple[NamedGroup, ...] = ()

    @classmethod
    def of(cls, hosts: Sequence[str], *, rails: int = 1, racks: Mapping[str, Sequence[str]] | None = None) -> "Cluster":
        """The cluster of `hosts` with its racks by name; hosts of a rack that do not take part are passed over."""
        place = {host: node for node, host in enumerate(hosts)}
        by_name = {name: [place[host] for host in members if host in place] for name, members in (racks or {}).items()}
        groups = [NamedGroup("rack", name, _endpoints(nodes, rails)) for name, nodes in by_name.items()]
        if rails > 1:
            groups += [NamedGroup("node", host, _endpoints([node], rails)) for node, host in enumerate(hosts)]
        return cls(tuple(hosts), rails, tuple(group for group in groups if len(group.members) > 1))

    @property
    def endpoints(self) -> int:
        return len(self.hosts) * self.rails

    def host(self, endpoint: int) -> str:
        return self.hosts[endpoint // self.rails]

    def rail(self, endpoint: int) -> int:
        return endpoint % self.rails

    def name(self, endpoint: int) -> str:
        """`n3`, or `n3 rail 2` where nodes have several."""
        return self.host(endpoint) + (f" rail {self.rail(endpoint)}" if self.rails > 1 else "")


def _endpoints(nodes: Sequence[int], rails: int) -> tuple[int, ...]:
    return tuple(node * rails + rail for node in nodes for rail in range(rails))
