"""What hetu-galvatron reads from hardware_configs: argv is the folder, nodes, GPUs per node."""

import json
import sys

from galvatron.utils.config_utils import (
    read_allreduce_bandwidth_config,
    read_json_config,
    read_p2p_bandwidth_config,
    remap_config,
)

folder, nodes, gpus = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
machine = f"{nodes}nodes_{gpus}gpus_per_node.json"
_, reduce_ms_per_mib = read_allreduce_bandwidth_config(f"{folder}/allreduce_bandwidth_{machine}", gpu_num=nodes * gpus)
_, stage_ms_per_mib = read_p2p_bandwidth_config(f"{folder}/p2p_bandwidth_{machine}")
times = read_json_config(f"{folder}/sp_time_{machine}")
answer = {
    "reduce_ms_per_mib": reduce_ms_per_mib,
    "stage_ms_per_mib": stage_ms_per_mib,
    "overlap": read_json_config(f"{folder}/overlap_coefficient.json")["overlap_coe"],
    **{op: {n: list(table["popt"]) for n, table in remap_config(times, op).items()} for op in ("allreduce", "all2all")},
}
print(json.dumps(answer))
