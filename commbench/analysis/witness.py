"""What a debug log says went wrong, or went another way than it should: records in, findings out. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from commbench.analysis.witness_paths import judge_paths
from commbench.results.finding import Finding, Verdict
from commbench.results.nccl_log.records import CommSeen, FaultSeen, NcclLog

_VERDICTS: dict[str, Verdict] = {"warning": "warn", "failure": "fail", "hang": "fail", "crash": "fail"}


def judge(log: NcclLog) -> tuple[Finding, ...]:
    """All findings, those with a cause of their own before those that follow from others."""
    return (
        *_faults(log),
        *_who_is_missing(log),
        *_ras(log),
        *_open_inits(log),
        *_ends_early(log),
        *judge_paths(log),
        *_versions(log),
        *_settings(log),
        *_not_together(log),
        *_several_jobs(log),
        *_lost(log),
    )


def name_ranks(ranks: Iterable[int]) -> str:
    """`rank 3`, `ranks 0, 1, 5`: eight at most, the others counted."""
    listed = sorted(set(ranks))
    more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
    return f"rank{'s' if len(listed) != 1 else ''} {', '.join(map(str, listed[:8]))}{more}"


def _faults(log: NcclLog) -> Iterator[Finding]:
    causes = any(not fault.secondary and fault.kind != "warning" for fault in log.faults)
    for fault in sorted(log.faults, key=lambda fault: (fault.secondary, fault.kind == "warning")):
        verdict: Verdict = "warn" if fault.secondary and causes else _VERDICTS[fault.kind]
        times = f" ({fault.times} times)" if fault.times > 1 else ""
        cause = f": {fault.cause}" if fault.cause else ""
        yield Finding(
            f"LOG-{fault.name.upper()}",
            _whose(fault),
            verdict,
            f"{fault.text}{times}{cause}",
            where=fault.where,
            action=fault.cure,
        )
    failed = [fault for fault in log.faults if fault.kind != "warning"]
    if failed and all(fault.secondary for fault in failed):
        yield Finding(
            "LOG-FIRST-FAILURE",
            "the job",
            "skip",
            "every failure here follows from another, which is not in this log",
            where=failed[0].where,
            action="give the logs of all ranks, from the beginning",
        )


def _whose(fault: FaultSeen) -> str:
    if fault.ranks:
        return name_ranks(fault.ranks)
    return ", ".join(fault.hosts[:4]) or "the job"


def _who_is_missing(log: NcclLog) -> Iterator[Finding]:
    """Ranks that no watchdog speaks of, or whose work is behind, where others wait."""
    hang = next((fault for fault in log.faults if fault.name == "watchdog-timeout"), None)
    if hang is None:
        return
    sizes = [comm.size for comm in log.comms] + [seen.ranks for seen in log.ras]
    silent = set(range(max(sizes, default=0))) - set(hang.ranks)
    if silent and len(silent) < max(sizes) and len(silent) <= len(hang.ranks):
        yield Finding(
            "LOG-WHO-IS-LATE",
            name_ranks(silent),
            "warn",
            f"no timeout is told of, while {name_ranks(hang.ranks)} waited",
            where=hang.where,
            action="look here first: these are not in the collective, or ended before",
        )
    done = {rank: completed for rank, _, completed in log.progress}
    behind = [rank for rank, completed in done.items() if completed < max(done.values())]
    if behind:
        yield Finding(
            "LOG-WHO-IS-BEHIND",
            name_ranks(behind),
            "warn",
            f"completed work {min(done[rank] for rank in behind)}, others {max(done.values())}",
            where=hang.where,
            action="these are the ones that the others wait for",
        )


def _ras(log: NcclLog) -> Iterator[Finding]:
    stopped = any(fault.kind in ("hang", "crash") for fault in log.faults)
    for seen in log.ras:
        if stopped and seen.errors == "OK":
            yield Finding(
                "LOG-RAS",
                f"{seen.ranks} ranks on {seen.nodes} nodes",
                "skip",
                "RAS says RUNNING OK: it compares counts of calls, so a stuck kernel or link does not show",
                where=seen.where,
                action="not a sign of health: the timeout stands; ask RAS again, verbose, while it hangs",
            )


def _open_inits(log: NcclLog) -> Iterator[Finding]:
    connecting = _connecting(log)
    for comm in log.comms:
        waiting = set(comm.started) - set(comm.completed)
        if waiting:
            absent = set(range(min(comm.size, 100_000))) - set(comm.started)
            said = f"; of {name_ranks(absent)} there is nothing" if absent else ""
            yield Finding(
                "LOG-INIT-OPEN",
                name_ranks(waiting),
                "warn",
                f"began the init of a communicator of {comm.size} and did not end it{said}",
                "Init COMPLETE",
                log.sources[0],
                "a rank that hangs, died or never came; or the log is cut here",
            )
        elif silent := _silent(comm, connecting[comm.key]):
            yield Finding(
                "LOG-INIT-OPEN",
                name_ranks(silent),
                "warn",
                f"connect, and do not say that they are ready, as {len(comm.completed)} of {comm.size} do",
                "Init COMPLETE",
                log.sources[0],
                "ranks that hang or died; or the log is cut here",
            )


def _connecting(log: NcclLog) -> dict[str, set[int]]:
    """The ranks that speak of a connection of theirs, by communicator."""
    found: dict[str, set[int]] = defaultdict(set)
    for one in log.connections:
        found[one.comm].add(one.source if one.end == "send" else one.target)
    return found


def _silent(comm: CommSeen, connecting: set[int]) -> set[int]:
    """Ranks that connect and do not say that they are ready, where others do: to 2.16 nothing tells of a beginning."""
    return connecting - set(comm.completed) if comm.completed else set()


def _ends_early(log: NcclLog) -> Iterator[Finding]:
    """Connections are made, and no rank says that its init is done: where it stopped."""
    begun = log.rings or log.trees
    if not begun or not log.connections or any(comm.completed or comm.started for comm in log.comms):
        return
    last = log.connections[-1]
    peers = last.transport.kind == "P2P"
    yield Finding(
        "LOG-ENDS-CONNECTING",
        name_ranks((last.source, last.target)),
        "warn",
        f"the log ends after {last.transport.label} was chosen, before any rank is ready: a hang there, or it is cut",
        "Init COMPLETE, or Connected all rings",
        last.where,
        "where it hangs: try NCCL_P2P_DISABLE=1; if that helps, IOMMU or PCIe ACS is in the way of peer access "
        "(then look at the size of /dev/shm too)"
        if peers
        else "where it hangs: try the network between these nodes alone",
    )


def _versions(log: NcclLog) -> Iterator[Finding]:
    if len(log.versions) > 1:
        said = "; ".join(f"{version} on {', '.join(hosts[:3]) or 'a host'}" for version, hosts in log.versions[:4])
        yield Finding(
            "LOG-VERSIONS",
            log.library,
            "fail",
            said,
            "one version on all ranks",
            log.sources[0],
            "ranks of one communicator need the same library; or these are logs of several jobs",
        )


def _settings(log: NcclLog) -> Iterator[Finding]:
    values: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for seen in log.settings:
        values[seen.name][seen.value] = seen.hosts
    for name, by_value in values.items():
        if len(by_value) > 1:
            said = "; ".join(f"{value!r} on {', '.join(hosts[:3])}" for value, hosts in list(by_value.items())[:4])
            yield Finding(
                "LOG-SETTING-DIFFERS",
                name,
                "warn",
                said,
                "one value on all ranks",
                log.sources[0],
                "ranks with other settings may choose other algorithms, and hang",
            )


def _not_together(log: NcclLog) -> Iterator[Finding]:
    alone = {(seen.host, seen.pid) for seen in log.ranks if seen.pid is not None}
    if len(alone) > 1 and log.comms and all(comm.size == 1 for comm in log.comms):
        yield Finding(
            "LOG-NOT-TOGETHER",
            f"{len(alone)} processes",
            "fail",
            "each is rank 0 of 1: they do not communicate at all",
            "one communicator of all",
            log.sources[0],
            "nccl-tests needs MPI=1 when it is built, and the launcher's own MPI",
        )


def _several_jobs(log: NcclLog) -> Iterator[Finding]:
    if log.tests > 1:
        yield Finding(
            "LOG-SEVERAL-RUNS",
            "nccl-tests",
            "skip",
            f"{log.tests} runs begin in this log, and are told of as one",
            action="cut it at the lines with minBytes",
        )
    if log.processes and not any(comm.size == 1 for comm in log.comms):
        rank, who = log.processes[0]
        names = ", ".join(f"{host}:{pid}" for host, pid in who[:4])
        yield Finding(
            "LOG-SEVERAL-JOBS",
            name_ranks(rank for rank, _ in log.processes),
            "skip",
            f"claimed by several processes (rank {rank}: {names}): several runs or communicators are told of as one",
        )


def _lost(log: NcclLog) -> Iterator[Finding]:
    if log.counts.lost:
        lines = ", ".join(str(line.line) for line in log.lost[:12])
        yield Finding(
            "LOG-LOST",
            f"{log.counts.lost} of {log.counts.messages + log.counts.lost} messages",
            "skip",
            f"broken off, and not put together for certain (lines {lines}{', …' if len(log.lost) > 12 else ''})",
            action="NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log gives every process a file of its own",
        )
