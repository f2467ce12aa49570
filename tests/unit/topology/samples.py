"""A small text of every format, which the fuzzer damages."""

from tests.unit.topology.make import MATRIX

SAMPLES = {
    "nvidia-smi-topo": MATRIX,
}
