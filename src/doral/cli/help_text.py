"""Help in plain text: commands by groups, and every line whole, however narrow the terminal is."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

_UNGROUPED = "Commands"


class Grouped(TyperGroup):
    """A group of commands whose plain help has the panels of the framed one, and cuts nothing off."""

    # (The types of Typer's own click are private.)
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """By panels, in the order in which these first appear; a first sentence that is too long for a line is
        wrapped."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            panel = getattr(command, "rich_help_panel", None)
            said = command.get_short_help_str(limit=10_000)
            panels.setdefault(panel if isinstance(panel, str) else _UNGROUPED, []).append((name, said))
        widest = max((len(name) for rows in panels.values() for name, _ in rows), default=0)
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(widest), said) for name, said in rows])
