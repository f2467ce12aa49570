"""What llm-analysis reads and answers: argv is the folder of GPU configurations, a name, tp, and hidden sizes."""

import json
import sys

from llm_analysis.analysis import LLMAnalysis
from llm_analysis.config import DtypeConfig, ModelConfig, ParallelismConfig, read_configs

folder, name, tp, *hiddens = sys.argv[1:]
gpu = read_configs(folder, type="gpu")[name]
answers = []
for hidden in map(int, hiddens):
    model = ModelConfig("m", num_layers=1, n_head=1, hidden_dim=hidden, vocab_size=1, max_seq_len=1)
    analysis = LLMAnalysis(model, gpu, DtypeConfig(), ParallelismConfig(tp_size=int(tp)))
    ask = getattr(analysis, "get_latency_fwd_per_tp_comm", None) or analysis.get_latency_fwd_per_layer_tp_comm
    answers.append(ask(1, 1, 2))
print(json.dumps({"answers": answers, "gpu": vars(gpu)}))
