"""Who starts ranks: what a launcher left in the environment, or local workers of our own."""
