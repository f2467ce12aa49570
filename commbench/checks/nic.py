"""NIC: are RDMA devices and interfaces there, up, and as fast as their siblings."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from commbench.checks.devices import NO_RDMA, judge_each, pci_of, ports_of, unseen
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.machine.facts import Facts, PciDevice, RdmaDevice, RdmaPort
from commbench.units import GB

_RDMA_DRIVERS = {"mlx5_core": "mlx5_ib", "mlx4_core": "mlx4_ib", "efa": "efa", "bnxt_en": "bnxt_re", "irdma": "irdma"}
_PORTS = "/sys/class/infiniband/*/ports/*"


@rule(
    "NIC-RDMA",
    "fail",
    summary="every NIC that can do RDMA has its RDMA device",
    fix="modprobe the module that is named and load it at start; give containers --device=/dev/infiniband",
    source="GCM and AWS check the modules; every health check that was read counts the HCAs",
)
def check_rdma(scene: Scene) -> Iterator[Seen]:
    """A NIC with its network driver but without an RDMA device is used over sockets, at a fraction of its rate.

    After a kernel's or OFED's update the RDMA module is often the one that was not built. A container may have been
    given no RDMA device on purpose.
    """
    facts, where = scene.facts, "/sys/class/infiniband, against PCI devices"
    if facts.rdma is None:
        yield unseen(scene, "rdma", where=where)
        return
    served = {device.address for device in facts.rdma}

    def judge(name: str, device: PciDevice) -> Seen:
        module = _RDMA_DRIVERS.get(device.driver)
        if device.address in served:
            return ok(name, "has its RDMA device", where=where)
        if module is None or module == "bnxt_re":
            return skip(name, f"driver {device.driver or 'none'}: not known to do RDMA", where)
        if facts.host.container not in ("", "none"):
            return warn(name, "no RDMA device in this container", f"a device of {module}", where)
        return fail(name, f"no RDMA device: is {module} loaded?", f"a device of {module}", where)

    yield from judge_each(scene, "pci.driver", pci_of(facts, "nic"), "no NIC on the PCI bus", judge)


@rule(
    "NIC-UVERBS",
    "fail",
    summary="programs can open every RDMA device: /dev/infiniband/uverbs*",
    fix="modprobe ib_uverbs; docker --device=/dev/infiniband (or the RDMA device plugin of Kubernetes)",
    source="AWS's health check (uverbs); GCM (modules)",
)
def check_uverbs(scene: Scene) -> Iterator[Seen]:
    """NCCL opens RDMA devices by these files; without them it falls back to sockets and says so only in its log.

    Containers see the devices in /sys, but not the files unless they were given them.
    """
    rdma, files, where = scene.facts.rdma, scene.facts.software.infiniband_devices, "/dev/infiniband/uverbs*"
    if rdma is None:
        yield unseen(scene, "rdma", "uverbs", where)
    elif not rdma:
        yield skip("uverbs", NO_RDMA, where)
    elif files is None:
        yield unseen(scene, "software.infiniband_devices", "uverbs", where)
    elif files < len(rdma):
        yield fail("uverbs", f"{files} files for {len(rdma)} RDMA devices", f"{len(rdma)}", where)
    else:
        yield ok("uverbs", f"{files} files for {len(rdma)} RDMA devices", where=where)


@rule(
    "NIC-STATE",
    "fail",
    summary="RDMA ports are active",
    fix="look at cable, switch port and subnet manager (ibstat, mlxlink); leave unused ports out of NCCL_IB_HCA",
    source="every health check that was read",
)
def check_state(scene: Scene) -> Iterator[Seen]:
    """A port that is down carries nothing, and the GPU beside it takes another NIC, far away and shared.

    `init` and `armed` wait for the subnet manager, and `disabled` was switched off: those are warnings.
    """

    def judge(name: str, port: RdmaPort) -> Seen | None:
        if not port.state:
            return None
        observed = f"{port.state}{f', {port.physical_state}' if port.physical_state else ''}"
        if port.state == "active":
            return ok(name, observed, where=f"{_PORTS}/state")
        waits = port.state in ("init", "armed") or port.physical_state == "disabled"
        return (warn if waits else fail)(name, observed, "active, linkup", f"{_PORTS}/state, phys_state")

    yield from judge_each(scene, "rdma.ports.state", ports_of(scene.facts), NO_RDMA, judge)


def _boards(facts: Facts) -> dict[str, str]:
    """The kind of card of each port: its board, else its driver, and its link layer."""
    boards = [device.board or device.driver for device in facts.rdma or () for _ in device.ports]
    named = (ports_of(facts) or {}).items()
    return {name: f"{board} {port.link_layer}" for board, (name, port) in zip(boards, named, strict=True)}


@rule(
    "NIC-RATE",
    "fail",
    summary="active ports of one kind of card have the best rate among them",
    fix="look at the cable (mlxlink -d DEVICE -m), the switch port's speed, and what width and speed were negotiated",
    source="GCM, gpud and Azure's node health checks compare with the rate that is expected",
)
def check_rate(scene: Scene) -> Iterator[Seen]:
    """A link that came up with one lane of four, or a generation lower, passes every test of being up.

    Collectives over rails then run at this NIC's rate on all nodes.
    """
    boards, best = _boards(scene.facts), dict[str, float]()
    for name, port in (ports_of(scene.facts) or {}).items():
        if port.state == "active" and port.bytes_per_second:
            best[boards[name]] = max(best.get(boards[name], 0.0), port.bytes_per_second)

    def judge(name: str, port: RdmaPort) -> Seen | None:
        if port.state and port.state != "active":
            return skip(name, "not active: NIC-STATE tells of it", f"{_PORTS}/rate")
        if not port.bytes_per_second:
            return None
        observed = port.rate_text or f"{port.bytes_per_second * 8 / GB:g} Gbit/s"
        if port.bytes_per_second < best.get(boards[name], 0.0):
            return fail(name, observed, f"{best[boards[name]] * 8 / GB:g} Gbit/s, as a sibling", f"{_PORTS}/rate")
        return ok(name, observed, where=f"{_PORTS}/rate")

    yield from judge_each(scene, "rdma.ports.rate_text", ports_of(scene.facts), NO_RDMA, judge)


@rule(
    "NIC-FIRMWARE",
    "warn",
    summary="cards of one kind run the same firmware",
    fix="mlxfwmanager --online -u, or the maker's tool, for those that differ; then power-cycle",
    source="imbue-ai/cluster-health; GCM",
)
def check_firmware(scene: Scene) -> Iterator[Seen]:
    """A card that was replaced often comes with older firmware: other defaults of congestion control, other faults."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for device in scene.facts.rdma or ():
        if device.firmware:
            kinds[device.board or device.driver].append(device.firmware)
    usual = {kind: Counter(found).most_common(1)[0][0] for kind, found in kinds.items()}

    def judge(name: str, device: RdmaDevice) -> Seen | None:
        where = "/sys/class/infiniband/*/fw_ver"
        if not device.firmware:
            return None
        expected = usual[device.board or device.driver]
        if device.firmware == expected:
            return ok(name, device.firmware, where=where)
        return warn(name, device.firmware, f"{expected}, as most", where)

    devices = None if scene.facts.rdma is None else {device.name: device for device in scene.facts.rdma}
    yield from judge_each(scene, "rdma.firmware", devices, NO_RDMA, judge)
