"""What came out: the records of a run, and the directory that holds them."""
