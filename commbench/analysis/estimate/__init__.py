"""What a training step must communicate: from a model and a layout to messages, bytes, memory, bubble and seconds.

Pure arithmetic on the standard library, but for `run_rates.py`, which reads a run's fit.
"""
