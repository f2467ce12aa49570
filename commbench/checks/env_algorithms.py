"""ENV: algorithms, protocols and threads that a user chose in NCCL's place."""

from collections.abc import Iterator
from functools import partial

from commbench.checks.env_settings import Setting, Settings, as_integer, env_rule
from commbench.checks.env_values import allowed_values, is_in
from commbench.checks.registry import Scene, Seen, fail, warn
from commbench.machine.nccl_table import nccl_variables

_GUIDE = "NCCL's user guide: variables of its section Debugging are not for production"
_rule = partial(env_rule, severity="warn")

# The tokens of NCCL_ALGO, and the first release with each.
_ALGORITHMS = {
    "ring": (2, 5), "tree": (2, 5), "collnetchain": (2, 14), "collnetdirect": (2, 14), "nvls": (2, 17),
    "nvlstree": (2, 18), "pat": (2, 23),
}  # fmt: skip
_PROTOCOLS = {"ll": (2, 5), "ll128": (2, 5), "simple": (2, 5)}
_TOKENS = {"NCCL_ALGO": _ALGORITHMS, "NCCL_PROTO": _PROTOCOLS}
_FUNCTIONS = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce", "sendrecv", "send", "recv")


@_rule(
    "ENV-ALGO",
    severity="fail",
    subject="tuning",
    fine="every algorithm and protocol is one that NCCL knows",
    summary="NCCL_ALGO and NCCL_PROTO have only tokens that the installed NCCL knows",
    fix="correct the token, or leave the variable out",
    source="NCCL's user guide, NCCL_ALGO; src/graph/tuning.cc",
)
def check_tokens(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Since 2.24 an unknown token in NCCL_ALGO or NCCL_PROTO fails the start of every communicator; before, nothing.

    Collnet became CollnetChain and CollnetDirect in 2.14. Since 2.24 `function:list;function:list` is understood, too.
    """
    for name, known in _TOKENS.items():
        setting = settings.get(name)
        if setting is None or not setting.is_plain:
            continue
        bad = _bad_token(setting.value, known, settings)
        if bad:
            say = warn if settings.is_before(2, 24) else fail
            expected = ", ".join(token for token, since in known.items() if not settings.is_before(*since))
            yield say(name, f"{setting}: {bad} is no token that this NCCL knows", expected, setting.where)


def _bad_token(value: str, known: dict[str, tuple[int, int]], settings: Settings) -> str:
    for index, part in enumerate(value.split(";")):
        function, colon, tokens = part.rpartition(":")
        if colon and function.lower() not in _FUNCTIONS:
            return function
        if index and not colon:
            return part
        for token in tokens.removeprefix("^").split(","):
            since = known.get(token.lower())
            if token and (since is None or settings.is_before(*since)):
                return token
    return ""


@_rule(
    "ENV-FORCED",
    subject="tuning",
    fine="nothing is forced",
    summary="neither algorithm, protocol nor threads are forced",
    fix="unset it, so that NCCL chooses for each size and operation",
    source=_GUIDE,
)
def check_forced(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Tuning is frozen at what was best for one size, one machine and one release: NCCL_ALGO=Ring on eight H100 costs a
    quarter of the bandwidth of all_reduce. LL128 forced on hardware that does not keep its lines together corrupts
    data.
    """
    for name in ("NCCL_ALGO", "NCCL_PROTO", "NCCL_NTHREADS", "NCCL_LL128_NTHREADS"):
        setting = settings.get(name)
        if setting is None or not setting.is_plain or _is_refused(setting, settings):
            continue
        danger = ": it may corrupt data" if "LL128" in setting.value.upper() and setting.value[:1] != "^" else ""
        yield warn(name, f"{setting} is forced{danger}", "unset", setting.where)


def _is_refused(setting: Setting, settings: Settings) -> bool:
    """Whether the value itself is at fault, for which there is another rule."""
    if setting.name in _TOKENS:
        return bool(_bad_token(setting.value, _TOKENS[setting.name], settings))
    number, rest = as_integer(setting.value)
    return bool(rest) or not is_in(number, allowed_values(nccl_variables()[setting.name], settings))
