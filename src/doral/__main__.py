"""`python -m doral`, the same as `doral`: for those whose path does not have the latter."""

from doral.cli import main

if __name__ == "__main__":
    main("python -m doral")
