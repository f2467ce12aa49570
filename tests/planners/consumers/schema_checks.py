"""Checks a document against a JSON Schema: argv is the schema and documents; prints what is wrong with each."""

import json
import sys
from pathlib import Path

import jsonschema

schema = json.loads(Path(sys.argv[1]).read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
found = [
    [error.message for error in validator.iter_errors(json.loads(Path(path).read_text()))] for path in sys.argv[2:]
]
print(json.dumps(found))
