"""What moved while the preflight ran: counters of NICs, links and GPUs, read before and after."""

from collections.abc import Iterator

from commbench.machine.facts import Facts, GpuFacts
from commbench.results.finding import Finding, Verdict

# How much a counter of a port may rise in a short run before it is a finding, and how bad it is then.
_ALLOWED_RISES: dict[str, tuple[int, Verdict]] = {
    "symbol_error": (0, "warn"),
    "link_downed": (0, "fail"),
    "link_error_recovery": (0, "warn"),
    "port_rcv_errors": (100, "warn"),
    "port_xmit_discards": (1000, "warn"),
}
_WHERE_PORT = "/sys/class/infiniband/{}/ports/{}/counters/{}"


def find_moved(before: Facts, after: Facts) -> list[Finding]:
    """Findings about one node; nothing for counters that stayed, or that could not be seen twice."""
    return [*_ports(before, after), *_interfaces(before, after), *_gpus(before, after), *_messages(before, after)]


def _ports(before: Facts, after: Facts) -> Iterator[Finding]:
    old = {(port.device, port.number): port for device in before.rdma or () for port in device.ports}
    for port in (port for device in after.rdma or () for port in device.ports):
        was = old.get((port.device, port.number))
        if was is None or was.counters is None or port.counters is None:
            continue
        for name, (allowed, verdict) in _ALLOWED_RISES.items():
            rise = port.counters.get(name, 0) - was.counters.get(name, 0)
            if rise > allowed:
                where = _WHERE_PORT.format(port.device, port.number, name)
                yield Finding(
                    "PRE-COUNTER", f"{port.device}:{port.number} {name}", verdict, f"rose by {rise} in this run",
                    f"{allowed} at most", where, "look at the cable, the transceiver and the switch port",
                )  # fmt: skip


def _interfaces(before: Facts, after: Facts) -> Iterator[Finding]:
    old = {interface.name: interface.carrier_changes for interface in before.interfaces or ()}
    for interface in after.interfaces or ():
        was, now = old.get(interface.name), interface.carrier_changes
        if was is not None and now is not None and now > was:
            where = f"/sys/class/net/{interface.name}/carrier_changes"
            yield Finding("PRE-FLAP", interface.name, "fail", f"the link went up or down {now - was} times in this run",
                          "never", where, "look at the cable and the switch port")  # fmt: skip


def _gpus(before: Facts, after: Facts) -> Iterator[Finding]:
    old = {gpu.address: gpu for gpu in before.gpus or ()}
    for gpu in after.gpus or ():
        if gpu.address in old:
            yield from _gpu(old[gpu.address], gpu)


def _gpu(was: GpuFacts, now: GpuFacts) -> Iterator[Finding]:
    subject = f"GPU {now.index}"
    if was.ecc_uncorrected is not None and (now.ecc_uncorrected or 0) > was.ecc_uncorrected:
        rise = (now.ecc_uncorrected or 0) - was.ecc_uncorrected
        yield Finding("PRE-ECC", subject, "fail", f"{rise} uncorrected memory errors in this run", "0", "NVML",
                      "drain the node and reset the GPU")  # fmt: skip
    began = sorted(set(now.throttle_reasons or ()) - set(was.throttle_reasons or ()))
    if began:
        yield Finding("PRE-THROTTLE", subject, "warn", f"throttled at the end of this run: {', '.join(began)}", "",
                      "NVML", "look at cooling and power")  # fmt: skip


def _messages(before: Facts, after: Facts) -> Iterator[Finding]:
    if before.kernel.messages is None or after.kernel.messages is None:
        return
    old = set(before.kernel.messages)
    for line in after.kernel.messages:
        if line not in old:
            yield Finding("PRE-KERNEL", "kernel log", "warn", line[:200], "nothing new in this run", "/dev/kmsg",
                          "look the message up; for an Xid, in NVIDIA's list")  # fmt: skip
