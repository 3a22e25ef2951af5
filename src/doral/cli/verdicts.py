"""Claims on the terminal: what holds, what does not, and what cannot be said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.text import Text

from doral.cli import terminal
from doral.experiments.kit.claim import Claim
from doral.pages.numbers import number, spread

WIDE_COLUMNS = 150  # a narrower terminal gets the short names of the claims
_STYLES = {"holds": ("holds", "green"), "fails": ("FAILS", "red"), "not shown": ("not shown", "yellow")}


def show_claims(
    claims: Iterable[Claim], *, place: str, places: Mapping[str, str], unit: str = "", is_signed: bool = True
) -> None:
    """A table of claims; `place` heads the column of scenarios, `places` are their names for people.

    `unit` is that of all estimates, where they have one in common.
    """
    is_wide = terminal.output().width >= WIDE_COLUMNS
    rows: list[list[str | Text]] = []
    for claim in claims:
        words, style = _STYLES[claim.verdict]
        bounds = spread(claim.low, claim.high, 2, signed=is_signed)
        estimate = number(claim.estimate, 2, signed=is_signed)
        said = [claim.statement, places.get(claim.scenario, claim.scenario)] if is_wide else [claim.id]
        rows.append([Text(words, style=style), *said, estimate, bounds, *([claim.unit] if is_wide else [])])
    if is_wide:
        terminal.show_table(["", "claim", place, "estimate", "95% interval", "unit"], rows, numbers=(3, 4))
    else:
        terminal.show_table(["", "claim", f"estimate{unit}", "95% interval"], rows, numbers=(2, 3))
