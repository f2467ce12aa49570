"""ENV: files: NCCL's files of settings, which of them wins, and files that variables name."""

from collections.abc import Iterator
from functools import partial

from commbench.checks.env_settings import Settings, env_rule, is_clean
from commbench.checks.registry import Scene, Seen, fail, ok, skip, warn
from commbench.machine.nccl_conf import SYSTEM_FILE, parse_line

_PARSER = "NCCL's src/misc/param.cc, setEnvFile"
_rule = partial(env_rule, severity="warn")


@_rule(
    "ENV-CONF-SYNTAX",
    subject="nccl.conf",
    fine="every line is read as it is meant",
    summary="the lines of NCCL's files of settings are NAME=value, without blanks, export or quotes",
    fix="write NAME=value: no blank around =, no export, no quotes, comments on lines of their own",
    source=_PARSER,
)
def check_conf_syntax(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """NCCL takes all before the first = as the name: `NCCL_DEBUG = WARN` sets a variable that ends with a blank.

    `export NCCL_DEBUG=WARN` sets one that begins with export, and quotes become part of the value. `NAME==eth0` is
    right: the value is `=eth0`, the exact name.
    """
    if scene.facts.conf_files is None:
        yield skip("nccl.conf", scene.facts.why_unseen("conf_files"))
        return
    for file in scene.facts.conf_files:
        for line in file.lines:
            name, value = parse_line(line) or ("", "")
            if " " in name or "\t" in name:
                yield warn(name.strip(), f"{line!r} sets a variable named {name!r}", where=file.path)
            elif name in settings.by_name and settings.by_name[name].where == file.path and is_clean(value):
                comment = value.partition(" #")[1]
                if comment:
                    yield warn(name, f"{line!r}: the comment is part of the value", where=file.path)


@_rule(
    "ENV-CONF-SHADOWED",
    subject="nccl.conf",
    fine="nothing is set twice with different values",
    summary="no setting of a file is overruled by another value",
    fix="keep the value in one place",
    source=f"{_PARSER}: the shell wins, then the first file",
)
def check_shadowed(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """The shell wins, even with an empty value; then NCCL_CONF_FILE, else ~/.nccl.conf; then /etc/nccl.conf.

    A value in a file that something else overrules looks as if it were in effect: an empty one in the shell switches
    the site's setting off without a trace.
    """
    for winner, loser in settings.shadowed:
        if winner.value != loser.value:
            observed = f"{loser} in {loser.where} has no effect: {winner} from {winner.where} wins"
            yield warn(winner.name, observed, where=loser.where)
    for file in scene.facts.conf_files or ():
        names = [setting.name for setting in settings.by_name.values() if setting.where == file.path]
        if names:
            yield ok("nccl.conf", f"{file.path} sets {', '.join(names)}", where=file.path)


@_rule(
    "ENV-CONF-FILE",
    subject="NCCL_CONF_FILE",
    fine="not set",
    summary="NCCL_CONF_FILE is a file that can be read, and that the installed NCCL looks for",
    fix="give an absolute path that is there on every node; use ~/.nccl.conf before NCCL 2.23",
    source="NCCL's user guide, NCCL_CONF_FILE",
)
def check_conf_file(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """A file that is not there is passed over without a word, and with it ~/.nccl.conf. ~ is not expanded.

    Before 2.23 the variable is not read, and ~/.nccl.conf is.
    """
    setting = settings.get("NCCL_CONF_FILE")
    if setting is None or not setting.is_plain or settings.is_before(2, 23):
        return
    if setting.value.startswith("~"):
        yield warn(setting.name, f"{setting}: ~ is not expanded", "an absolute path", setting.where)
    elif setting.value not in scene.facts.readable_files:
        yield skip(setting.name, f"{setting}: {scene.facts.why_unseen('readable_files')}", setting.where)
    elif not scene.facts.readable_files[setting.value]:
        yield warn(setting.name, f"{setting} cannot be read: only {SYSTEM_FILE} counts", where=setting.where)
    else:
        yield ok(setting.name, str(setting), where=setting.where)


@_rule(
    "ENV-TOPO-FILE",
    severity="fail",
    subject="NCCL_TOPO_FILE",
    fine="not set: NCCL finds the topology by itself",
    summary="the files of NCCL_TOPO_FILE and NCCL_GRAPH_FILE can be read",
    fix="give the path of a file that is there on every node and inside the container, or leave the variable out",
    source="NCCL's user guide, NCCL_TOPO_FILE",
)
def check_topo_file(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Virtual machines need the file that their cloud ships, or GPUs and NICs seem to be far from each other.

    Without it NCCL warns and goes on with what it sees: GPUDirect RDMA is off and nobody notices.
    """
    for name in ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"):
        setting = settings.get(name)
        if setting is None or not setting.is_plain:
            continue
        if setting.value not in scene.facts.readable_files:
            yield skip(name, f"{setting}: {scene.facts.why_unseen('readable_files')}", setting.where)
        elif not scene.facts.readable_files[setting.value]:
            yield fail(name, f"{setting} cannot be read", where=setting.where)
        else:
            yield ok(name, str(setting), where=setting.where)


@_rule(
    "ENV-DEBUG-FILE",
    subject="NCCL_DEBUG_FILE",
    fine="not set",
    summary="NCCL_DEBUG_FILE gives each process a file of its own",
    fix="put %h (host) and %p (process) into the name, as in /tmp/nccl.%h.%p",
    source="NCCL's user guide, NCCL_DEBUG_FILE",
)
def check_debug_file(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Each process opens the file anew and empties it: of all ranks' logs one torn one is left. ~ is not expanded.

    Without NCCL_DEBUG at WARN or above nothing is written at all.
    """
    setting = settings.get("NCCL_DEBUG_FILE")
    if setting is None or not setting.is_plain or setting.value.startswith(("/dev/", "stdout", "stderr")):
        return
    level = settings.value("NCCL_DEBUG").upper()
    if setting.value.startswith("~"):
        yield warn(setting.name, f"{setting}: ~ is not expanded", "an absolute path", setting.where)
    elif "%p" not in setting.value:
        yield warn(setting.name, f"{setting}: all processes write into it", "a name with %h and %p", setting.where)
    elif level in ("", "VERSION"):
        yield warn(
            setting.name, f"{setting} without NCCL_DEBUG writes nothing", "NCCL_DEBUG=WARN or INFO", setting.where
        )
    else:
        yield ok(setting.name, str(setting), where=setting.where)
