"""What nnScaler's own cost database answers: argv is a checkout, our folder, ranks, questions as primitive,size.

Its module is run as it is; what that imports of graphs and profilers, which a table of times does not need, is empty.
"""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

checkout, folder, ranks, *questions = sys.argv[1:]
for name in (
    *("nnscaler", "nnscaler.graph", "nnscaler.graph.function", "nnscaler.ir", "nnscaler.ir.cten", "nnscaler.profiler"),
    *("nnscaler.profiler.database", "nnscaler.algorithm", "nnscaler.algorithm.ops", "nnscaler.algorithm.ops.dimops"),
    *("nnscaler.ir.operator", "nnscaler.graph.function.pyfunc", "nnscaler.graph.function.anchor", "nnscaler.resources"),
    *("nnscaler.graph.function.dimops", "nnscaler.autodist", "nnscaler.autodist.autodist_config"),
):
    sys.modules[name] = MagicMock()
path = Path(checkout) / "nnscaler" / "autodist" / "cost_database.py"
spec = spec_from_file_location("nnscaler.autodist.cost_database", path)
module = module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
database = SimpleNamespace(comm_info=module._load_comm_data(Path(folder), int(ranks)))
answers = []
for question in questions:
    primitive, size = question.split(",")
    answers.append(module.CostDatabase.primitive_to_cost(database, int(ranks), int(size), primitive))
print(json.dumps(answers))
