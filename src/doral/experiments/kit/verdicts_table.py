"""Claims with their verdicts, on a page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from doral.experiments.kit.claim import Claim, Verdict
from doral.pages.markup import Datum, Row, amount, table, text
from doral.pages.numbers import spread

_VERDICTS = {
    "holds": ("good", "\N{CHECK MARK} holds"),
    "fails": ("bad", "\N{BALLOT X} fails"),
    "not shown": ("open", "? not shown"),
}


VERDICTS_NOTE = (
    "“Holds”: all of the interval agrees with the statement; “fails”: all of it contradicts the statement; “not "
    "shown”: the interval is too wide to say, or there are too few runs for one."
)


def verdict_mark(verdict: Verdict, words: str = "") -> str:
    """The verdict in a colour, with a sign for those who do not see it; `words` may stand in its place."""
    look, own = _VERDICTS[verdict]
    return f'<span class="mark {look}">{words or own}</span>'


def verdicts_table(claims: list[Claim], *, caption: str, places: Mapping[str, str], is_signed: bool = True) -> str:
    """Statements with their verdicts; `places` are names of scenarios for people."""
    rows = []
    for claim in claims:
        statement = f"{escape(claim.statement)}<br><small>{escape(places.get(claim.scenario, claim.scenario))}</small>"
        bounds = spread(claim.low, claim.high, 2, signed=is_signed)
        rows.append(
            Row(
                data=[
                    Datum(html=verdict_mark(claim.verdict), sort=claim.verdict),
                    Datum(html=statement, is_head=True),
                    amount(claim.estimate, 2, signed=is_signed),
                    Datum(html=bounds, sort=claim.low, look="number"),
                    text(claim.unit),
                ]
            )
        )
    heads = ["verdict", "statement", "estimate", "95% interval", "unit"]
    return table(name="claims-table", caption=caption, heads=heads, rows=rows)
