"""A run: draws, answers, payments, and the players."""
