"""Results of runs: outcomes, tables, differences, plots and files."""
