"""The command line. Heavy imports wait until a command needs them, so that help is there at once."""

from __future__ import annotations

import sys


def main(program: str = "doral") -> None:
    """The entry point of `doral`; `program` is what somebody typed, for the lines on how to use it."""
    from doral.cli.app import app

    # A shell completes the command of the path, whoever asks for it.
    is_about_completion = any(word.startswith(("--install-completion", "--show-completion")) for word in sys.argv[1:])
    app(prog_name="doral" if is_about_completion else program)
