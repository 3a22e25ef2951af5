"""What importing DORAL takes, and the memory of a process that plays, as for every peer."""

from __future__ import annotations

import json
import resource
import sys
import time

before = time.process_time()
import doral  # noqa: E402

import_s = time.process_time() - before
doral.simulate(sys.argv[1], "paper/diverse-pareto", runs=1, progress=False)
print(json.dumps({"import_s": import_s, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
