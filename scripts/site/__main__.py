"""`python scripts/site build` makes the site and looks at every page of it; `serve` shows it while you write."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))  # this checkout, whatever is installed

from generated import write_api
from llms import write_llms
from staging import PAGES, ROOT, SITE, stage

HERE = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "scripts" / "site"), str(ROOT / "src")]),
    "NO_COLOR": "1",
}
# Whatever else it says is a warning.
QUIET = re.compile(r"Build started|Build finished|No issues found")
ZENSICAL = [sys.executable, "-m", "zensical"]


def build() -> int:
    from crawling import complaints

    stage()
    write_api(PAGES)
    done = subprocess.run(
        [*ZENSICAL, "build", "--strict", "--clean"],
        cwd=ROOT,
        env=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    unexpected = [line for line in said.splitlines() if line.strip() and not QUIET.match(line)]
    if done.returncode != 0 or unexpected:
        print("\n".join(unexpected), file=sys.stderr)
        return 1
    found = complaints(SITE)
    for line in found:
        print(line, file=sys.stderr)
    if found:
        print(f"{len(found)} faults in the pages", file=sys.stderr)
        return 1
    write_llms()
    print(f"The site is in {SITE.relative_to(ROOT)}: open index.html there.")
    return 0


def serve() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the server below ends with this process, however it ends
    stage()
    write_api(PAGES)
    server = subprocess.Popen([*ZENSICAL, "serve"], cwd=ROOT, env=HERE)
    try:
        while server.poll() is None:
            time.sleep(0.5)
            stage()
    except KeyboardInterrupt:
        pass
    finally:
        server.terminate()
        server.wait()
    return 0


if __name__ == "__main__":
    words = {"build": build, "serve": serve}
    if sys.argv[1:2] == [] or sys.argv[1] not in words:
        sys.exit("say one of: " + ", ".join(words))
    sys.exit(words[sys.argv[1]]())
