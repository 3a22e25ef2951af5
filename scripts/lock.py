"""Pin the newest versions that fit together, in requirements/base.txt and requirements/dev.txt.

pip resolves (`make lock` gives it an environment of its own, with a pip that knows dependency groups); this script
writes names and exact versions of what pip would install, without download addresses.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE, DEV = ROOT / "requirements" / "base.txt", ROOT / "requirements" / "dev.txt"


def resolve(*words: str) -> list[str]:
    """Return name==version of everything that pip would install for these words, DORAL left out."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    done = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    packages = [row["metadata"] for row in json.loads(done.stdout)["install"]]
    pins = {re.sub(r"[-_.]+", "-", one["name"]).lower(): one["version"] for one in packages}
    return [f"{name}=={version}" for name, version in sorted(pins.items()) if name != "doral"]


def write(path: Path, title: str, pins: list[str]) -> None:
    """Write a file of pins under a title."""
    path.write_text("\n".join([f"# {title} Written by `make lock`.", *pins]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(BASE, "Exact versions of what doral needs.", resolve(".[serve]"))
    pins = resolve(".[serve]", "--group", "dev", "--constraint", str(BASE))
    write(DEV, "Exact versions for work on doral itself.", pins)
