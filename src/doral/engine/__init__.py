"""The policy engine: events, the pieces that policies are composed of, and presets. Start with `events.py`."""
