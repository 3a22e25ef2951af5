"""How a command behaves: its help, its old spellings, its messages and its exit code."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

from doral.errors import DoralError
from doral.live.errors import StorageError

# Exit codes, as docs/reference/command_line.md lists them.
FAILED = 1  # the store, a file, the operating system; a log that is damaged
MISUSED = 2  # a name, an option, a value
INTERRUPTED = 130  # Ctrl-C, as shells report it

Function = TypeVar("Function", bound=Callable[..., Any])

_METAVARS = {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}
_NEGATIVE = re.compile(r"-(\.?\d|inf|nan)", re.IGNORECASE)
# Names in messages of the library, and the parameter of a command that they are about.
_PYTHON_NAMES = {
    "n_jobs": "jobs",
    "source": "log",
    "url": "storage",
    "scenario file": "scenario",
    "problem file": "problem",
}
# What is typed for a command that has another name.
_MEANT = {"report": "show", "status": "show", "stop": "close", "answer": "feedback", "remove": "delete"}


def say(message: str) -> None:
    """Print a line to standard error; results alone go to standard output."""
    typer.echo(message, err=True)


def show(text: str, content: Any, *, as_json: bool) -> None:
    """Print a result: as text, or its content as one line of JSON."""
    typer.echo(json_line(content) if as_json else text)


def json_line(content: Any) -> str:
    """Return one line of JSON; what is not finite is null.

    >>> json_line({"mean": float("inf"), "names": ("a", "b")})
    '{"mean": null, "names": ["a", "b"]}'
    """
    return json.dumps(_finite(content))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def counted(count: int, noun: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "decision"), counted(2000, "decision")
    ('1 decision', '2,000 decisions')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def as_typed(text: object, names: Mapping[str, str]) -> str:
    """Spell the arguments of Python that a message names as options; `names` says how each is typed.

    >>> names = {"arm": "--arm", "feedback": "--feedback", "cost": "--cost"}
    >>> as_typed("say with arm= which it is; feedback='silent' says otherwise, cost=False: none", names)
    "say with --arm which it is; --feedback silent says otherwise, --cost '': none"
    >>> as_typed("arm = 'chanel': no such column", names)
    "--arm 'chanel': no such column"
    """
    any_name = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    if not any_name:
        return str(text)
    field = re.compile(rf"(?m)^(\s*)({any_name})(?: = None(?=:)| =(?= )|(?=:))")
    argument = re.compile(rf"\b({any_name})=('[^']*'|\[[^\]]*\]|False|[\w.]+)?")

    def option(match: re.Match[str]) -> str:
        value = match[2]
        if value is None:
            return names[match[1]]
        if value in ("False", "[]"):
            value = "''"
        elif re.fullmatch(r"'[\w.:-]+'", value):
            value = value[1:-1]
        return f"{names[match[1]]} {value}"

    return argument.sub(option, field.sub(lambda match: match[1] + names[match[2]], str(text)))


@contextmanager
def exit_codes(names: Mapping[str, str] = {}) -> Iterator[None]:
    """End the program with one line and an exit code for whatever can go wrong outside of it."""
    try:
        yield
        sys.stdout.flush()  # here, where a reader that went away can still be noticed
    except DoralError as error:
        say(f"doral: {as_typed(error, names)}")
        raise typer.Exit(FAILED if isinstance(error, StorageError | OSError) else MISUSED) from None
    except UnicodeError as error:  # in a file or on standard input
        say(f"doral: this is no text in UTF-8: {error.reason if isinstance(error, UnicodeDecodeError) else error}")
        raise typer.Exit(MISUSED) from None
    except BrokenPipeError:
        silence_closed_pipe()
        raise typer.Exit(FAILED) from None
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        say(f"doral: {error.strerror or error}{where}")
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt as error:
        say(f"doral: interrupted{f'; {error}' if error.args else ''}")
        raise typer.Exit(INTERRUPTED) from None


def silence_closed_pipe() -> None:
    """Let the interpreter end without a complaint after `doral ... | head`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def if_interrupted(note: str) -> Iterator[None]:
    """Add to the message after Ctrl-C what is true then."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(note) from None


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    example: str,
    panel: str | None = None,
    renamed: Mapping[str, str] | None = None,
    takes_numbers: bool = False,
    hidden: bool = False,
) -> Callable[[Function], Function]:
    """Register a function as a command.

    Args:
        app: The group.
        name: What is typed; None: the name of the function.
        example: A whole command that works, shown at the end of the help.
        panel: The heading of the command in the list of its group.
        renamed: By old option its name now; "": it is an argument now.
        takes_numbers: Whether -0.5 is a value of an argument and no option.
        hidden: Whether the help leaves it out.
    """
    kind = partial(Command, example=example, renamed=renamed or {}, takes_numbers=takes_numbers)
    return app.command(name, cls=cast(Any, kind), rich_help_panel=panel, hidden=hidden)


class Command(TyperCommand):
    """A command as DORAL has it. (The types of Typer's own click are private.)"""

    def __init__(
        self, *words: Any, example: str = "", renamed: Mapping[str, str], takes_numbers: bool = False, **settings: Any
    ) -> None:
        super().__init__(*words, **{**settings, "epilog": f"Example: {example}" if example else None})
        self.example = example
        self._renamed, self._takes_numbers = renamed, takes_numbers
        for one in cast(Any, self.params):
            _show_plainly(one)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line: [OPTIONS] LOG."""
        words = [self.options_metavar or ""]
        for one in cast(Any, self.get_params(ctx)):
            if one.param_type_name == "argument" and not one.hidden:
                name = one.metavar or one.name.upper()
                words.append((name if one.required else f"[{name}]") + ("..." if one.nargs != 1 else ""))
        return words

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List arguments and options by panels."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for one in cast(Any, self.get_params(ctx)):
            record = one.get_help_record(ctx)
            if record is not None:
                panel = one.rich_help_panel if isinstance(one.rich_help_panel, str) else "Options"
                panels.setdefault("Arguments" if one.param_type_name == "argument" else panel, []).append(record)
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line, in old spellings, too."""
        args = self._current(args, ctx)
        try:
            return super().parse_args(ctx, self._marked(args) if self._takes_numbers else args)
        except typer.BadParameter as error:  # in words that know no parser
            wanted = re.sub(r"^Input should be (?:a )?(.*?)(?:, unable to parse.*)?$", r"must be \1", error.message)
            error.message = wanted.replace("valid integer", "a whole number").replace("valid number", "a number")
            raise

    def _current(self, args: list[str], ctx: Any) -> list[str]:
        words, arguments, rest = [], [], iter(args)
        for word in rest:
            if word == "--":
                words += [word, *rest]
                break
            name, is_joined, value = word.partition("=")
            if name not in self._renamed:
                words.append(word)
                continue
            new = self._renamed[name]
            if not ctx.resilient_parsing:
                say(f"doral: {name} is now {new or 'an argument'}; the old spelling ends with the next release")
            if new:
                words.append(f"{new}={value}" if is_joined else new)
            else:
                arguments += [value] if is_joined else [next(rest, "")]
        return words + arguments

    def _marked(self, args: list[str]) -> list[str]:
        """Put a blank before a negative number, which makes it a value and does not change it."""
        with_value = {name for one in self.params if not getattr(one, "is_flag", True) for name in one.opts}
        words: list[str] = []
        for place, word in enumerate(args):
            if word == "--":
                return words + args[place:]
            is_value = place > 0 and args[place - 1] in with_value
            words.append(f" {word}" if _NEGATIVE.match(word) and not is_value else word)
        return words

    def invoke(self, ctx: Any) -> Any:
        """Run it; what goes wrong is one line and an exit code."""
        with exit_codes(self.typed_names()):
            return super().invoke(ctx)

    def typed_names(self) -> dict[str, str]:
        """Return how each argument and option is typed, by its name in messages of the library."""
        names: dict[str, str] = {}
        for one in cast(Any, self.params):
            if one.param_type_name == "argument":
                typed = (one.metavar or one.name).strip("[]").upper()
                names |= {one.name: typed, typed.lower(): typed}
            else:
                typed = next((word for word in one.opts if word.startswith("--")), one.opts[0])
                names |= {one.name: typed, typed.removeprefix("--").replace("-", "_"): typed}
        return names | {name: names[option] for name, option in _PYTHON_NAMES.items() if option in names}


def _show_plainly(one: Any) -> None:
    """Show an argument by its name, and the value of an option in a word: Typer shows <int range> and x>=1."""
    if one.param_type_name == "argument":
        one.display_type_rich = lambda ctx: None
    elif one.metavar is None and not one.is_flag:
        kind = one.type_descriptor.annotation
        one.metavar = _METAVARS.get(kind) or next(
            (word for type_, word in _METAVARS.items() if type_.__name__ in str(kind)), "TEXT"
        )
    one._get_number_range_help_str = lambda: _range_in_words(getattr(one, "min", None), getattr(one, "max", None))


def _range_in_words(low: float | None, high: float | None) -> str | None:
    if low is None:
        return None
    return f"at least {low:,}" if high is None else f"{low:,} to {high:,}"


class Group(TyperGroup):
    """A group of commands whose help lists them by panels, and whose old names still work."""

    renamed: Mapping[str, str] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by panels; a first sentence that is too long for a line is wrapped."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            member: Any = self.get_command(ctx, name)
            if not member.hidden:
                panel = member.rich_help_panel if isinstance(member.rich_help_panel, str) else "Commands"
                panels.setdefault(panel, []).append((name, member.get_short_help_str(limit=10_000)))
        widest = max((len(name) for rows in panels.values() for name, _ in rows), default=0)
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(widest), words) for name, words in rows])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by its name, or by the one that it had."""
        new = self.renamed.get(args[0])
        if new is None:
            if args[0] not in self.commands and not args[0].startswith("-") and not ctx.resilient_parsing:
                listed = [name for name, member in cast(Any, self.commands).items() if not member.hidden]
                near = [_MEANT[args[0]]] if _MEANT.get(args[0]) in listed else get_close_matches(args[0], listed)
                advice = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
                ctx.fail(f"No such command {args[0]!r}.{advice}")
            return super().resolve_command(ctx, args)
        if not ctx.resilient_parsing:
            say(f"doral: `{args[0]}` is now `{new}`; the old spelling ends with the next release")
        return super().resolve_command(ctx, [*new.split(), *args[1:]])


def group(name: str, help_: str) -> typer.Typer:
    """Return a group of commands."""
    return typer.Typer(name=name, help=help_, cls=Group, no_args_is_help=True)
