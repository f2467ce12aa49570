"""The table of NCCL's environment variables, and the names of the libraries around it. See docs/nccl_environment.md."""

import csv
import re
import tomllib
from dataclasses import dataclass
from functools import cache

from commbench.paths import DATA

# How NCCL_ is mistyped; small letters count too.
_MISTYPED = frozenset(("CCL", "NCL", "NCC", "NCLL", "NNCL", "NNCCL", "NCCLL", "MCCL", "NCCI", "NCLC", "CNCL", "NCCL"))


@dataclass(frozen=True, slots=True)
class NcclVariable:
    """A row of nccl_env.tsv: the releases that read it, how, and what took its place. Empty: not known.

    `first` is the oldest release that was looked at where it has the name already; `documented`: system, debugging.
    """

    name: str
    first: str
    last: str
    kind: str
    allowed: str
    documented: str
    deprecated: str
    replacement: str
    note: str

    def is_gone(self, version: tuple[int, ...]) -> bool:
        """Whether NCCL `version` no longer reads it; a release newer than the table is taken to read as the newest."""
        return self.last != newest_release() and version_key(self.last) < version

    def is_to_come(self, version: tuple[int, ...]) -> bool:
        """Whether NCCL `version` does not read it yet. What the oldest release of the table has may be older still."""
        return self.first != oldest_release() and version < version_key(self.first)


@dataclass(frozen=True, slots=True)
class OtherNames:
    """Names that are not NCCL's: what to use instead, or whose they are. A key that ends with _ is a family."""

    invented: dict[str, str]
    elsewhere: dict[str, str]
    foreign: dict[str, str]
    rccl: frozenset[str]
    torch: frozenset[str]
    gloo: frozenset[str]

    def owner(self, name: str) -> str:
        """Who reads a name that is right as it is, and not NCCL's; empty if nobody is known."""
        families = (whose for family, whose in self.foreign.items() if family.endswith("_") and name.startswith(family))
        return self.foreign.get(name) or next(families, "RCCL" if name in self.rccl else "")


@cache
def nccl_variables() -> dict[str, NcclVariable]:
    """Every variable that a release of NCCL reads, by name."""
    with (DATA / "nccl_env.tsv").open() as file:
        rows = [NcclVariable(**row) for row in csv.DictReader(file, delimiter="\t")]
    return {row.name: row for row in rows}


@cache
def other_names() -> OtherNames:
    """The names that are not NCCL's."""
    tables = tomllib.loads((DATA / "env_names.toml").read_text())
    lists = {part: frozenset(tables[part]["names"]) for part in ("rccl", "torch", "gloo")}
    return OtherNames(tables["invented"], tables["elsewhere"], tables["foreign"], **lists)


@cache
def newest_release() -> str:
    """The newest release that the table knows."""
    return max((row.last for row in nccl_variables().values()), key=version_key)


@cache
def oldest_release() -> str:
    """The oldest release whose binary was looked at."""
    return nccl_variables()["NCCL_DEBUG"].first


def version_key(version: str) -> tuple[int, ...]:
    """`2.30.7` as (2, 30, 7), so that versions compare; () where the text is no version."""
    found = re.match(r"\d{1,4}(?:\.\d{1,4}){1,3}", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def meant_name(name: str) -> str:
    """The name that `name` is but for its prefix, mistyped or in small letters; empty if it is none such."""
    prefix, _, rest = name.upper().partition("_")
    wanted = f"NCCL_{rest}"
    return wanted if prefix in _MISTYPED and wanted != name and wanted in nccl_variables() else ""
