"""The routes of the API: one file for each thing that is asked for. Each module has a `router`."""
