"""The planner's own system file, in which the network is replaced and all else is kept."""

import json
import re
from collections.abc import Mapping
from typing import Any

from commbench.errors import UsageError


def read_base(text: str, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """The JSON object of a base. Raises UsageError unless it is one and has `keys`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--base {name} does not read as JSON: {error}.") from error
    found = document if isinstance(document, dict) else {}
    if missing := [key for key in keys if key not in found]:
        raise UsageError(f"--base {name} is no system file of this planner: it lacks {', '.join(missing)}.")
    return found


def replace_yaml_values(text: str, name: str, values: Mapping[str, str]) -> str:
    """The YAML with the scalar of each key replaced, and all else kept, comments too.

    Raises UsageError unless each key stands in it once, with its value on the same line.
    """
    for key, value in values.items():
        pattern = re.compile(
            rf"^([ ]{{0,40}}{re.escape(key)}:[ ]+)([^\s#][^#\n]{{0,200}}?)([ ]*(?:#.*)?)$", re.MULTILINE
        )
        if len(pattern.findall(text)) != 1:
            raise UsageError(f"--base {name} is no system file of this planner: it has not one line '{key}: …'.")
        text = pattern.sub(lambda match, value=value: f"{match[1]}{value}{match[3]}", text)  # type: ignore[misc]
    return text
