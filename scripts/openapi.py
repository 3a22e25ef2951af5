"""`python scripts/openapi.py FILE` writes the description of the service's API, OpenAPI 3.1, as it sends it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))  # this checkout, whatever is installed


def description() -> dict[str, Any]:
    """Without a store: nothing is opened before the first request."""
    from doral.service.app import make_app
    from doral.service.settings import ServiceSettings

    return make_app(ServiceSettings(storage="memory://")).openapi()


def write(file: Path) -> None:
    """Only where it has changed, so that whoever watches the file is not woken for nothing."""
    text = json.dumps(description(), ensure_ascii=False, indent=1) + "\n"
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("say where to write it: python scripts/openapi.py build/openapi.json")
    write(Path(sys.argv[1]))
