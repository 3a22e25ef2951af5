"""Policies: one compiled engine (`engine.py`, read it first), presets of it, and the way to write one in Python."""
