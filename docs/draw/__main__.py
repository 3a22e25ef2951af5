"""`python docs/draw` (or `make docs-figures`) draws the pictures of the concepts again, into docs/img/concepts."""

from __future__ import annotations

from pathlib import Path

from life import ledger, life
from price import hulls, staircase
from silence import race, waiting

FOLDER = Path(__file__).resolve().parents[1] / "img" / "concepts"
DRAWN = {
    "life": life,
    "ledger": ledger,
    "waiting": waiting,
    "race": race,
    "hulls": hulls,
    "staircase": staircase,
}

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWN.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg())
