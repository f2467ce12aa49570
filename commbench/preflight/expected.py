"""What pairs reached, as a file for the next preflight."""

from math import exp, isfinite

from commbench.analysis.expectations import KEPT_BANDWIDTH, Expectation, write_expectations
from commbench.report.preflight import Preflight
from commbench.units import GB, format_nbytes


def expectations_of(found: Preflight) -> str:
    """TOML with the usual bandwidth between two nodes, marked as measured here. Latency is left to a sweep."""
    made = []
    for search in found.searches:
        usual = [exp(value) for value in search.diagnosis.usual if isfinite(value)]
        if not usual or search.diagnosis.nbytes <= 4096:
            continue
        rate = search.diagnosis.nbytes / min(usual) / GB
        made.append(
            Expectation(
                link_class=found.link_class,
                collective="broadcast",
                size=str(search.diagnosis.nbytes),
                unit="GB/s",
                source=f"{' '.join(found.command)}, {found.created_utc[:10]}",
                measured_with=f"measured here by commbench preflight, {found.backend}, pairs at "
                f"{format_nbytes(search.diagnosis.nbytes)}",
                ranks=2,
                value=float(f"{rate:.4g}"),
                lower=float(f"{KEPT_BANDWIDTH * rate:.4g}"),
            )
        )
    return write_expectations(made, f"pairs of {len(found.hosts)} nodes, measured {found.created_utc[:10]}")
