"""What the commands of `doral campaign` have in common: their arguments and options, and the store that they open."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from doral.cli import completing
from doral.cli.exits import exit_codes
from doral.errors import InvalidValue
from doral.live.errors import StorageError

if TYPE_CHECKING:
    from doral.live.store import Store

DEFAULT_STORAGE = "sqlite:///campaigns.db"

_STORAGE_HELP = "sqlite:///file.db or postgresql://host/db."
_TIME_HELP = "When it happened, for back-fill: seconds since 1970 or 2026-03-01T12:00Z (or a round)."
_TOLERANCE_HELP = "How far clocks may disagree, in seconds; a time that is further ahead is refused. 300 if not given."

Storage = Annotated[str, typer.Option("--storage", "-s", envvar="DORAL_STORAGE", metavar="URL", help=_STORAGE_HELP)]
Name = Annotated[
    str, typer.Argument(metavar="CAMPAIGN", help="Name of the campaign.", autocompletion=completing.campaigns)
]
DecisionId = Annotated[str, typer.Argument(metavar="DECISION", help="Id of the decision.")]
Reward = Annotated[float, typer.Argument(metavar="REWARD", help="What came back; 0 is an answer, too.")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
Key = Annotated[str | None, typer.Option(help="The same key again gives the same answer, and changes nothing.")]
At = Annotated[str | None, typer.Option(metavar="TIME", help=_TIME_HELP)]
ActualCost = Annotated[float | None, typer.Option(help="What it cost after all; the rest is given back.")]
Tolerance = Annotated[float | None, typer.Option("--clock-tolerance", metavar="SECONDS", help=_TOLERANCE_HELP)]

_NEGATIVE = re.compile(r"-(\.?\d|inf|nan)", re.IGNORECASE)


class TakesNumbers(TyperCommand):
    """A command that takes -0.5 for a number, where others would look for an option of that name."""

    # (The types of Typer's own click are private.)
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A blank in front makes a value of a number, and does not change it."""
        with_value = {name for one in self.params if not getattr(one, "is_flag", True) for name in one.opts}
        words: list[str] = []
        for place, word in enumerate(args):
            if word == "--":
                words += args[place:]
                break
            is_value = place > 0 and args[place - 1] in with_value
            words.append(f" {word}" if _NEGATIVE.match(word) and not is_value else word)
        return super().parse_args(ctx, words)


@contextmanager
def opened(
    storage: str, *, create: bool = False, clock_tolerance: float | None = None, if_interrupted: str = ""
) -> Iterator[Store]:
    """The store; what goes wrong becomes one line and an exit code that scripts can use."""
    with exit_codes(if_interrupted=if_interrupted):
        refuse_unkept(storage)
        from doral.live.runtime.session import CLOCK_TOLERANCE_S
        from doral.live.state.own_policy import read_code
        from doral.live.store import open as open_store

        if not create:
            _refuse_missing(storage)
        tolerance_s = CLOCK_TOLERANCE_S if clock_tolerance is None else clock_tolerance
        code = read_code(os.environ.get("DORAL_CODE", ""))
        with open_store(storage, create=create, clock_tolerance_s=tolerance_s, code=code) as store:
            yield store


def refuse_unkept(storage: str) -> None:
    """Memory ends with the command."""
    if storage.startswith("memory:"):
        remedy = "nothing would be kept after this command; give sqlite:///file.db or postgresql://..."
        raise InvalidValue("storage", storage, remedy)


def _refuse_missing(storage: str) -> None:
    if not storage.startswith("sqlite:"):
        return
    from doral.live.storage.urls import read_sqlite

    path = read_sqlite(storage).path
    if not path.exists():
        raise StorageError(
            f"{path}: there is no such file; is --storage (or DORAL_STORAGE) right? `doral campaign create` makes it"
        )
