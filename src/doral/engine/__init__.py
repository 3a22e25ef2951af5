"""The algorithm: a compiled state machine. Start with `events.py`, the paper's Algorithm 2 on one page."""
