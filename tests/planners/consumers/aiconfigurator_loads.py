"""What aiconfigurator-core answers, in ms: argv is the systems folder, the system, and questions.

A question is operation,ranks,elements,type.
"""

import json
import sys

from aiconfigurator_core.sdk import common
from aiconfigurator_core.sdk.operations.communication import NCCL, P2P
from aiconfigurator_core.sdk.perf_database import PerfDatabase

root, system, *questions = sys.argv[1:]
database = PerfDatabase(system=system, backend="trtllm", version="1.0", systems_root=root)
answers = []
for question in questions:
    operation, ranks, elements, dtype = question.split(",")
    if operation == "p2p":
        found = P2P("p2p", 1.0, int(elements), int(ranks))._engine_query(database, x=1)
    else:
        mode = getattr(common.CommQuantMode, dtype)
        found = NCCL("comm", 1.0, operation, 1, int(ranks), mode)._engine_query(database, x=int(elements))
    answers.append(float(found))
print(json.dumps(answers))
