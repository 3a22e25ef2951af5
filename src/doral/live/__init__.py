"""Live campaigns: the compiled policy driven by an event log that survives everything."""
