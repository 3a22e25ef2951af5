"""The command line. Heavy imports wait until a command needs them, so that help is there at once."""

from __future__ import annotations

import io
import sys


def main(program: str = "doral") -> None:
    """Run the command that was typed; `program` is its name in the lines on how to use it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # signs that a terminal of another locale lacks
    # A shell completes the command of the path, however it was started.
    is_about_completion = any(word.startswith(("--install-completion", "--show-completion")) for word in sys.argv[1:])
    try:
        from doral.cli.app import app

        app(prog_name="doral" if is_about_completion else program)
    except KeyboardInterrupt:  # before a command has begun
        sys.exit(130)
    finally:
        _flush()


def _flush() -> None:
    """Write what is left, where a reader that went away (`doral --help | head -1`) can still be noticed."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        from doral.cli.command import silence_closed_pipe

        silence_closed_pipe()
