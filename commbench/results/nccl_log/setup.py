"""What NCCL says when it starts: its version, communicators, ranks, networks, NICs, the environment that it read."""

import re

from commbench.results.nccl_log.book import MAX_RECORDS, Book, Comm
from commbench.results.nccl_log.channels import bus_id
from commbench.results.nccl_log.records import Interface, Message, Nic, RankSeen

_VERSION = re.compile(r"([NR]CCL) version ?:? ?(\d[\w.+-]{0,40})")
_RANKS = re.compile(r"comm (0x[0-9a-f]{1,16}) rank (\d{1,7}) n[rR]anks (\d{1,7})")
_PLACE = re.compile(r"cudaDev (\d{1,5})(?: nvmlDev (\d{1,5}))?")
_BUS = re.compile(r"busId ([0-9a-f]{1,16})")
_COMM_ID = re.compile(r"commId (0x[0-9a-f]{1,16})")
_NODES = re.compile(r"nNodes (\d{1,6})")
_SETTING = re.compile(
    r"(?:NET/IB: )?((?:NCCL|RCCL)_[A-Z0-9_]{1,64}) set (?:by environment )?to (.{0,1024}?)"
    r"(?:\. At largest grouped work size .{0,200})?$"
)
_NETWORK = re.compile(r"Using (?:(?:internal|external) )?[nN]etwork (.{1,64})$")
_IB_NICS = re.compile(r"NET/(?:IB|IBext(?:_v\d{1,2})?|\w{1,32}) ?: Using(?! interface| threads) ?(.{1,3800})$")
_ONE_NIC = re.compile(r"\[(\d{1,4})\] ?([\w.-]{1,64}):\d{1,3}/(IB|RoCE)")
_MERGED = re.compile(r"\[(\d{1,4})\] ?= ?\{([^}]{1,400})\}")
_MEMBER = re.compile(r"([\w.-]{1,64}:\d{1,3})/(IB|RoCE)")
_VIRTUAL = re.compile(r"NET/\w{1,16} ?: Made virtual device \[(\d{1,4})\] name=([\w.+:-]{1,128})(?: speed=(\d{1,9}))?")
_GID = re.compile(r"NET/IB: (?:\w{1,40}: )?(?:NCCL (?:Merged)?)?Dev (\d{1,4}) .{0,240}? GID (\d{1,4}) \(")
_MBIT = 1e6 / 8  # in bytes per second: speed= is in Mbit/s
_OOB = re.compile(r"OOB ([\w.@-]{1,64}):([0-9a-fA-F.:%\w]{1,64})<\d{1,6}>")
_ADDRESSES = re.compile(r"(?:\[\d{1,4}\] ?)?([\w.@-]{1,64}):([0-9a-fA-F.:%]{2,64})<\d{1,6}>")
_AFFINITY = re.compile(r"(?:Setting a|ncclTopoGetCpuAffinity: A)ffinity for GPU (\d{1,4}) (?:to|is) ")
_GPUDIRECT = re.compile(r"NET/.{1,64} ?: GPU Direct RDMA ")
_FORCED_MERGE = re.compile(r".{1,40} (NCCL_NET_FORCE_MERGE)=(.{1,1024})$")
_PARENT = re.compile(r" parent (0x[0-9a-f]{1,16}) (?:splitCount|childCount) (\d{1,9}) color (-?\d{1,10}) ")


def read_version(book: Book, message: Message) -> bool:
    """`NCCL version 2.20.5+cuda12.4`; also RCCL's `RCCL version : 2.22.3-develop`."""
    found = _VERSION.match(message.text)
    if found is None:
        return False
    library, version = found[1], found[2]
    book.library = "RCCL" if library == "RCCL" or "+hip" in version else book.library or library
    book.versions.setdefault(version, set()).add(message.process.host)
    return True


def read_comm(book: Book, message: Message) -> bool:
    """`comm 0x… rank 5 nranks 8 cudaDev 1 nvmlDev 1 busId 46000 commId 0x… - Init START`, and others of this form."""
    text = message.text
    found = _RANKS.search(text)
    if found is None:
        return False
    pointer, rank, size = found[1], int(found[2]), int(found[3])
    process = message.process
    key = _comm_key(book, message, pointer, size)
    if key not in book.comms:
        if len(book.comms) >= 10_000:
            return False
        book.comms[key] = Comm(size)
    comm = book.comms[key]
    if not text.endswith("- COMPLETE") and ("Init COMPLETE" not in text or rank in comm.started):
        book.speak_of(process, key)
    if nodes := _NODES.search(text):
        comm.nodes = int(nodes[1])
    if "Init START" in text:
        comm.started.setdefault(rank)
    elif "Init COMPLETE" in text or text.endswith("- COMPLETE"):
        if rank not in comm.started:  # to 2.16 there is no START: what came before is of this communicator
            book.claim(process, key)
            comm.started.setdefault(rank)
        comm.completed.setdefault(rank)
    elif "Abort" in text:
        comm.aborted.setdefault(rank)
    place, bus = _PLACE.search(text), _BUS.search(text)
    seen = RankSeen(
        key,
        rank,
        process.host,
        process.pid,
        int(place[1]) if place else process.device,
        int(place[2]) if place and place[2] else None,
        bus_id(bus[1]) if bus else "",
    )
    comm.members.setdefault(rank, seen)
    book.see_rank(seen)
    return True


def _comm_key(book: Book, message: Message, pointer: str, size: int) -> str:
    """Its id where the log has one (from 2.17); else its size, and how many of that size came before on this device.

    To 2.30 a part of a communicator has no id: what NCCL makes its hash of (ncclCommInitRankFunc) names it here.
    """
    process = message.process
    place = (process.host, process.pid, pointer)
    named = _COMM_ID.search(message.text)
    if named and (place not in book.pointers or named[1] in book.comms or "- Init" in message.text):
        book.pointers[place] = named[1]
        return named[1]
    if split := _PARENT.search(message.text):
        parent = book.pointers.get((process.host, process.pid, split[1]))
        if parent is not None and parent.startswith("0x"):
            book.pointers[place] = f"{parent}/{split[2]}.{split[3]}"
            return book.pointers[place]
    if place not in book.pointers:
        count = (process.host, process.pid, process.device, size)
        book.inits[count] += 1
        order = book.inits[count]
        book.pointers[place] = f"{size} ranks" if order == 1 else f"{size} ranks, no. {order}"
    return book.pointers[place]


def read_setting(book: Book, message: Message) -> bool:
    """`NCCL_IB_DISABLE set by environment to 0.`, `NCCL_IB_HCA set to mlx5_1`."""
    found = _SETTING.match(message.text)
    if found is None:
        return False
    name, value = found.groups()
    if value[:1].isdigit() or value[:1] == "-":
        value = value.removesuffix(".")  # numbers are written with a full stop, texts are not
    _see_setting(book, message, name, value)
    return True


def read_forced_merge(book: Book, message: Message) -> bool:
    """`TOPO/NET : Force-fusing NICs using NCCL_NET_FORCE_MERGE=mlx5_0,mlx5_1`: all that NCCL says of this variable."""
    found = _FORCED_MERGE.match(message.text)
    if found is None:
        return False
    _see_setting(book, message, *found.groups())
    return True


def _see_setting(book: Book, message: Message, name: str, value: str) -> None:
    if (name, value) in book.settings or len(book.settings) < MAX_RECORDS:
        hosts, _ = book.settings.setdefault((name, value), (set(), message.where))
        hosts.add(message.process.host)


def read_network(book: Book, message: Message) -> bool:
    """`Using network IB`."""
    found = _NETWORK.match(message.text)
    if found is None:
        return False
    book.networks.setdefault((message.process.host, found[1].strip()))
    return True


def read_nics(book: Book, message: Message) -> bool:
    """`NET/IB : Using [0]mlx5_0:1/IB [1]={[0] a:1/RoCE, [1] b:1/RoCE} [RO]; OOB eth0:10.0.0.1<0>`."""
    found = _IB_NICS.match(message.text)
    if found is None:
        return False
    host, text = message.process.host, found[1]
    devices, _, oob = text.partition("; OOB")
    if address := _OOB.match(f"OOB{oob}"):
        book.interfaces.setdefault(Interface(host, address[1], address[2], "OOB"))
    for index, members in _MERGED.findall(devices):
        ports = _MEMBER.findall(members)
        if ports:
            names = tuple(name for name, _ in ports)
            _see_nic(book, Nic(host, int(index), "+".join(names), ports[0][1], names))
    for index, name, layer in _ONE_NIC.findall(_MERGED.sub("", devices)):
        _see_nic(book, Nic(host, int(index), name, layer))
    if message.text.startswith("NET/Socket"):
        for name, address in _ADDRESSES.findall(devices):
            book.interfaces.setdefault(Interface(host, name, address, "Socket"))
    return True


def read_virtual(book: Book, message: Message) -> bool:
    """`NET/IB : Made virtual device [0] name=mlx5_0 speed=100000 ndevs=1`: a port, or several that are merged."""
    found = _VIRTUAL.match(message.text)
    if found is None:
        return False
    members = tuple(found[2].split("+")) if "+" in found[2] else ()
    rate = int(found[3]) * _MBIT if found[3] else None
    _see_nic(book, Nic(message.process.host, int(found[1]), found[2], "", members, rate))
    return True


def read_gid(book: Book, message: Message) -> bool:
    """`NET/IB: NCCL Dev 1 IbDev 0 Port 1 qpn 199 mtu 3 … GID 3 (…)`: the entry of the GID table that RoCE uses."""
    found = _GID.match(message.text)
    if found is None:
        return False
    _see_nic(book, Nic(message.process.host, int(found[1]), "", gid=int(found[2])))
    return True


def read_gpudirect(book: Book, message: Message) -> bool:
    """`NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'`, of a plugin's network too."""
    if _GPUDIRECT.match(message.text) is None:
        return False
    book.see_remark(message)
    return True


def _see_nic(book: Book, nic: Nic) -> None:
    """One more sight of a NIC: what was not known of it is added."""
    old = book.nics.get((nic.host, nic.index))
    if old is None:
        if len(book.nics) < MAX_RECORDS:
            book.nics[nic.host, nic.index] = nic
        return
    book.nics[nic.host, nic.index] = Nic(
        old.host,
        old.index,
        old.name or nic.name,
        old.layer or nic.layer,
        old.members or nic.members,
        old.bytes_per_second or nic.bytes_per_second,
        nic.gid if old.gid is None else old.gid,
    )


def read_bootstrap(book: Book, message: Message) -> bool:
    """`Bootstrap : Using bond0:10.0.0.1<0>`: how ranks first meet; it carries no data."""
    for name, address in _ADDRESSES.findall(message.text):
        book.interfaces.setdefault(Interface(message.process.host, name, address, "bootstrap"))
    return True


def read_affinity(book: Book, message: Message) -> bool:
    """`Setting affinity for GPU 3 to …` (to 2.27), `… Affinity for GPU 3 is …`: the GPU as nvidia-smi counts.

    Also where CUDA_VISIBLE_DEVICES hides others.
    """
    found = _AFFINITY.match(message.text)
    if found is None:
        return False
    process = message.process
    book.gpus[process.host, process.pid, process.device] = int(found[1])
    return True
