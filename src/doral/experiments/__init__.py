"""Experiments: `kit/` is what they share, every other folder is one, all with the same files (see `kit/conduct.py`)."""
