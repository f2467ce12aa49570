"""ENV: what an experiment leaves behind in production: logging, and transports switched off."""

from collections.abc import Iterator
from functools import partial

from commbench.checks.env_settings import Settings, as_integer, env_rule
from commbench.checks.registry import Scene, Seen, fail, ok, skip, warn

_GUIDE = "NCCL's user guide: variables of its section Debugging are not for production"
_rule = partial(env_rule, severity="warn")

# Values that are for debugging, in small letters, and what they cost.
_DEBUGGING = {
    "NCCL_DEBUG": {"info": "writes to stdout on every rank", "trace": "logs every call"},
    "NCCL_CHECK_MODE": {"debug_local": "checks every call", "debug_global": "checks every call on all ranks"},
    "CUDA_LAUNCH_BLOCKING": {"1": "no kernel overlaps with another"},
    "TORCH_DISTRIBUTED_DEBUG": {"detail": "every collective is preceded by a check over all ranks"},
    "TORCH_NCCL_DESYNC_DEBUG": {"1": "every collective is recorded in the store"},
    "TORCH_NCCL_NAN_CHECK": {"1": "every buffer is searched for NaN"},
    "TORCH_NCCL_BLOCKING_WAIT": {"1": "the host waits for every collective"},
    "TORCH_CPP_LOG_LEVEL": {"info": "logs every call"},
    "GLOO_LOG_LEVEL": {"debug": "logs every operation"},
    "UCX_LOG_LEVEL": dict.fromkeys(("debug", "trace", "req", "data", "func"), "logs every operation"),
    "FI_LOG_LEVEL": dict.fromkeys(("debug", "trace"), "logs every operation"),
}


@_rule(
    "ENV-DEBUG-LEFT",
    subject="debugging",
    fine="none is on",
    summary="no debugging is left on",
    fix="unset it, or take it out of the script",
    source=_GUIDE,
)
def check_debugging(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Logging and checks on every call cost time on every rank and fill stdout, where a benchmark's table should be.

    NCCL_DEBUG=INFO is fine with NCCL_DEBUG_FILE; NCCL_DEBUG=WARN always is. NCCL_DEBUG_SUBSYS=ALL counts with INFO
    only.
    """
    for name, costs in _DEBUGGING.items():
        setting = settings.get(name)
        cost = costs.get(setting.value.lower()) if setting else None
        if setting is None or cost is None:
            continue
        is_info_to_file = setting.value.upper() == "INFO" and settings.get("NCCL_DEBUG_FILE") and name == "NCCL_DEBUG"
        if not is_info_to_file:
            yield warn(name, f"{setting}: {cost}", where=setting.where)


# Names, whether the switch disables or enables, and what is lost.
_TRANSPORTS = {
    "NCCL_P2P_DISABLE": (1, "GPUs of a node no longer reach each other's memory, over NVLink or PCIe"),
    "NCCL_SHM_DISABLE": (1, "ranks of a node talk over the network where P2P cannot"),
    "NCCL_IB_DISABLE": (1, "NCCL uses TCP sockets"),
    "NCCL_NVLS_ENABLE": (0, "no reductions in the NVSwitches"),
    "NCCL_CUMEM_ENABLE": (0, "no buffers of user memory, NVLS or multi-node NVLink"),
    "NCCL_DMABUF_ENABLE": (0, "GPUDirect RDMA needs nvidia-peermem then"),
    "NCCL_PXN_DISABLE": (1, "no detour over NVLink to another GPU's NIC"),
    "NCCL_NVB_DISABLE": (1, "no detour over NVLink through another GPU"),
    "NCCL_P2P_DIRECT_DISABLE": (1, "GPUs of a process copy through buffers"),
    "NCCL_MNNVL_ENABLE": (0, "no NVLink between nodes"),
}


@_rule(
    "ENV-TRANSPORT-OFF",
    subject="transports",
    fine="none is switched off",
    summary="no transport is switched off",
    fix="unset it; if a job needs it, find out which link is broken: commbench check --select GPU,PCI,NIC",
    source=_GUIDE,
)
def check_transports(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Switching a transport off is the usual way round a hang, and stays in the script when the cause is long gone.

    NCCL then takes the next slower way without a word. Without an RDMA device NCCL_IB_DISABLE=1 changes nothing.
    """
    for name, (off, lost) in _TRANSPORTS.items():
        setting = settings.get(name)
        if setting is None or as_integer(setting.value) != (off, "") or not setting.is_plain:
            continue
        if name == "NCCL_IB_DISABLE" and scene.facts.rdma == ():
            yield ok(name, f"{setting}: there is no RDMA device here to miss", where=setting.where)
        else:
            yield warn(name, f"{setting}: {lost}", where=setting.where)
    for name, lost in (("NCCL_P2P_LEVEL", "P2P"), ("NCCL_NET_GDR_LEVEL", "GPUDirect RDMA")):
        setting = settings.get(name)
        if setting and setting.value in ("LOC", "0"):
            yield warn(name, f"{setting} switches {lost} off", where=setting.where)
    network = settings.get("NCCL_NET")
    if network and network.value.lower() == "socket" and scene.facts.rdma:
        yield warn("NCCL_NET", f"{network}: the RDMA devices are not used", where=network.where)


@_rule(
    "ENV-SOCKET-UNUSED",
    subject="sockets",
    fine="no setting of sockets is in vain",
    summary="threads and sockets of TCP are tuned only where NCCL uses TCP",
    fix="remove it: over InfiniBand and RoCE it does nothing",
    source="NCCL's user guide, NCCL_SOCKET_NTHREADS: for the socket transport",
)
def check_socket_unused(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD tune transport over TCP, which is not used beside RDMA devices."""
    given = [found for name in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD") if (found := settings.get(name))]
    if not given:
        return
    network, off = settings.value("NCCL_NET").lower(), settings.value("NCCL_IB_DISABLE")
    over_tcp = network == "socket" or as_integer(off)[0] == 1 or scene.facts.rdma == ()
    named = settings.get("NCCL_IB_HCA") is not None
    shown = " ".join(map(str, given))
    if over_tcp:
        yield ok("sockets", f"{shown}: NCCL uses TCP here", where=given[0].where)
    elif scene.facts.rdma or named:
        yield warn(given[0].name, f"{shown} without effect: NCCL uses RDMA here", where=given[0].where)
    else:
        yield skip("sockets", f"{shown}: {scene.facts.why_unseen('rdma')}", given[0].where)


@_rule(
    "ENV-COLLNET",
    subject="NCCL_COLLNET_ENABLE",
    fine="not on",
    summary="NCCL_COLLNET_ENABLE=1 stands beside a plugin that reduces in the network",
    fix="install the SHARP plugin on every node, or unset it",
    source="NCCL's user guide, NCCL_COLLNET_ENABLE",
)
def check_collnet(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Reductions in the switches need a plugin and a fabric with SHARP; without them the variable does nothing."""
    setting = settings.get("NCCL_COLLNET_ENABLE")
    if setting is None or as_integer(setting.value)[0] != 1:
        return
    plugins = scene.facts.software.nccl_plugins
    if plugins is None:
        yield skip(setting.name, f"{setting}: {scene.facts.why_unseen('software.nccl_plugins')}", setting.where)
    elif not plugins:
        yield warn(setting.name, f"{setting} without a plugin does nothing", "a SHARP plugin", setting.where)
    else:
        yield ok(setting.name, f"{setting}: plugins are {', '.join(plugins)}", where=setting.where)


@_rule(
    "ENV-NET",
    subject="NCCL_NET",
    severity="fail",
    fine="not set: NCCL takes the best that is there",
    summary="the network of NCCL_NET is NCCL's own, or there is a plugin",
    fix="install the plugin and have the loader find it (LD_LIBRARY_PATH, NCCL_NET_PLUGIN), or leave NCCL_NET out",
    source="NCCL's user guide, NCCL_NET",
)
def check_net(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """NCCL's own networks are IB and Socket. Any other name is a plugin's, such as AWS Libfabric, blank and all.

    Without that plugin NCCL ends at its start: network not found. That is what NCCL_NET is good for.
    """
    setting = settings.get("NCCL_NET")
    if setting is None or not setting.is_plain or setting.value.lower() in ("ib", "socket"):
        return
    plugins = scene.facts.software.nccl_plugins
    if plugins is None:
        reason = scene.facts.why_unseen("software.nccl_plugins")
        yield skip(setting.name, f"{setting} needs a plugin of that name: {reason}", setting.where)
    elif not plugins:
        yield fail(setting.name, f"{setting}, and there is no plugin", "IB, Socket, or a plugin's name", setting.where)
    else:
        yield ok(setting.name, f"{setting}: plugins are {', '.join(plugins)}", where=setting.where)


@_rule(
    "ENV-CROSS-NIC",
    subject="NCCL_CROSS_NIC",
    fine="not set: NCCL decides by itself",
    summary="NCCL_CROSS_NIC fits the wiring of the fabric",
    fix="leave it unset",
    source="NCCL's user guide, NCCL_CROSS_NIC",
)
def check_cross_nic(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """1 suits NICs that share one switch, and sends traffic across rails on a rail-optimised fabric; 0 suits rails.

    How the fabric is wired cannot be seen from a node. With one NIC it does nothing.
    """
    setting = settings.get("NCCL_CROSS_NIC")
    if setting and setting.value in ("0", "1"):
        fabric = "rails, a switch for each NIC" if setting.value == "0" else "NICs that share one switch"
        if scene.facts.rdma is not None and len(scene.facts.rdma) == 1:
            yield warn("NCCL_CROSS_NIC", f"{setting} does nothing with one NIC", "unset", setting.where)
        else:
            yield skip(
                "NCCL_CROSS_NIC", f"{setting} suits {fabric}: the wiring cannot be seen from here", setting.where
            )
