"""RDMA devices: ports, their state and rate, GIDs without their addresses, partition keys, counters of errors."""

import re
from ipaddress import AddressValueError, IPv6Address

from commbench.machine.facts import GidFacts, RdmaDevice, RdmaPort
from commbench.machine.tree import Tree

_DEVICES = "sys/class/infiniband"
_COUNTERS = (
    *("counters/symbol_error", "counters/link_downed", "counters/link_error_recovery", "counters/port_rcv_errors"),
    *("counters/port_xmit_discards", "counters/port_xmit_wait", "counters/local_link_integrity_errors"),
    *("counters/excessive_buffer_overrun_errors", "counters/VL15_dropped"),
    *("hw_counters/out_of_sequence", "hw_counters/packet_seq_err", "hw_counters/local_ack_timeout_err"),
    *("hw_counters/rnr_nak_retry_err", "hw_counters/rx_icrc_encapsulated", "hw_counters/np_cnp_sent"),
    *("hw_counters/roce_adp_retrans", "hw_counters/roce_slow_restart", "hw_counters/req_cqe_error"),
)
_MAX_DEVICES, _MAX_PORTS, _MAX_GIDS, _MAX_PKEYS = 128, 16, 256, 128
_ZERO = "0000:0000:0000:0000:0000:0000:0000:0000"
_NO_PKEY = "0x0000"


def read_rdma(tree: Tree) -> tuple[RdmaDevice, ...] | None:
    """The devices by name; an empty tuple where the kernel has no RDMA."""
    names = tree.names(_DEVICES)
    if names is None:
        if tree.names("sys/class") is None:
            tree.say_unseen("rdma", "/sys/class cannot be listed")
            return None
        return ()  # no module of RDMA has been loaded
    return tuple(_device(tree, name) for name in names[:_MAX_DEVICES])


def _device(tree: Tree, name: str) -> RdmaDevice:
    folder = f"{_DEVICES}/{name}"
    numbers = [port for port in tree.names(f"{folder}/ports") or () if port.isdecimal() and len(port) < 4]
    return RdmaDevice(
        name=name,
        address=tree.pci_address(f"{folder}/device"),
        driver=tree.link(f"{folder}/device/driver").rpartition("/")[2],
        firmware=tree.word(f"{folder}/fw_ver"),
        board=tree.word(f"{folder}/board_id"),
        numa_node=tree.number(f"{folder}/device/numa_node"),
        cpus=tree.cpus(f"{folder}/device/local_cpulist"),
        ports=tuple(_port(tree, name, int(number)) for number in numbers[:_MAX_PORTS]),
    )


def _port(tree: Tree, device: str, number: int) -> RdmaPort:
    folder = f"{_DEVICES}/{device}/ports/{number}"
    gids = _gids(tree, folder)
    interfaces = tree.names(f"{_DEVICES}/{device}/device/net") or []
    named = next((gid.interface for gid in gids or () if gid.interface), "")
    rate = tree.word(f"{folder}/rate")
    return RdmaPort(
        device=device,
        number=number,
        state=_state(tree.word(f"{folder}/state")),
        physical_state=_state(tree.word(f"{folder}/phys_state")),
        bytes_per_second=_rate(rate),
        rate_text=rate,
        link_layer=tree.word(f"{folder}/link_layer"),
        interface=named or (interfaces[0] if len(interfaces) == 1 else ""),
        gids=gids,
        pkeys=_pkeys(tree, folder),
        counters=_counters(tree, folder),
        traffic_class=_traffic_class(tree, device, number),
        mtu_nbytes=tree.number(f"sys/class/net/{named}/mtu") if named else None,
    )


def _state(text: str) -> str:
    """`active` of `4: ACTIVE`, `linkup` of `5: LinkUp`."""
    return text.partition(":")[2].strip().lower()


def _rate(text: str) -> float | None:
    """Bytes per second in a text like `400 Gb/sec (4X NDR)`."""
    match = re.match(r"(\d{1,4}(?:\.\d{1,2})?) Gb/sec", text, re.ASCII)
    return float(match[1]) * 1e9 / 8 if match else None


def _gids(tree: Tree, folder: str) -> tuple[GidFacts, ...] | None:
    """The entries that are in use, and the empty ones below the last of them."""
    indexes = tree.names(f"{folder}/gids")
    if indexes is None:
        return None
    found, used = [], 0
    for index in [int(name) for name in indexes if name.isdecimal() and len(name) < 5][:_MAX_GIDS]:
        kind = _gid_kind(tree.word(f"{folder}/gids/{index}"))
        if not kind:
            continue
        attributes = f"{folder}/gid_attrs"
        is_empty = kind == "zero"
        version = "" if is_empty else tree.word(f"{attributes}/types/{index}")
        found.append(GidFacts(index, version, kind, "" if is_empty else tree.word(f"{attributes}/ndevs/{index}")))
        used = used if is_empty else len(found)
    return tuple(found[:used])


def _gid_kind(text: str) -> str:
    """What kind of address a GID is; empty for a text that is none."""
    if text == _ZERO:
        return "zero"
    try:
        address = IPv6Address(text)
    except AddressValueError:
        return ""
    if address.ipv4_mapped is not None:
        return "ipv4"
    return "link-local" if address.is_link_local else "global"


def _pkeys(tree: Tree, folder: str) -> tuple[str, ...] | None:
    indexes = tree.names(f"{folder}/pkeys")
    if indexes is None:
        return None
    keys = [tree.word(f"{folder}/pkeys/{index}") for index in indexes[:_MAX_PKEYS]]
    return tuple(key for key in keys if re.fullmatch(r"0x[0-9a-f]{4}", key) and key != _NO_PKEY)


def _counters(tree: Tree, folder: str) -> dict[str, int] | None:
    values = {path.rpartition("/")[2]: tree.number(f"{folder}/{path}") for path in _COUNTERS}
    return {name: value for name, value in values.items() if value is not None} or None


def _traffic_class(tree: Tree, device: str, number: int) -> int | None:
    """What the administrator set for all traffic of a port, as in `Global tclass=106`; None if nothing."""
    match = re.search(r"tclass=(\d{1,3})", tree.word(f"{_DEVICES}/{device}/tc/{number}/traffic_class"), re.ASCII)
    return int(match[1]) if match else None
