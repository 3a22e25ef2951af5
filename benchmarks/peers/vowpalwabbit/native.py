"""The native pass of Vowpal Wabbit's RegCB over a file: what `vw -d FILE` does, in this process. Says how long it took.

Arguments: the file, how often, the least and the largest cost in it.
Parsing, predicting and learning are its own C++; Python starts it and waits.
"""

from __future__ import annotations

import json
import sys
import time

from vowpalwabbit import Workspace

OPTIONS = ["--cb_explore_adf", "--regcbopt", "--interactions", "ca", "--quiet"]


def main() -> None:
    path, turns, least, most = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5]
    seconds = []
    for _ in range(turns):
        wall, processor = time.perf_counter(), time.process_time()
        workspace = Workspace(arg_list=[*OPTIONS, "--cb_min_cost", least, "--cb_max_cost", most, "-d", path])
        workspace.finish()
        seconds.append(min(time.perf_counter() - wall, time.process_time() - processor))
    print(json.dumps({"seconds": min(seconds)}))


if __name__ == "__main__":
    main()
