"""`python -m doral`, the same command as `doral`."""

from doral.cli import main

if __name__ == "__main__":
    main("python -m doral")
