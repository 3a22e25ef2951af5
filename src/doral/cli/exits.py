"""How a command ends: a message of one line and an exit code that scripts can use, never a traceback on purpose."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from doral.errors import DoralError, InvalidValue
from doral.live.errors import StorageError

FAILED = 1  # the store, the disk, the operating system
MISUSED = 2  # a name, an option, a value
INTERRUPTED = 130  # as shells report Ctrl-C


def say(message: str) -> None:
    """One line to the person, not into the output."""
    typer.echo(message, err=True)


@contextmanager
def exit_codes(*, if_interrupted: str = "", spelling: Callable[[object], str] = str) -> Iterator[None]:
    """Turn what can go wrong into its exit code.

    Args:
        if_interrupted: What to know after Ctrl-C.
        spelling: Words a message for the command line, where options are not spelled as arguments of Python.
    """
    try:
        yield
        sys.stdout.flush()  # here, where a reader that went away can still be noticed
    except DoralError as error:
        say(f"doral: {spelling(error)}")
        raise typer.Exit(FAILED if isinstance(error, StorageError | OSError) else MISUSED) from None
    except BrokenPipeError:
        # Whoever read our output has gone (`doral ... | head`); Python must not complain at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        say(f"doral: {error.strerror or error}{where}")
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        say(f"doral: interrupted; {if_interrupted}" if if_interrupted else "doral: interrupted")
        raise typer.Exit(INTERRUPTED) from None


def check_jobs(jobs: int) -> None:
    """Before anything else is done."""
    if jobs == 0:
        raise InvalidValue("jobs", jobs, "must not be 0; -1 uses all cores")
