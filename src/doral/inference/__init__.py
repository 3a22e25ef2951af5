"""Statistics of a log: survival, cells, posterior draws, and the problem that a log is about."""
