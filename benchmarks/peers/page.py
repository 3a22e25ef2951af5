"""docs/benchmarks.md, a summary, and benchmarks/peers/RESULTS.md, every table; made of the results of a call."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tables
from known import NAME as KNOWN
from own import SECOND
from scenarios import GROUPS, LEAST_DEADLINES

import doral

TITLES = {"paper": "The paper's four", "stress": "Stress and real life", "people": "People with features"}


def about() -> dict[str, Any]:
    """The machine in general words, and the day."""
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
        "doral": doral.__version__,
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.exists() else ():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def page(found: dict[str, Any]) -> str:
    """Return docs/benchmarks.md: targets, a row per library, speed, and what the figures do not say."""
    return "\n".join(_summary(found)) + "\n"


def results(found: dict[str, Any]) -> str:
    """Return benchmarks/peers/RESULTS.md: the tables of every scenario, what was not played, how each was used."""
    return "\n".join(_tables(found)) + "\n"


WRITTEN = "<!-- Written by `make bench-peers`; changes by hand are lost with the next call. -->"


def _setting(found: dict[str, Any]) -> str:
    """Return the day, the machine and the number of runs."""
    about, asked = found["about"], found["asked"]
    day = datetime.date.fromisoformat(about["date"])
    cores = f"{about['cores']} core" + ("s" if about["cores"] != 1 else "")
    return (
        f"{day.day} {day:%B %Y}, {cores} ({about['processor']}), Python {about['python']}, DORAL {about['doral']}, "
        f"{asked['runs']} runs of every scenario and more of the shortest. The last call took "
        f"{max(1, round(found['seconds'] / 60))} min.\n"
    )


def _summary(found: dict[str, Any]) -> Iterator[str]:
    yield WRITTEN
    yield "# Beside other libraries\n"
    yield (
        "`make bench-peers` lets DORAL and other libraries play the same tapes, and writes this page. Each library has "
        "an environment of its own with exact versions, and an adapter of a few lines. Answers are handed over when "
        "they return; the budget is kept to the last cent; rewards count within the deadline. The player gives what "
        "`doral.simulate` gives for the same decisions, to the bit (tested on every scenario). Tables of every "
        "scenario, the libraries that were too slow for one, and how each was used: "
        "[results](../benchmarks/peers/RESULTS.md).\n"
    )
    yield _setting(found)
    yield "## Targets\n"
    yield tables.targets(found) + "\n"
    yield "## Quality\n"
    yield _length_of_scenarios(found)
    yield (
        "Means over the scenarios of a group, in percent of the oracle's reward; how far `doral-otf` is ahead, in "
        "points, over all scenarios that the peer played; and on how many scenarios one is ahead by a 95% interval.\n"
    )
    yield tables.summary(found) + "\n"
    yield (
        f"The row *{KNOWN}* is no library: it takes the arm with the largest true mean per unit of cost, and keeps "
        "the budget in the best of three simple ways. It is a ceiling for whatever these ways are written around. "
        f"The row `{SECOND.name}` is another policy of DORAL.\n"
    )
    if found["speed"] is not None:
        yield from _speed(found)
    yield _NOT_SAID


def _tables(found: dict[str, Any]) -> Iterator[str]:
    asked = found["asked"]
    yield WRITTEN
    yield "# Results of every scenario\n"
    yield "The summary is [docs/benchmarks.md](../../docs/benchmarks.md).\n"
    yield _setting(found)
    yield (
        "Shares are what the choices are worth in expectation, within the deadline, in percent of the oracle's, with "
        "95% intervals over runs ([compare fairly](../../docs/howto/compare_fairly.md)). In brackets: `doral-otf` less "
        "the peer, in points, paired by run; ≈: cannot be told apart. **Bold**: the peer is ahead, by that interval. "
        "After a share, how the budget was kept where the library has no way of its own: s, everybody is served until "
        "it is gone; c, a coin serves with probability rate = budget left / (rounds left x cost of the chosen arm); "
        "r, contexts are served from the best down, by their estimated means, until the rate is filled (people of one "
        "context by the library's own score of the chosen arm, if it tells one, else as c). All three are played on "
        "one more tape, which is not counted; the best there is used in all runs that are.\n"
    )
    for group in GROUPS:
        if any(row["name"].startswith(f"{group}/") for row in found["scenarios"]):
            yield f"## {TITLES[group]}\n"
            for table in tables.by_scenario(found, group):
                yield table + "\n"
    if lines := tables.failures(found):
        yield "## Not played\n"
        yield from lines
        yield (
            f"\nA policy has {asked['limit_s']:g} seconds of processor time for a scenario, trials included, in "
            "proportion more for the longer ones. One that could not finish three runs by then, at the pace that is "
            "shown, is too slow for it. Where it has finished fewer runs than others, those are compared.\n"
        )
    yield "## How each was used\n"
    yield (
        "With the library's defaults, and [a few lines around it](plain.py) where it knows neither budget nor delay: a "
        "decision teaches once, by its answer or by a 0 when the deadline has passed; what is learned is the reward "
        "per unit of cost, times the weight of the context, beyond the baseline.\n"
    )
    for peer in found["peers"]:
        yield from _used(peer)


def _length_of_scenarios(found: dict[str, Any]) -> str:
    if found["asked"]["full"]:
        return "Scenarios are as long as they are.\n"
    rounds = found["asked"]["rounds"]
    return (
        f"So that slow libraries can play, scenarios are shortened, for everybody: horizon and budget are divided to "
        f"about {rounds:,} arrivals (at least {LEAST_DEADLINES} deadlines, or the whole scenario where that is "
        "shorter); delays and deadlines stay. That leaves less time to learn than the scenarios have, so that shares "
        "are lower than in [beyond the paper](beyond.md#what-it-earns), DORAL's included. `--full` plays all of "
        "them.\n"
    )


def _speed(found: dict[str, Any]) -> Iterator[str]:
    yield "## Speed\n"
    yield (
        "LinUCB with delays on `paper/diverse-pareto`: ten arms, ten contexts, five features, a budget for every "
        "round; one after the other, in processor time on one core, everybody in turns, the best of three. Two kinds "
        "of rows must not be mixed up:\n"
    )
    yield (
        "- **Simulated**: `doral.simulate` runs a whole study in compiled code; it also draws the tape and keeps the "
        "books. The targets above are of `d-linucb` simulated against peers that Python calls, because that is what a "
        "study takes: with a peer, somebody has to call it round by round. A peer's time is without tape and player: "
        "the loop alone, which decides, keeps the budget, waits for answers and learns, is the closer of the two."
        f"{tables.c_words(found)}\n"
        "- **Called from Python**, once for each decision and once for each answer, as in a campaign: the peers, by "
        "the time in their own `decide` and `observe`, without the player's; and a DORAL campaign in memory, by the "
        "time in `campaign.decide` and `campaign.feedback`, on the same tapes. "
        f"{tables.online_words(found)}It does more in a call: a ledger, keys, a log with checksums. Whoever wants one "
        "decision at a time should compare these rows, and no others.\n"
    )
    yield (
        "The native pass of Vowpal Wabbit is over a file that was written beforehand, answers in the order in which "
        "they return; with decisions, every round is also predicted when it is decided, as with delays it must be. It "
        "parses in a thread of its own and may use all cores: the shorter of its wall clock and processor time counts. "
        "Import (beyond NumPy, in processor time) and memory (resident, at most) are those of a process that does this "
        "and nothing else. Compile is what DORAL's first call takes on a machine where nothing is compiled yet, in "
        "processor time; later ones read it from a folder.\n"
    )
    yield tables.speed(found) + "\n"


def _used(peer: dict[str, Any]) -> Iterator[str]:
    folder = f"{peer['key']}/adapter.py"
    if not peer["policies"]:
        yield f"- **{peer['name']}**: not installed: {tables.without_places(peer['why_not'])}."
        return
    absent = ", not installed" if peer["why_not"] else ""
    for policy, words in peer["policies"].items():
        yield f"- **{peer['name']} {policy}** {peer['version']}{absent} ([adapter]({folder})): {words}"


_NOT_SAID = "\n".join(
    (
        "\n## What this does not say\n",
        "- These are DORAL's scenarios: a budget that binds and answers that come late, which is what it is made for. "
        "Most of these libraries were made for rewards that come at once, and say nothing of budgets; without either, "
        "they may well be the better choice.",
        "- They are also the scenarios that DORAL was developed on. Its defaults are one set for all of them, derived "
        "where that was possible (the bonus by dynamic programming, priors and noise from the data of the run), but "
        "they were chosen, and kept or dropped, by what they earned on this catalogue ([beyond the paper](beyond.md) "
        "tells of each). No peer had that. On three real logs that nothing was made for it earns less "
        "([limits](beyond.md#limits)).",
        "- Defaults were used, not tuned settings. A library with the right exploration for a scenario earns more than "
        "shown here. DORAL is shown with its defaults, too.",
        "- Features of people are handed to the peers in standard deviations, which nobody knows in advance: a favour "
        "to them.",
        "- Few runs of short scenarios. With so many pairs, one in forty of those that are truly level would be shown "
        "ahead by chance, and as many behind.",
        "- Libraries that take whole batches are faster in batches, which late answers and a budget that is decided "
        "on one by one do not allow.",
        "- PPO's networks were trained beforehand, 600,000 steps in one to two minutes of one core each "
        "([train.py](../benchmarks/peers/ppo/train.py)), on the paper's four: that time is in no figure here, and "
        "the other scenarios are foreign to them.",
        "- Libraries also do what is not measured here: other models, evaluation, pipelines, services.",
    )
)
