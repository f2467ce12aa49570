"""Foreign text (of files, of variables) on its way to people: on one line, and nothing that a terminal would obey."""


def shown(text: str, length: int = 80) -> str:
    """A line as a message shows it: one line of printable characters, at most `length` of them."""
    flat = " ".join("".join(letter if letter.isprintable() else " " for letter in text[: 5 * length]).split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def printable(text: str) -> str:
    """The whole text, with what does not print written as an escape."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
