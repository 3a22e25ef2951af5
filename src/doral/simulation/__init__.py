"""The simulator: policies play tapes; results are tidy frames and figures."""
