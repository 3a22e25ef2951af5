"""Runs the program of docs/index.md and keeps its picture: `python docs/draw/first_picture.py`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    (program,) = re.findall(r"^```python\n(.*?)^```$", (DOCS / "index.md").read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(program, names)
    names["figure"].savefig(DOCS / "img" / "first_picture.png", dpi=110, metadata={"Software": None})
