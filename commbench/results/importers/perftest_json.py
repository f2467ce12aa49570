"""The JSON of perftest (`--out_json`): its door in the table of formats."""

from commbench.results.importers.perftest import read_json as read
from commbench.results.importers.perftest import recognises_document as recognises

__all__ = ["read", "recognises"]
