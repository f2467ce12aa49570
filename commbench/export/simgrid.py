"""SimGrid: platforms of one star each. Rates in Bps (bytes/s), latencies in seconds a link; two links are crossed.

With --cfg=network/model:CM02 a message takes the sum of its links' latencies and S over the bandwidth; the default
model, LV08, multiplies the latencies by 13.01 and the bandwidth by 0.97 (SimGrid's documentation, "Models"). Either
holds a message to network/TCP-gamma (4 MiB) a round trip, which fast links with high latencies do not obey.
"""

from commbench.export.records import Export, Need, Request, Shape

_LINKS = 2  # of a star that a message crosses
OPTIONS = "--cfg=network/model:CM02 --cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:0"
_FILES = {False: "inside-node.xml", True: "between-nodes.xml"}


def needs(shape: Shape) -> tuple[Need, ...]:
    return tuple(Need("all_reduce", tier) for tier in shape.tiers)


def write(request: Request) -> Export:
    files = {}
    for tier in request.shape.tiers:
        item = request.of("all_reduce", tier)
        comment = f"{request.source_line}. Rates: bytes/s; latency: s a link, two links a message".replace("--", "- -")
        files[_FILES[request.shape.nodes_of(tier) > 1]] = (
            "<?xml version='1.0'?>\n"
            '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
            f"<!-- {comment} -->\n"
            '<platform version="4.1">\n'
            f'  <cluster id="commbench" prefix="rank-" radical="0-{tier.ranks - 1}" suffix="" speed="1Gf" '
            f'bw="{item.bytes_per_second!r}Bps" lat="{item.alpha_step_seconds / _LINKS!r}s" '
            'sharing_policy="SPLITDUPLEX"/>\n'
            "</platform>\n"
        ).encode()
    return Export(
        files,
        (
            "every rank has one link to a switch without limits; B and alpha per step are those of all_reduce",
            "speed is 1 Gf, a placeholder: computing is not measured here",
            f"the platforms are to be used with {OPTIONS}",
        ),
    )
