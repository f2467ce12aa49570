"""AFF: which NICs and CPUs are near which GPU, and how the ranks of a node share them."""

from collections import Counter
from collections.abc import Iterable, Iterator

from commbench.checks.devices import NO_GPU, NO_RDMA, draw_together, unseen
from commbench.checks.registry import Scene, Seen, ok, rule, skip, warn
from commbench.topology.affinity import NearestNics, nearest_nics
from commbench.topology.graph import FABRICS, NEARNESS, Topology, enumerate_keys

_WHERE = "the PCI tree"
_UNDER_ONE_SWITCH = ("pix", "pxb")
_ACROSS = "NCCL_NET_GDR_LEVEL=SYS allows GPUDirect across sockets; better: another slot, or ranks on GPUs with a NIC"


def _seen_topology(scene: Scene, subject: str) -> Topology | Seen:
    """The wiring, if it has GPUs and NICs with links; else the skip that says why not."""
    if scene.facts.gpus == ():
        return skip(subject, NO_GPU, _WHERE)
    if scene.topology is None or not scene.topology.gpus:
        return unseen(scene, "pci", subject, _WHERE)
    if not scene.facts.rdma:
        return skip(subject, NO_RDMA, _WHERE) if scene.facts.rdma == () else unseen(scene, "rdma", subject, _WHERE)
    return scene.topology


def _names(topology: Topology, keys: Iterable[str]) -> str:
    """The devices' own names, such as mlx5_0, of these keys."""
    names = {device.key: device.name or device.key for device in topology.devices}
    return enumerate_keys(names[key] for key in keys)


@rule(
    "AFF-NIC",
    "warn",
    summary="every GPU has a NIC as near as its siblings have, and none has to cross the sockets for one",
    fix="move the NIC to a slot beside the GPU; within a VM give NCCL the host's NCCL_TOPO_FILE",
    source="nvidia-resiliency-ext's map of GPUs and NICs; Azure's node health checks (topology); ml-engineering",
)
def check_nearest(scene: Scene) -> Iterator[Seen]:
    """Under one switch (pix, pxb) data goes from NIC to GPU without touching the CPU.

    Over the host bridge (phb, node) it is slower, which is a fault only if other GPUs of the node have it better.
    Across the sockets (sys) GPUDirect RDMA is off unless NCCL_NET_GDR_LEVEL allows it.
    """
    topology = _seen_topology(scene, "nearest NIC")
    if isinstance(topology, Seen):
        yield topology
        return
    nearest = nearest_nics(topology)
    best = min((found.link_class for found in nearest), key=NEARNESS.index)
    yield from draw_together(_judge_nearest(found, best, _names(topology, found.nics)) for found in nearest)


def _judge_nearest(found: NearestNics, best: str, names: str) -> Seen:
    if found.link_class == "unknown":
        return skip(found.gpu, "how far the NICs are is not said", _WHERE)
    nics = f"{found.link_class}{f' to {names}' if len(found.nics) < 3 else ''}"
    if found.link_class == "sys":
        return warn(found.gpu, f"its nearest NICs are across the sockets ({nics})", "pix or pxb", _WHERE, _ACROSS)
    if best in _UNDER_ONE_SWITCH and found.link_class not in _UNDER_ONE_SWITCH:
        return warn(found.gpu, f"no NIC under its switch ({nics})", f"{best}, as siblings", _WHERE)
    return ok(found.gpu, found.link_class, where=_WHERE)


@rule(
    "AFF-NIC-SHARED",
    "warn",
    summary="no two GPUs share a NIC while another NIC is idle",
    fix="move a card; or tell NCCL with NCCL_TOPO_FILE or NCCL_NETDEVS_POLICY which GPU takes which NIC",
    source="nvidia-resiliency-ext: every GPU its own nearest NIC",
)
def check_shared(scene: Scene) -> Iterator[Seen]:
    """As many GPUs as possible are given a NIC of their own among their nearest.

    GPUs for which none is left share one, at half its rate. That is the machine's design where there are fewer NICs
    than GPUs.
    """
    topology = _seen_topology(scene, "NICs")
    if isinstance(topology, Seen):
        yield topology
        return
    nearest = {found.gpu: found.nics for found in nearest_nics(topology) if found.nics}
    nics = {nic for found in nearest.values() for nic in found}
    if len(topology.nics) < len(nearest):
        yield skip("NICs", f"{len(topology.nics)} NICs for {len(nearest)} GPUs: they share by design", _WHERE)
        return
    taken = _match(nearest)
    idle = sorted(nic.key for nic in topology.nics if nic.key not in nics)
    sharing = [gpu for gpu in nearest if gpu not in taken.values()]
    if sharing and idle:
        observed = f"shares {_names(topology, sorted({nic for gpu in sharing for nic in nearest[gpu]}))}"
        expected = f"a NIC of its own: {_names(topology, idle)} idle"
        yield warn(enumerate_keys(sharing), observed, expected, _WHERE)
    else:
        yield ok("GPUs", f"{len(taken)} of {len(nearest)} have a NIC of their own", where=_WHERE)


def _match(nearest: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """NICs to GPUs, as many as possible (augmenting paths)."""
    taken: dict[str, str] = {}

    def place(gpu: str, tried: set[str]) -> bool:
        for nic in nearest[gpu]:
            if nic not in tried:
                tried.add(nic)
                if nic not in taken or place(taken[nic], tried):
                    taken[nic] = gpu
                    return True
        return False

    for gpu in nearest:
        place(gpu, set())
    return taken


@rule(
    "AFF-SIBLINGS",
    "warn",
    summary="GPUs without NVLink see each other over the same kinds of PCIe ways",
    fix="nvidia-smi topo -m shows the wiring; move the odd one to a slot like its siblings'",
    source="ml-engineering; AWS's health check (topology)",
)
def check_siblings(scene: Scene) -> Iterator[Seen]:
    """A ring passes every GPU, so it runs at the pace of the GPU with the slowest way to its neighbours.

    Where NVLink joins the GPUs, GPU-NVLINK judges them.
    """
    topology = scene.topology
    if topology is None or len(topology.gpus) < 2:
        lone = scene.facts.gpus is not None and len(scene.facts.gpus) < 2
        yield skip("GPUs", "fewer than two here", _WHERE) if lone else unseen(scene, "pci", "GPUs", _WHERE)
        return
    ways = {
        gpu.key: tuple(
            sorted((topology.link_class(gpu.key, other.key) for other in topology.gpus if other is not gpu),
                   key=NEARNESS.index)
        )
        for gpu in topology.gpus
    }  # fmt: skip
    if any(link_class in FABRICS for found in ways.values() for link_class in found):
        yield skip("GPUs", "joined by NVLink or XGMI: not by PCIe", _WHERE)
        return
    if any("unknown" in found for found in ways.values()):
        yield skip("GPUs", "how far they are from each other is not said", _WHERE)
        return
    usual = Counter(ways.values()).most_common(1)[0][0]
    yield from draw_together(
        ok(gpu, _counted(found), where=_WHERE)
        if found == usual
        else warn(gpu, _counted(found), f"{_counted(usual)}, as most", _WHERE)
        for gpu, found in ways.items()
    )


def _counted(classes: tuple[str, ...]) -> str:
    return ", ".join(f"{times} over {link_class}" for link_class, times in Counter(classes).items())
