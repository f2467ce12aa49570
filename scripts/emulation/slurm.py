"""A real Slurm on the nodes: munged and slurmctld on the head, one slurmd a node; what they write is in one folder."""

import os
import subprocess
import time
from pathlib import Path

from emulation.cluster import HEAD, Cluster, Refused
from emulation.processes import call, entering

_PATIENCE_SECONDS = 30.0
_CPUS = 8  # what a node claims to have, whatever the machine has: enough tasks for eight ranks a node
_MUNGED_FILES = {
    "key-file": "munge.key",
    "socket": "munge.socket",
    "pid-file": "munged.pid",
    "log-file": "munged.log",
    "seed-file": "munge.seed",
}
# Tasks are followed by their process group, not by cgroups, which want systemd. ReturnToService: a node whose link was
# down serves again by itself.
_CONF = """\
ClusterName={name}
SlurmctldHost={head}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
{prolog}
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def folder_of(cluster: Cluster) -> Path:
    return cluster.folder / "slurm"


def environment(cluster: Cluster) -> dict[str, str]:
    """What a command needs to find this Slurm."""
    return {"SLURM_CONF": str(folder_of(cluster) / "slurm.conf")} if cluster.slurm else {}


def start(cluster: Cluster) -> None:
    """Starts the daemons inside the namespaces, where `remove` finds them, and waits until every node is idle."""
    folder = folder_of(cluster)
    for name in ("", "state", *(f"spool-{node}" for node in cluster.node_names)):
        (folder / name).mkdir()
    (folder / "slurm.conf").write_text(_conf(cluster))
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    _daemon(cluster, HEAD, ["munged", *(f"--{option}={folder / file}" for option, file in _MUNGED_FILES.items())])
    _daemon(cluster, HEAD, ["slurmctld"])
    for node in cluster.node_names:
        _daemon(cluster, node, ["slurmd"])
    _wait_until_idle(cluster)


def _conf(cluster: Cluster) -> str:
    nodes = "\n".join(f"NodeName={node} NodeAddr={cluster.address(node)} CPUs={_CPUS}" for node in cluster.node_names)
    return _CONF.format(
        name=cluster.name,
        head=HEAD,
        address=cluster.address(HEAD),
        folder=folder_of(cluster),
        prolog=f"Prolog={cluster.prolog}\nPrologFlags=Alloc" if cluster.prolog else "",
        nodes=nodes,
    )


def _daemon(cluster: Cluster, host: str, command: list[str]) -> None:
    """Starts a program that puts itself into the background, with nothing of the caller's environment."""
    settings = {"PATH": os.environ["PATH"], **environment(cluster)}
    try:
        call(entering(cluster, host, ["env", "-i", *(f"{key}={value}" for key, value in settings.items()), *command]))
    except Refused as refusal:
        raise Refused(f"{command[0]} does not start on {host}: {refusal}{_log_ends(cluster)}") from None


def _wait_until_idle(cluster: Cluster) -> None:
    give_up = time.monotonic() + _PATIENCE_SECONDS
    sinfo = entering(cluster, HEAD, ["sinfo", "--noheader", "--Node", "--format=%N %T"])
    wanted = {(node, "idle") for node in cluster.node_names}
    while True:
        ended = subprocess.run(sinfo, capture_output=True, text=True, env={**os.environ, **environment(cluster)})
        states = {tuple(line.split()) for line in ended.stdout.splitlines()}
        if states == wanted:
            return
        if time.monotonic() > give_up:
            found = ", ".join(" ".join(state) for state in sorted(states)) or " ".join(ended.stderr.split())
            raise Refused(f"after {_PATIENCE_SECONDS:.0f} s not all nodes are idle: {found}{_log_ends(cluster)}")
        time.sleep(0.1)


def _log_ends(cluster: Cluster) -> str:
    """The last lines of each log: the folder is removed when `up` fails."""
    tails = []
    for log in sorted(folder_of(cluster).glob("*.log")):
        tails += [f"{log.name}: {line}" for line in log.read_text(errors="replace").splitlines()[-5:]]
    return "".join(f"\n  {line}" for line in tails)
