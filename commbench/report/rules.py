"""The rules as a page: a table for each family."""

from collections.abc import Iterable

from commbench.checks.registry import FAMILIES, Rule


def format_rules_markdown(rules: Iterable[Rule]) -> str:
    """A heading and a table for each family that has rules: id, severity, summary, source."""
    known = list(rules)
    parts = []
    for family, meaning in FAMILIES.items():
        rows = [
            f"| `{rule.id}` | {rule.severity} | {_cell(rule.summary)} | {_cell(rule.source)} |"
            for rule in known
            if rule.family == family
        ]
        if rows:
            head = ["| rule | at worst | what is right | source |", "| --- | --- | --- | --- |"]
            parts.append("\n".join([f"### {family}: {meaning}", "", *head, *rows]))
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    """Text that a cell shows as it is."""
    for sign in "\\|<>*_[]":
        text = text.replace(sign, f"\\{sign}")
    return text
