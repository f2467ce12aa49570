"""System files of planners, as short as their loaders take them: invented, in the form of the planners' own."""

from typing import Any

AICONFIGURATOR_SYSTEM = """\
data_dir: data/h100 # relative
gpu:
  mem_bw: 3350000000000 # kept
  sm_version: 90
node:
  num_gpus_per_node: 4
  inter_node_bw: 1 # Byte/s
  intra_node_bw: 2  # Byte/s
  p2p_latency: 3 # s
misc:
  nccl_mem:
    1: 0
  other_mem: 0
  nccl_version: '2.26.2'
"""

LLM_ANALYSIS_GPU = {
    "name": "a-gpu",
    "mem_per_GPU_in_GB": 80,
    "hbm_bandwidth_in_GB_per_sec": 2039,
    "intra_node_bandwidth_in_GB_per_sec": 1,
    "intra_node_min_message_latency": 1,
    "peak_fp16_TFLOPS": 312,
}

SIMUMAX_SYSTEM: dict[str, Any] = {
    "sys_name": "a_system",
    "num_per_node": 4,
    "accelerator": {
        "backend": "cuda",
        "mem_gbs": 80,
        "op": {"default": {"tflops": 312, "efficient_factor": 0.75}},
        "bandwidth": {"default": {"efficient_factor": 0.9, "gbps": 1600, "latency_us": 40}},
        "mode": "roofline",
    },
    "networks": {
        "intra_node_pcie_2x": {
            "processor_usage": 0.0,
            "bandwidth": {"efficient_factor": 0.5, "gbps": 30, "latency_us": 10},
            "op": {"all_reduce": {"scale": 2, "offset": -1}},
        }
    },
}

_PROCESSOR = {"float16": {"tflops": 312, "gflops_efficiency": {"0": 0.9}}}
CALCULON_SYSTEM: dict[str, Any] = {
    "matrix": _PROCESSOR,
    "vector": _PROCESSOR,
    "mem1": {"GiB": 80, "GBps": 2000, "MB_efficiency": {"0": 0.9}},
    "mem2": {"GiB": 0, "GBps": 0, "MB_efficiency": {"0": 0.9}},
    "processing_mode": "no_overlap",
    "networks": [],
}
