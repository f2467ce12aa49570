"""Tables that the program reads, each with its sources."""
