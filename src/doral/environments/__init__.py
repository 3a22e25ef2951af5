"""Environments: what is true (scenarios), and the draws that a run of one consists of (tapes)."""
