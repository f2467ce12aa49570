"""What a run happens on: facts read from the operating system, below a root where files are read."""
