"""Text that a spreadsheet would run, and how it is kept from that.

A spreadsheet runs text that begins like a formula, so that in CSV such text gets an apostrophe in front, as OWASP
advises; whoever reads the file takes it away again.
"""

from __future__ import annotations

# What spreadsheets take for the beginning of a formula; also behind blanks and quotes, which some of them drop.
# (Characters as they are: polars and Python write them differently in a pattern.)
_SKIPPED = "\\s'\"\u2018\u2019\u201c\u201d\u200b\ufeff"
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"  # the latter are the full-width ones
FORMULA = rf"^(?:[{_SKIPPED}]*[{_SIGNS}]|[\t\r\n])"
NEUTRALISED = FORMULA.replace("^", "^'", 1)
