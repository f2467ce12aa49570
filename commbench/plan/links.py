"""Link classes by name, and the nominal rate that the user knows of one."""

from commbench.errors import UsageError, unknown_name
from commbench.units import parse_rate

# From the fastest; `unknown` is what the table shows for a link within a node whose kind could not be seen.
# `xgmi` is AMD's link between GPUs.
LINK_CLASSES = (
    *("nvlink", "xgmi", "pix", "pxb", "phb", "node", "sys"),
    *("net", "net.rail", "net.cross", "loopback", "unknown"),
)


def parse_link_rate(text: str) -> tuple[str, float]:
    """Link class and bytes per second in a text like `net=400Mbit/s`. Raises UsageError saying which part is bad."""
    link_class, equals, rate = text.partition("=")
    if not equals:
        raise UsageError(f"cannot read the link rate {text!r}: write CLASS=RATE, like net=25GB/s or net=400Mbit/s.")
    if link_class not in LINK_CLASSES:
        raise unknown_name("link class", link_class, LINK_CLASSES)
    return link_class, parse_rate(rate)


def collect_link_rates(pairs: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
    """`pairs`, each once. Raises UsageError if a class has two rates."""
    rates: dict[str, float] = {}
    for link_class, rate in pairs:
        if rates.setdefault(link_class, rate) != rate:
            raise UsageError(f"--link-rate gives {link_class} two rates: a link class has one.")
    return tuple(rates.items())
