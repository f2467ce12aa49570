"""Findings that several importers make."""

from commbench.results.schema import Finding


def point_to_point(subject: str, where: str, meaning: str = "one rank sends and another receives") -> Finding:
    """What was measured is no collective, and must not pass for one."""
    return Finding(
        "point-to-point", subject, "skip", meaning, "a collective", where,
        "do not compare its rates with those of a collective",
    )  # fmt: skip


def no_counterpart(subject: str, where: str) -> Finding:
    """A test that is none of ours."""
    return Finding("collective-unknown", subject, "skip", "no counterpart in the catalogue", "", where)


def not_checked(subject: str, where: str, why: str = "no row says whether its data was right") -> Finding:
    """Nobody looked at the data: that is not the same as right data."""
    return Finding("not-checked", subject, "skip", why, "", where)


def failed(subject: str, observed: str, where: str) -> Finding:
    """The tool itself says that its test failed."""
    return Finding("test-failure", subject, "fail", observed, "", where)
