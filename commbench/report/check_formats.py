"""The forms in which a check can be written, by the name that `--format` takes."""

from collections.abc import Callable
from importlib import import_module

from commbench.checks.result import CheckResult

CHECK_FORMATS = {  # loaded when asked for: each needs a library of its own
    "table": "check_table:format_table",
    "json": "check_json:format_json",
    "junit": "check_junit:format_check_junit",
    "prometheus": "prometheus:format_prometheus",
    "markdown": "check_table:format_markdown",
    "nagios": "nagios:format_nagios",
}


def load_format(name: str) -> Callable[..., str]:
    """The function that writes a `CheckResult` as `name`."""
    module, _, function = CHECK_FORMATS[name].partition(":")
    found: Callable[[CheckResult], str] = getattr(import_module(f"commbench.report.{module}"), function)
    return found
