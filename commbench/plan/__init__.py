"""What to run: collectives, sizes, groups, and the ordered list of cases. Pure, without torch."""
