"""What importing DORAL takes, and the memory of a process that plays, measured as for every peer: beyond NumPy."""

from __future__ import annotations

import json
import sys
import time

from play import peak_mb

before = time.process_time()
import doral  # noqa: E402

play = doral.simulate  # names are imported when they are first asked for
import_s = time.process_time() - before
play(sys.argv[1], "paper/diverse-pareto", runs=1, progress=False)
print(json.dumps({"import_s": import_s, "peak_mb": peak_mb()}))
