"""Rivals that people would really use, in plain Python: by name in every comparison, on the same tapes."""
