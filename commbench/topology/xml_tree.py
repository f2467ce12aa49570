"""XML of other tools, read with bounds: by the standard library's expat, with what makes XML dangerous refused.

A document may name its DTD (lstopo does), but not bring one: entities that are declared inside grow without bound when
they are expanded. Nothing outside the text is ever loaded. Elements, depth and attributes are counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers.expat import ExpatError, ParserCreate

from commbench.errors import CommbenchError

_MAX_ELEMENTS = 200_000  # lstopo of the largest machines has some ten thousand
_MAX_DEPTH = 100
_MAX_VALUE = 4096


@dataclass(slots=True)
class Element:
    """An element: its tag, its attributes (those of 4096 characters at most), the elements and the text in it."""

    tag: str
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    def get(self, name: str) -> str:
        """An attribute; empty where it is not there."""
        return self.attributes.get(name, "")

    @property
    def text(self) -> str:
        """What stands in the element itself, between its tags."""
        return "".join(self.pieces)

    def named(self, tag: str) -> Iterator["Element"]:
        """The children of this tag."""
        return (child for child in self.children if child.tag == tag)


def read_xml(text: str, source: str) -> Element:
    """The root element of `text`. Raises CommbenchError if it is not XML, or is of a kind that is refused."""
    reader = _Reader(source)
    # utf-8 by force: an encoding that the text declares would be looked up among Python's codecs.
    parser = ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    try:
        parser.Parse(text.strip().encode("utf-8", errors="replace"), True)
    except ExpatError as error:
        raise CommbenchError(f"{source} does not read as XML: {error}.") from error
    assert reader.root is not None  # expat refuses a document without an element
    return reader.root


def root_tag(text: str) -> str:
    """The tag of the root element, without reading the rest; empty where there is none in the first 64 KiB."""
    head = text[: 1 << 16]
    if not head.lstrip().startswith("<"):
        return ""
    place = 0
    while (place := head.find("<", place)) >= 0:
        if head.startswith("<!--", place):
            place = head.find("-->", place)
            if place < 0:
                return ""
        elif not head.startswith(("<?", "<!"), place):
            words = head[place + 1 : place + 65].replace(">", " ").replace("/", " ").split()
            return words[0] if words else ""
        place += 1
    return ""


class _Reader:
    def __init__(self, source: str) -> None:
        self.root: Element | None = None
        self._source = source
        self._open: list[Element] = []
        self._count = 0

    def doctype(self, name: str, system: str | None, public: str | None, has_internal_subset: int) -> None:
        if has_internal_subset:
            raise CommbenchError(
                f"{self._source} declares entities of its own, which no tool's topology does: refused."
            )

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > _MAX_ELEMENTS or len(self._open) >= _MAX_DEPTH:
            raise CommbenchError(
                f"{self._source} has more than {_MAX_ELEMENTS} elements, or more than {_MAX_DEPTH} in one another: "
                "no machine has."
            )
        # A value that is cut would be another one; one that is left out is not said.
        element = Element(tag, {name: value for name, value in attributes.items() if len(value) <= _MAX_VALUE})
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def characters(self, text: str) -> None:
        if self._open and not text.isspace():
            self._open[-1].pieces.append(text)

    def end(self, tag: str) -> None:
        self._open.pop()
