"""What Calculon's own network model answers, in seconds: argv is a checkout, a system file, and questions.

A question is tier,operation,size,ranks.
"""

import json
import sys
from pathlib import Path

checkout, file, *questions = sys.argv[1:]
sys.path.insert(0, checkout)
from calculon.network import Network

networks = [Network(entry) for entry in json.loads(Path(file).read_text())["networks"]]
answers = []
for question in questions:
    tier, operation, size, ranks = question.split(",")
    answers.append(networks[int(tier)].time(operation, int(size), int(ranks)))
print(json.dumps(answers))
