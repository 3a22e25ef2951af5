"""`doral campaign ...` as the tests call it."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from typer.testing import CliRunner

from doral.cli.campaign import app
from tests.live import writer

main = typer.Typer(rich_markup_mode=None)
main.add_typer(app)  # as the main program does it


@main.callback()
def _common() -> None:
    pass


class Shell:
    """Gives what a command prints; what it says when it fails, if that is expected."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.storage = f"sqlite:///{folder / 'c.db'}"
        self.problem = folder / "problem.json"
        self.problem.write_text(json.dumps(writer.PROBLEM.to_dict()))

    def __call__(self, *words: object, code: int = 0, typed: bytes | str = "") -> str:
        command, *rest = map(str, words)
        # Options come first, so that a test can end with `--`.
        place = 2 if command == "arm" else 1
        arguments = [command, *rest]
        arguments = ["campaign", *arguments[:place], "--storage", self.storage, *arguments[place:]]
        result = CliRunner().invoke(main, arguments, input=typed)
        assert result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        if code == 0:
            assert result.stderr == ""
            return result.stdout
        return result.stderr

    def json(self, *words: object, typed: bytes | str = "") -> list[dict[str, object]]:
        """One object per line."""
        return [json.loads(line) for line in self(*words, "--json", typed=typed).splitlines()]

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path
