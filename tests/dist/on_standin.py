"""Not a test: the command line with torch's engine on the stand-in for a GPU, in real ranks.

python -m tests.dist.on_standin sweep --engine standin …
"""

import os
from dataclasses import replace

from commbench.cli import local_world, main
from commbench.engines import ENGINES
from commbench.engines.torch_dist import TorchEngine
from commbench.engines.torch_dist import open_engine as open_torch
from commbench.machine.facts import Facts, GpuFacts, NvLinkFacts
from commbench.measure import wiring
from tests.cuda_standin import stand_in_for_torch
from tests.gpu_standin import Gpu

GPUS = int(os.environ.get("COMMBENCH_STANDIN_GPUS", "2"))


def two_gpus() -> Facts:
    """A machine whose GPUs hang on one NVSwitch, by 18 links each."""
    links = tuple(NvLinkFacts(number, is_active=True, version=6, peer_kind="switch") for number in range(18))
    return Facts(gpus=tuple(GpuFacts(index, f"0000:{0x1B + index:02x}:00.0", nvlinks=links) for index in range(2)))


def open_engine(**arguments: object) -> TorchEngine:
    stand_in_for_torch(Gpu(), gpus=GPUS).__enter__()
    wiring.read_facts = two_gpus
    return open_torch(**arguments)


# In the workers too, which import this module.
ENGINES["standin"] = replace(ENGINES["torch"], factory="tests.dist.on_standin:open_engine")

if __name__ == "__main__":
    local_world._count_gpus = lambda backend, engine: 2  # the workers find out how many there are
    main()
