"""`report.html`: one file that opens offline, with every figure, table and setting of a reproduction."""
