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
        before, n_answers = decided, 0
        ids = [one.id for one in decided]  # and not decisions: nobody keeps them all
        n_warm = len(ids)
        while (now := time.monotonic()) < began + told["seconds"]:
            found = campaign.decide_many(contexts)
            latencies.append(time.monotonic() - now)
            ids += [one.id for one in found]
            if answers:
                asked = [(one.id, 1.0) for one in before if one.arm is not None][:answers]
                n_answers += len(campaign.feedback_many(asked))
            before = found
        wall_s, processor_s = time.monotonic() - began, time.process_time() - used
    latencies.sort()
    print(
        json.dumps(
            {
                "decisions": len(ids) - n_warm,
                "answers": n_answers,
                "wall_s": wall_s,
                "processor_s": processor_s,
                "p50_ms": 1e3 * latencies[len(latencies) // 2],
                "p99_ms": 1e3 * latencies[int(0.99 * len(latencies))],
                "sequences": [int(one.split("-")[1]) for one in ids],
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
