"""How often intervals hold the truth, for everything that a plan says: one report, each part with its command.

    python -m benchmarks.coverage --logs 200 --out build/coverage.md

Parts run one after the other, each as the command that stands above its table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PARTS = {
    "What needs no playing: cells, arms, budgets, gain against cost, the knee": "posterior_coverage",
    "What policies earn, and whether the recommended one is worse than today": "earnings_coverage",
    "Return curves as a whole": "plan_coverage",
    "Values of policies from the log alone": "evaluation_coverage",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--part", action="append", choices=tuple(PARTS.values()), help="may be repeated; default: all")
    parser.add_argument("--out", type=Path, default=Path("build/coverage.md"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w") as report:
        for title, name in PARTS.items():
            if options.part and name not in options.part:
                continue
            command = ["-m", f"benchmarks.{name}", "--logs", str(options.logs)]
            report.write(f"## {title}\n\n`python {' '.join(command)}`\n\n")
            report.flush()
            subprocess.run([sys.executable, *command], stdout=report, check=True)
            report.write("\n")
    print(options.out)


if __name__ == "__main__":
    main()
