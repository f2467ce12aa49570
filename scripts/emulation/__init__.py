"""Nodes out of network namespaces: what `scripts/emulated_cluster` is made of. Standard library only."""
