"""Text and tables of markdown."""

from collections.abc import Sequence


def format_markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table, with every cell shown as it is; empty if there are no rows."""
    if not rows:
        return ""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(escape_markdown(cell) for cell in line) + " |" for line in lines)


def escape_markdown(text: str) -> str:
    """Text that markdown shows as it is."""
    for sign in "\\|<>`*_[]":
        text = text.replace(sign, f"\\{sign}") if sign in text else text
    return text
