"""`python -m doral.cli`, the same as `doral`."""

from doral.cli import main

main()
