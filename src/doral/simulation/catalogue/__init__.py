"""Scenarios by name: those of the paper, and those that each make one thing hard."""
