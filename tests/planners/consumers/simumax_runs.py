"""What SimuMax's own system answers, in seconds: argv is a checkout, a system file, and questions.

A question is net,operation,size,ranks.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

checkout, file, *questions = sys.argv[1:]
sys.path.insert(0, checkout)
from simumax.core.config import SystemConfig

system = SystemConfig.init_from_dict(json.loads(Path(file).read_text()))
# Tensor parallelism over all ranks of a node, so that every data-parallel group has one rank of it.
strategy = SimpleNamespace(tp_size=system.num_per_node, cp_size=1, ep_size=1, etp_size=1)
answers = []
for question in questions:
    net, operation, size, ranks = question.split(",")
    between = {"comm_stage": "dp", "strategy": strategy} if net == "inter_node" else {}
    answers.append(system.compute_net_op_time(operation, int(size), int(ranks), net=net, **between) / 1e3)
print(json.dumps(answers))
