"""Rivals in plain Python: policies in common use, played on the same tapes."""
