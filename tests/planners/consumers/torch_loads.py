"""What torch's own cost functions answer after our module: argv is the folder, nodes, ranks a node, sizes."""

import json
import sys

sys.path.insert(0, sys.argv[1])
import commbench_torch
from torch._inductor import comm_analysis
from torch.distributed.tensor import _collective_utils as costs


class Mesh:
    """As much of a DeviceMesh as is asked of it: nodes × ranks, the last dimension inside a node."""

    def __init__(self, *sizes):
        self.sizes, self.ndim = sizes, len(sizes)

    def size(self, dimension):
        return self.sizes[dimension]


commbench_torch.install()
between, inside = int(sys.argv[2]), int(sys.argv[3])
topology = costs.MeshTopoInfo.build_from_mesh(Mesh(between, inside))
answer = {
    "inductor": [comm_analysis.get_intra_node_bw(), comm_analysis.get_inter_node_bw()],
    **{
        name: [[function(int(size) / 2**30, topology, dimension) for size in sys.argv[4:]] for dimension in (0, 1)]
        for name, function in (
            ("all_reduce", costs.allreduce_cost),
            ("all_gather", costs.allgather_cost),
            ("reduce_scatter", costs.reduce_scatter_cost),
        )
    },
}
print(json.dumps(answer))
