"""ENV: names that nobody reads, or no longer, or not yet. NCCL says nothing of a variable that it does not know."""

from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial

from commbench.checks.env_settings import Setting, Settings, env_rule
from commbench.checks.registry import Scene, Seen, ok, warn
from commbench.machine.nccl_table import (
    NcclVariable,
    meant_name,
    nccl_variables,
    newest_release,
    other_names,
    version_key,
)

_GUIDE = "NCCL's user guide, Environment Variables; the names in the binaries of its releases"
_MAX_SUGGESTIONS = 20  # a nearest name takes milliseconds
_rule = partial(env_rule, subject="names", severity="warn")


def _nccl_names(settings: Settings) -> Iterator[Setting]:
    return (setting for name, setting in settings.by_name.items() if name.startswith(("NCCL_", "RCCL_")))


def _rows(settings: Settings) -> Iterator[tuple[Setting, NcclVariable]]:
    known = nccl_variables()
    return ((setting, known[setting.name]) for setting in _nccl_names(settings) if setting.name in known)


def _is_read(scene: Scene, name: str) -> bool | None:
    """Whether the installed library reads `name`; None if its names are not known: every release has NCCL_DEBUG."""
    names = scene.facts.software.nccl_names
    return None if names is None or "NCCL_DEBUG" not in names else name in names


def _installed(settings: Settings) -> str:
    """What the installed NCCL is, or what was taken in its place."""
    return (
        f"this is {'.'.join(map(str, settings.version))}" if settings.version else f"the newest is {newest_release()}"
    )


@_rule(
    "ENV-NAME-INVENTED",
    fine="none that is set in scripts but was never read",
    summary="no variable that scripts set and no NCCL ever read",
    fix="remove the variable, and set the one that exists",
    source=_GUIDE,
)
def check_invented(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Some names go from script to script though no release of NCCL has them: NCCL_SOCKET_TIMEOUT is the best known.

    NCCL does not warn, so its author believes that a timeout, a level or a device is set. The finding says what does
    it.
    """
    for setting in _nccl_names(settings):
        instead = other_names().invented.get(setting.name)
        if instead and not _is_read(scene, setting.name):
            action = f"remove it; what does something is {instead}"
            yield warn(setting.name, f"{setting} has no effect: NCCL never had it", where=setting.where, action=action)


@_rule(
    "ENV-NAME-ELSEWHERE",
    fine="none that belongs to another library",
    summary="no variable of another library under NCCL's prefix",
    fix="set it under the name that its library reads",
    source="torch's ProcessGroupNCCL environment variables; nccl-tests' README",
)
def check_elsewhere(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Variables of torch's process group without TORCH_: some still work as aliases of old, most do nothing.

    Likewise nccl-tests' variables begin with NCCL_TESTS_, and wrapper scripts have names of their own.
    """
    for setting in _nccl_names(settings):
        instead = other_names().elsewhere.get(setting.name)
        if instead:
            yield warn(setting.name, f"{setting} is not read by NCCL", where=setting.where, action=f"set {instead}")


@_rule(
    "ENV-NAME-REMOVED",
    fine="none that the installed NCCL has dropped",
    summary="no variable that NCCL read once and the installed one no longer does",
    fix="remove the variable",
    source=_GUIDE,
)
def check_removed(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """A variable of an old release does nothing in a newer one, and NCCL does not say so.

    Judged by the names of the library that is installed, else by its version, else by the newest release.
    """
    version = settings.version or version_key(newest_release())
    for setting, row in _rows(settings):
        is_gone = row.is_gone(version)
        is_left_out = _is_read(scene, row.name) is False and not row.is_to_come(version)
        if _is_read(scene, row.name) or not (is_gone or is_left_out) or other_names().owner(row.name):
            continue
        why = (
            f"last read by NCCL {row.last}; {_installed(settings)}"
            if is_gone
            else "the installed library has not got it"
        )
        action = f"remove it; in its place: {row.replacement}" if row.replacement else "remove it"
        yield warn(row.name, f"{setting} has no effect: {why}", where=setting.where, action=action)


@_rule(
    "ENV-NAME-NEWER",
    fine="none that only a newer NCCL reads",
    summary="no variable that only a newer NCCL than the installed one reads",
    fix="remove the variable, or install the NCCL that it was written for",
    source=_GUIDE,
)
def check_newer(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """A variable of a release that is newer than the installed NCCL does nothing, and NCCL does not say so.

    The installed library's own names count where they could be read: a build can have a name that its release has not.
    """
    for setting, row in _rows(settings):
        if settings.version and row.is_to_come(settings.version) and not _is_read(scene, row.name):
            observed = f"{setting} has no effect: first read by NCCL {row.first}; {_installed(settings)}"
            yield warn(row.name, observed, where=setting.where)


@_rule(
    "ENV-NAME-DEPRECATED",
    fine="none that is deprecated",
    summary="no variable that is still read but deprecated",
    fix="set what took its place",
    source=_GUIDE,
)
def check_deprecated(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Still read, and to go: where the new name is set as well, both count, the more restrictive one in the end.

    Not said where the installed NCCL is older than the replacement.
    """
    for setting, row in _rows(settings):
        if row.deprecated and not settings.is_before(*version_key(row.deprecated)):
            observed = f"{setting}: deprecated since NCCL {row.deprecated}"
            yield warn(row.name, observed, where=setting.where, action=f"set {row.replacement} in its place")


@_rule(
    "ENV-NAME-UNKNOWN",
    fine="every name is one that somebody reads",
    summary="every NCCL_, RCCL_, TORCH_NCCL_ and GLOO_ variable is one that somebody reads",
    fix="correct the name, or remove the variable",
    source="the names in the binaries of NCCL and torch, and in RCCL's source",
)
def check_unknown(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """A name that neither the installed library nor any release has is most often mistyped: the nearest one is said.

    NCCL's names come from the installed binary first, then from the table of all releases; plugins, nccl-tests,
    images and builds have names of their own that are known here, too. UCX and libfabric warn of their own unknown
    variables.
    """
    others, known = other_names(), nccl_variables()
    kin = {"TORCH_NCCL_": others.torch, "GLOO_": others.gloo}
    kin |= dict.fromkeys(("NCCL_", "RCCL_"), frozenset((*known, *others.rccl, *others.torch)))
    unknown = [
        (setting, names)
        for setting in settings.by_name.values()
        for family, names in kin.items()
        if setting.name.startswith(family)
        and setting.name not in names
        and not _is_known_otherwise(scene, setting.name)
    ]
    for setting in _nccl_names(settings):
        if owner := others.owner(setting.name):
            yield ok(setting.name, f"read by {owner}", where=setting.where)
    for index, (setting, names) in enumerate(unknown):
        is_asked = index < _MAX_SUGGESTIONS
        near = get_close_matches(setting.name, sorted(names), n=1, cutoff=0.75) if is_asked else []
        action = f"did you mean {near[0]}?" if near else "remove it, or correct its name"
        yield warn(setting.name, f"{setting.name} is read by nobody that is known", where=setting.where, action=action)


def _is_known_otherwise(scene: Scene, name: str) -> bool:
    others = other_names()
    return bool(_is_read(scene, name) or name in others.invented or name in others.elsewhere or others.owner(name))


@_rule(
    "ENV-NAME-PREFIX",
    fine="no mistyped NCCL_",
    summary="no variable of NCCL with a mistyped prefix or in small letters",
    fix="write the prefix as NCCL_",
    source="a module file of a large site that set CCL_NET_GDR_LEVEL",
)
def check_prefix(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """CCL_NET_GDR_LEVEL, NCLL_DEBUG, nccl_debug: NCCL's name but for its first word. Nobody reads it, nobody warns."""
    for name, setting in settings.by_name.items():
        if meant := meant_name(name):
            yield warn(name, f"{setting} has no effect", where=setting.where, action=f"did you mean {meant}?")
