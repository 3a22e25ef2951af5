"""The command line. Heavy imports wait until a command needs them, so that help is there at once."""

from __future__ import annotations


def main() -> None:
    """The entry point of `doral`."""
    from doral.cli.app import app

    app(prog_name="doral")
