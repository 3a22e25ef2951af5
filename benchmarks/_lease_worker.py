"""One worker of `leases.py`, a process of its own: batches of decisions on one campaign for some seconds.

It says `ready` once it has decided a batch, waits for a line, and prints what it did as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import doral
from doral import Decision


def main() -> None:
    told = json.loads(sys.argv[1])
    batch, answers = told["batch"], told["answers"]
    contexts = [told["contexts"][i % len(told["contexts"])] for i in range(batch)]
    named = {"leases": True} if told["leases"] else {}
    with doral.open(told["url"], **named) as store:
        campaign = store.campaign(told["campaign"])
        decided: list[Decision] = campaign.decide_many(contexts)
        print("ready", flush=True)
        sys.stdin.readline()
        began, used, latencies = time.monotonic(), time.process_time(), []
        before, n_warm, n_answers = decided, len(decided), 0
        while (now := time.monotonic()) < began + told["seconds"]:
            found = campaign.decide_many(contexts)
            latencies.append(time.monotonic() - now)
            decided += found
            if answers:
                asked = [(one.id, 1.0) for one in before if one.arm is not None][:answers]
                n_answers += len(campaign.feedback_many(asked))
            before = found
        wall_s, processor_s = time.monotonic() - began, time.process_time() - used
    latencies.sort()
    print(
        json.dumps(
            {
                "decisions": len(decided) - n_warm,
                "answers": n_answers,
                "wall_s": wall_s,
                "processor_s": processor_s,
                "p50_ms": 1e3 * latencies[len(latencies) // 2],
                "p99_ms": 1e3 * latencies[int(0.99 * len(latencies))],
                "sequences": [int(one.id.split("-")[1]) for one in decided],
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
