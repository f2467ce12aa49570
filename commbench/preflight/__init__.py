"""All ranks of a job together: what each one saw, gathered on rank 0 and judged once."""
