"""ENV: values that NCCL reads otherwise than their writer meant."""

from collections.abc import Iterator
from functools import partial

from commbench.checks.env_settings import Setting, Settings, as_integer, env_rule, is_clean, is_off, is_on
from commbench.checks.registry import Scene, Seen, warn
from commbench.machine.nccl_table import NcclVariable, nccl_variables

_PARAM = "NCCL's src/misc/param.cc: strtoll with base 0, without a look at what is left over"
_NUMBERS = ("switch", "integer", "bytes", "bool")
_OLD_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
_rule = partial(env_rule, subject="values", severity="warn")


def _of_kind(settings: Settings, *kinds: str) -> Iterator[tuple[Setting, NcclVariable]]:
    rows = ((setting, nccl_variables()[setting.name]) for setting in settings.nccl())
    return ((setting, row) for setting, row in rows if row.kind in kinds)


def _kind(row: NcclVariable, settings: Settings) -> str:
    """A bool is a switch before 2.30."""
    return "switch" if row.kind == "bool" and settings.is_before(2, 30) else row.kind


@_rule(
    "ENV-VALUE-SWITCH",
    fine="every switch is a number",
    summary="switches are 0 or 1, not words",
    fix="write 1 for on and 0 for off",
    source=_PARAM,
)
def check_switches(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """NCCL reads switches as numbers: `true`, `yes` and `on` are 0, without a warning.

    So NCCL_P2P_DISABLE=true disables nothing, and NCCL_IB_MERGE_NICS=yes switches merging off. `false` and `off` are
    0 too, as they are meant. A few names of logging are read as true or false since 2.30.
    """
    for setting, row in _of_kind(settings, "switch", "bool"):
        value = setting.value
        is_word = as_integer(value)[1] == value and not is_off(value)
        if is_word and not (_kind(row, settings) == "bool" and value.upper() in ("T", "TRUE")):
            meant = f"{setting.name}=1" if is_on(value) else f"{setting.name}=0 or 1"
            yield warn(setting.name, f"{setting} is read as 0", meant, setting.where, f"write {meant}")


@_rule(
    "ENV-VALUE-NUMBER",
    fine="every number is read as it is written",
    summary="numbers are plain: no suffix, no leading zero, no word",
    fix="write a plain decimal number",
    source=_PARAM,
)
def check_numbers(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """What follows the digits is ignored and a leading 0 means octal: NCCL_BUFFSIZE=4M is 4 bytes, 010 is 8, 1e6 is 1.

    A text without digits is 0. NCCL warns of none of these.
    """
    for setting, row in _of_kind(settings, *_NUMBERS):
        number, rest = as_integer(setting.value)
        is_word = rest == setting.value
        if row.kind in ("switch", "bool") and (is_word or _kind(row, settings) == "bool"):
            continue
        is_octal = (
            setting.value.lstrip("+-")[:1] == "0" and setting.value.lstrip("+-").isdigit() and len(setting.value) > 1
        )
        if rest or is_octal:
            unit = " bytes" if row.kind == "bytes" else ""
            yield warn(setting.name, f"{setting} is read as {number}{unit}", "a plain number", setting.where)


@_rule(
    "ENV-VALUE-RANGE",
    fine="every number is in its range",
    summary="numbers are in the range that NCCL or the hardware takes",
    fix="choose a value of the range, or leave the variable out",
    source="NCCL's user guide, Environment Variables; its source where that is silent",
)
def check_ranges(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """NCCL cuts off, replaces or passes on numbers out of range, mostly without a word.

    NCCL_IB_TIMEOUT is an exponent, 4.096 us times 2 to its power, in five bits: 1800 is not 30 minutes, and 32 and
    more, like 0, wait for ever. NCCL_IB_RETRY_CNT has three bits. NCCL_P2P_DISABLE=2 disables nothing, as only 1 does.
    """
    for setting, row in _of_kind(settings, *_NUMBERS):
        number, rest = as_integer(setting.value)
        allowed = allowed_values(row, settings)
        if rest or not allowed or is_in(number, allowed):
            continue
        note = f" ({row.note})" if row.note else ""
        yield warn(setting.name, f"{setting}{note}", allowed.replace("..", " to "), setting.where)


def allowed_values(row: NcclVariable, settings: Settings) -> str:
    """The range or the list of values that the installed NCCL takes."""
    is_old = row.name in ("NCCL_MAX_CTAS", "NCCL_MIN_CTAS") and settings.is_before(2, 25)
    return "1..32" if is_old else row.allowed


def is_in(number: int, allowed: str) -> bool:
    """Whether a number is in `0..31`, `1..` or `64,128`."""
    if ".." not in allowed:
        return number in {int(text) for text in allowed.split(",")}
    low, _, high = allowed.partition("..")
    return int(low) <= number and (not high or number <= int(high))


@_rule(
    "ENV-VALUE-WORD",
    fine="every word is one that NCCL knows",
    summary="words are ones that NCCL knows, in the case that it wants",
    fix="write one of the words that NCCL knows",
    source="NCCL's user guide, Environment Variables; src/graph/paths.cc compares levels with strcmp",
)
def check_words(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """An unknown word leaves the default, mostly without a warning: NCCL_P2P_LEVEL=nvl, for NVL, does nothing.

    Levels of distance and address families must be in capital letters; levels of logging may be in any.
    """
    for setting, row in _of_kind(settings, "word", "exact", "words", "level"):
        bad = _unknown_words(setting.value, row)
        if bad:
            exact = next((word for word in row.allowed.split(",") if word == bad.upper()), "")
            action = f"write {exact}: capital letters count" if exact else ""
            expected = row.allowed.replace(",", ", ")
            yield warn(setting.name, f"{setting}: {bad} is not known and is ignored", expected, setting.where, action)


def _unknown_words(value: str, row: NcclVariable) -> str:
    """The first word of `value` that NCCL does not know."""
    if row.kind == "level" and value[:1].isdigit():
        return ""
    separator = "|" if row.name == "NCCL_CTA_POLICY" else ","
    words = value.removeprefix("^").split(separator) if row.kind == "words" or separator == "|" else [value]
    allowed = row.allowed.split(",")
    is_exact = row.kind in ("exact", "level")
    return next((word for word in words if word and (word if is_exact else word.strip().upper()) not in allowed), "")


@_rule(
    "ENV-VALUE-LEVEL",
    fine="no level is a number",
    summary="levels of distance are words, not the numbers of old",
    fix="write the word: LOC, NVL, PIX, PXB, PHB or SYS",
    source="NCCL's user guide: integer values are discouraged",
)
def check_level_numbers(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """NCCL_NET_GDR_LEVEL=5 and NCCL_P2P_LEVEL=2 are of the time before the words, and mean SYS and PXB.

    The levels in between have been renumbered since, NVL has no number, and 4 and more all mean SYS. 0 means LOC: off.
    """
    for setting, _ in _of_kind(settings, "level"):
        if setting.value[:1].isdigit() and as_integer(setting.value)[0] > 0:
            meant = _OLD_LEVELS[min(as_integer(setting.value)[0], 4)]
            yield warn(setting.name, f"{setting} means {meant}", meant, setting.where, f"write {setting.name}={meant}")


@_rule(
    "ENV-VALUE-SPACE",
    fine="no blanks or quotes around a value",
    summary="values have no blanks or quotes around them",
    fix="remove them; in docker's --env-file and in nccl.conf quotes are part of the value",
    source="NCCL compares and parses values as they are",
)
def check_spaces(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """A shell takes quotes away; docker's --env-file, Kubernetes' manifests and NCCL's files of settings do not.

    `"1"` with its quotes is then read as 0, and a name with a blank is no interface's or device's.
    """
    families = ("NCCL_", "RCCL_", "GLOO_", "TORCH_NCCL_", "MASTER_", "UCX_", "FI_")
    for name, setting in settings.by_name.items():
        if name.startswith(families) and not is_clean(setting.value):
            yield warn(name, f"{name}={setting.value!r}", setting.value.strip(" \t'\""), setting.where)


@_rule(
    "ENV-SOCKET-THREADS",
    fine="at most 64 sockets a connection",
    summary="NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD is at most 64",
    fix="lower one of the two",
    source="NCCL's user guide, NCCL_SOCKET_NTHREADS",
)
def check_socket_threads(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Each connection over TCP has so many threads with so many sockets each; NCCL cuts the product off at 64."""
    both = [settings.get(name) for name in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")]
    if both[0] and both[1]:
        product = as_integer(both[0].value)[0] * as_integer(both[1].value)[0]
        if product > 64:
            yield warn("NCCL_SOCKET_NTHREADS", f"{both[0]} times {both[1]} is {product}", "at most 64", both[0].where)


@_rule(
    "ENV-CHANNELS",
    fine="the least number of channels is not above the most",
    summary="NCCL_MIN_CTAS is not above NCCL_MAX_CTAS",
    fix="correct one of the two",
    source="NCCL's user guide, NCCL_MIN_CTAS",
)
def check_channels(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """With a minimum above the maximum the number of channels is what the code happens to apply last."""
    for low, high in (("NCCL_MIN_CTAS", "NCCL_MAX_CTAS"), ("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS")):
        least, most = settings.get(low), settings.get(high)
        if least and most and as_integer(least.value)[0] > as_integer(most.value)[0] > 0:
            yield warn(low, f"{least} and {most}", f"{low} at most {most.value}", least.where)
