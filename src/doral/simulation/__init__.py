"""The simulator: policies play tapes, and results come as tidy frames and figures."""
