"""What it means: alpha and beta, regimes, errors and findings. Rows and samples in, records out."""
