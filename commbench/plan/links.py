"""Link classes by name, and what the user knows of one: its nominal rate, or a line with an alpha."""

from dataclasses import dataclass

from commbench.errors import UsageError, unknown_name
from commbench.units import parse_rate, parse_seconds

# From the fastest; `unknown` is what the table shows for a link within a node whose kind could not be seen.
# `xgmi` is AMD's link between GPUs.
LINK_CLASSES = (
    *("nvlink", "xgmi", "pix", "pxb", "phb", "node", "sys"),
    *("net", "net.rail", "net.cross", "loopback", "unknown"),
)


@dataclass(frozen=True, slots=True)
class LinkLine:
    """What a user says of a link class: a collective takes steps × alpha_step + factor × S / rate."""

    link_class: str
    bytes_per_second: float
    alpha_step_seconds: float = 0.0


def is_network(link_class: str) -> bool:
    """Whether a link of this class leaves the node."""
    return link_class.partition(".")[0] == "net"


def parse_link_line(text: str) -> LinkLine:
    """A text like `net=25GB/s` or `nvlink=150GB/s,3us`. Raises UsageError saying which part is bad."""
    rate, comma, alpha = text.partition(",")
    return LinkLine(*parse_link_rate(rate), parse_seconds(alpha) if comma else 0.0)


def parse_link_class(text: str) -> str:
    """`text` if it is a link class. Raises UsageError with the nearest one."""
    if text not in LINK_CLASSES:
        raise unknown_name("link class", text, LINK_CLASSES)
    return text


def parse_link_rate(text: str) -> tuple[str, float]:
    """Link class and bytes per second in a text like `net=400Mbit/s`. Raises UsageError saying which part is bad."""
    link_class, equals, rate = text.partition("=")
    if not equals:
        raise UsageError(f"cannot read the link rate {text!r}: write CLASS=RATE, like net=25GB/s or net=400Mbit/s.")
    return parse_link_class(link_class), parse_rate(rate)


def collect_link_rates(pairs: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
    """`pairs`, each once. Raises UsageError if a class has two rates."""
    rates: dict[str, float] = {}
    for link_class, rate in pairs:
        if rates.setdefault(link_class, rate) != rate:
            raise UsageError(f"--link-rate gives {link_class} two rates: a link class has one.")
    return tuple(rates.items())
