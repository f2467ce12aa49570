"""Where the package keeps its tables. It is never imported from an archive, so a path will do: `importlib.resources`
loads a tenth of a second of modules.
"""

from pathlib import Path

DATA = Path(__file__).parent / "data"
