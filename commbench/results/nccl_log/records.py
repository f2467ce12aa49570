"""What a debug log says: communicators, ranks, connections, NICs, settings, warnings. None or empty: not said."""

from dataclasses import dataclass, field
from typing import Literal

from commbench.results.importers.records import LostLine

Kind = Literal["P2P", "SHM", "NET"]
FaultKind = Literal["warning", "failure", "hang", "crash"]


@dataclass(frozen=True, slots=True)
class Process:
    """Who wrote a message. `device`: the CUDA device of the call, the number in brackets."""

    host: str = ""
    pid: int | None = None
    tid: int | None = None
    device: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `place`: source file and line, of warnings; `where`: file:line of the log."""

    process: Process
    level: str
    text: str
    where: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Transport:
    """How data goes from one rank to another. `detail`: how peers share memory (IPC, CUMEM, direct, MNNVL, indirect).

    Of NET: `network` is IB, Socket or a plugin's name, `device` the index of the NIC, `gdr` whether the NIC reads the
    GPU's memory itself, `proxy` the rank whose NIC is used instead (PXN).
    """

    kind: Kind
    detail: str = ""
    network: str = ""
    device: int | None = None
    gdr: bool = False
    proxy: int | None = None

    @property
    def label(self) -> str:
        """`P2P/CUMEM`, `SHM`, `NET/IB/1/GDRDMA`."""
        if self.kind != "NET":
            return f"{self.kind}/{self.detail}" if self.detail else self.kind
        proxy = f"({self.proxy})" if self.proxy is not None else ""
        return f"NET/{self.network}/{self.device}{proxy}{'/GDRDMA' if self.gdr else ''}"


@dataclass(frozen=True, slots=True)
class Connection:
    """One channel from `source` to `target`, ranks of the communicator `comm`. `end`: who says so, send or receive.

    `comm` is the one that the process spoke of last: a process with several may mean another. `host` and `pid`: of the
    process that says so; `gpus`: what stands in brackets behind each rank.
    """

    comm: str
    channel: int
    source: int
    target: int
    transport: Transport
    end: Literal["send", "receive"]
    where: str
    host: str = ""
    pid: int | None = None
    gpus: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class RankSeen:
    """A rank of a communicator and where it runs. `gpu`: the device's index on the node, as nvidia-smi counts."""

    comm: str
    rank: int
    host: str = ""
    pid: int | None = None
    cuda: int | None = None
    gpu: int | None = None
    bus_id: str = ""


@dataclass(frozen=True, slots=True)
class CommSeen:
    """A communicator: its size, and which ranks began and ended its init. `key`: its id, else its size and order.

    `members`: what each rank says of itself in the lines about its init.
    """

    key: str
    size: int
    nodes: int | None = None
    started: tuple[int, ...] = ()
    completed: tuple[int, ...] = ()
    aborted: tuple[int, ...] = ()
    members: tuple[RankSeen, ...] = ()


@dataclass(frozen=True, slots=True)
class Nic:
    """A device as NCCL lists it. `members`: the ports that are merged in it; `layer`: IB or RoCE; `gid`: its index."""

    host: str
    index: int
    name: str
    layer: str = ""
    members: tuple[str, ...] = ()
    bytes_per_second: float | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface with its address: `use` is Socket, OOB or bootstrap."""

    host: str
    name: str
    address: str
    use: str


@dataclass(frozen=True, slots=True)
class SettingSeen:
    """A variable that NCCL says it has read, with the hosts that say so."""

    name: str
    value: str
    hosts: tuple[str, ...]
    where: str


@dataclass(frozen=True, slots=True)
class Ring:
    """The order of ranks in one channel's ring."""

    comm: str
    channel: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One rank in one channel's tree: the rank above it (None at the root) and those below."""

    comm: str
    channel: int
    rank: int
    parent: int | None
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Channels:
    """How many channels a communicator has for each purpose; None where this version does not say."""

    comm: str
    collective: int
    collnet: int | None
    nvls: int | None
    p2p: int
    p2p_per_peer: int


@dataclass(frozen=True, slots=True)
class TuningCell:
    """What NCCL's model expects of one algorithm and protocol: `seconds` at no size, `bytes_per_second` algbw."""

    collective: str
    algorithm: str
    protocol: str
    seconds: float
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class FaultSeen:
    """A warning or worse, how often it stands there, and what is known of it. `secondary`: another one caused it."""

    kind: FaultKind
    name: str
    text: str
    where: str
    times: int = 1
    hosts: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    cause: str = ""
    cure: str = ""
    source: str = ""
    secondary: bool = False


@dataclass(frozen=True, slots=True)
class RasSeen:
    """A line of RAS on communicators that run: it compares counts of calls over ranks, and nothing else."""

    nodes: int
    ranks: int
    errors: str
    where: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Lines read, messages of NCCL among them, messages put together from torn parts, and lost ones."""

    lines: int = 0
    messages: int = 0
    joined: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class NcclLog:
    """All of one or several files.

    `library`: NCCL or RCCL; `versions`: each with the hosts that say it; `networks`: host and what it uses;
    `intra_types`: the slowest path within a node that graph searches took; `progress`: rank, works enqueued and
    completed, as torch's watchdog says; `tests`: runs of nccl-tests that begin in it;
    `processes`: ranks that several processes claim; `last`: the last message that is known.
    """

    sources: tuple[str, ...]
    library: str
    versions: tuple[tuple[str, tuple[str, ...]], ...]
    comms: tuple[CommSeen, ...]
    ranks: tuple[RankSeen, ...]
    connections: tuple[Connection, ...]
    rings: tuple[Ring, ...]
    trees: tuple[TreeNode, ...]
    channels: tuple[Channels, ...]
    networks: tuple[tuple[str, str], ...]
    nics: tuple[Nic, ...]
    interfaces: tuple[Interface, ...]
    settings: tuple[SettingSeen, ...]
    remarks: tuple[tuple[str, str], ...]
    tuning: tuple[TuningCell, ...]
    intra_types: tuple[str, ...]
    faults: tuple[FaultSeen, ...]
    progress: tuple[tuple[int, int, int], ...]
    ras: tuple[RasSeen, ...]
    tests: int
    processes: tuple[tuple[int, tuple[tuple[str, int], ...]], ...]
    lost: tuple[LostLine, ...]
    counts: Counts
    last: str = ""

    _by_rank: dict[tuple[str, int], RankSeen] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_rank", {(seen.comm, seen.rank): seen for seen in self.ranks})

    def rank(self, comm: str, rank: int) -> RankSeen | None:
        """Where a rank runs, if the log says it."""
        return self._by_rank.get((comm, rank))
