"""What Vidur's loader keeps of our tables: argv is the folder and the tensor-parallel size.

Stages are asked for within a node and between nodes.
"""

import json
import sys
from types import SimpleNamespace

from vidur.execution_time_predictor.sklearn_execution_time_predictor import SklearnExecutionTimePredictor

folder, tp = sys.argv[1], int(sys.argv[2])
loader, answer = SklearnExecutionTimePredictor, {}


def pairs(table, name):
    """(tokens, median in ms) of each row."""
    return [list(pair) for pair in zip(table["num_tokens"], table[f"time_stats.{name}.median"], strict=True)]


for place, multi_node in (("inside", False), ("between", True)):
    predictor = SimpleNamespace(
        _replica_config=SimpleNamespace(tensor_parallel_size=tp),
        _model_config=SimpleNamespace(embedding_dim=4096),
        _is_multi_node=multi_node,
    )
    predictor._read_input_file = loader._read_input_file.__get__(predictor)
    reduces = loader._load_all_reduce_df(predictor, f"{folder}/all_reduce.csv.xz")
    stages = loader._load_send_recv_df(predictor, f"{folder}/send_recv.csv.xz")
    reduces = loader._get_all_reduce_df_with_derived_features(predictor, reduces)
    stages = loader._get_send_recv_df_with_derived_features(predictor, stages)
    answer |= {"all_reduce": pairs(reduces, "all_reduce"), f"send_recv {place}": pairs(stages, "send_recv")}
print(json.dumps(answer))
