"""What runs gave: outcomes, tables, differences, plots and files."""
