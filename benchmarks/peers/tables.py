"""The tables of the page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import standing
from known import NAME as KNOWN
from own import POLICY, SECOND
from scenarios import GROUPS
from standing import Standing

from doral.simulation.results.differences import Interval

MINUS, PLUS_MINUS = "−", "±"  # noqa: RUF001  # a real minus, as everywhere in the documents
WAYS = {"spend": "s", "coin": "c", "rank": "r", "own": ""}
MOST_COLUMNS = 7  # scenarios in a table
PYTHON_TARGET, NATIVE_TARGET = 500.0, 50.0
SIMULATED, LOOP = "`d-linucb` simulated", "`d-linucb`, the loop alone"

# Who else is shown and is no peer: DORAL with another word, and somebody who has nothing to learn.
_OTHERS = {"second": f"`{SECOND.name}`", "known": f"{KNOWN} (no library)"}

Row = Sequence[str]


def markdown(header: Row, rows: Iterable[Row], *, numbers_from: int = 1) -> str:
    """A table; columns from `numbers_from` on are aligned to the right."""
    rule = ["---" if i < numbers_from else "---:" for i in range(len(header))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def number(value: float, digits: int = 1, *, signed: bool = False) -> str:
    text = f"{abs(value):,.{digits}f}"
    if float(text.replace(",", "")) == 0.0:
        return text
    return (MINUS if value < 0 else "+" if signed else "") + text


def plus_minus(shown: Interval, *, signed: bool = False) -> str:
    return f"{number(shown.mean, signed=signed)} {PLUS_MINUS}{number(shown.high - shown.mean)}"


def policy_name(found: dict[str, Any], peer: str, policy: str) -> str:
    names = {one["key"]: one["name"] for one in found["peers"]}
    return f"{names[peer]} {policy}"


def policies(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Policies that were played, in the order of the peers."""
    return [(peer["key"], policy) for peer in found["peers"] if not peer["why_not"] for policy in peer["policies"]]


def cell(one: Standing | None) -> str:
    """The share, how the budget was kept, and below that the difference."""
    if one is None:
        return "–"  # noqa: RUF001
    if one.share is None or one.lead is None:
        return one.words.partition(":")[0] + one.pace
    share, lead = plus_minus(one.share), plus_minus(one.lead, signed=True)
    if one.verdict == standing.AHEAD:
        share, lead = f"**{share}**", f"**{lead}**"
    level = " ≈" if one.verdict == standing.LEVEL else ""
    return f"{share} {WAYS.get(one.way, one.way)}".strip() + f"<br>({lead}{level})"


def by_scenario(found: dict[str, Any], group: str) -> Iterator[str]:
    """Tables of one group of scenarios, as many as are wide enough for all."""
    placed = {(one.peer, one.policy, one.scenario): one for one in standing.standings(found)}
    rows = [row for row in found["scenarios"] if row["name"].startswith(f"{group}/")]
    n_tables = math.ceil(len(rows) / MOST_COLUMNS)
    for number_ in range(n_tables):
        shown = rows[number_ * len(rows) // n_tables : (number_ + 1) * len(rows) // n_tables]
        header = ["policy", *(row["name"].partition("/")[2] for row in shown)]
        body = [[f"`{POLICY}`", *(plus_minus(standing.own_share(row)) for row in shown)]]
        body += [[name, *(_other_cell(row, who) for row in shown)] for who, name in _OTHERS.items()]
        body += [
            [policy_name(found, *one), *(cell(placed.get((*one, row["name"]))) for row in shown)]
            for one in policies(found)
        ]
        yield markdown(header, body)


def _other_cell(row: dict[str, Any], who: str) -> str:
    return f"{plus_minus(standing.other_share(row, who))} {WAYS[row[who].get('way', 'own')]}".strip()


def summary(found: dict[str, Any]) -> str:
    """One row for each policy: its mean share by group, and how often it is behind, level and ahead."""
    every = standing.standings(found)
    header = ["policy", "version", *(f"{group}, %" for group in GROUPS)]
    header += [f"`{POLICY}` less the peer", f"`{POLICY}` ahead", "not told apart", "peer ahead", "not played"]
    groups = {group: [row for row in found["scenarios"] if row["name"].startswith(f"{group}/")] for group in GROUPS}
    own = [_mean([standing.own_share(row).mean for row in rows]) for rows in groups.values()]
    body = [[f"`{POLICY}`", found["about"]["doral"], *own, *[""] * 5]]
    for who, name in _OTHERS.items():
        means = [_mean([standing.other_share(row, who).mean for row in rows]) for rows in groups.values()]
        body.append([name, "", *means, *[""] * 5])
    for peer in found["peers"]:
        if peer["why_not"]:
            body.append([peer["name"], peer["version"], *["–"] * 7, "not installed"])  # noqa: RUF001
            continue
        for policy in peer["policies"]:
            mine = [one for one in every if (one.peer, one.policy) == (peer["key"], policy)]
            means = [
                _mean([one.share.mean for one in mine if one.share and one.scenario.startswith(f"{group}/")])
                for group in GROUPS
            ]
            counts = {verdict: sum(one.verdict == verdict for one in mine) for verdict in _VERDICTS}
            ahead = counts[standing.AHEAD]
            lead = standing.mean_lead(mine)
            shown = [plus_minus(lead, signed=True) if lead else "–"]  # noqa: RUF001
            shown += [str(counts[standing.BEHIND]), str(counts[standing.LEVEL])]
            shown += [f"**{ahead}**" if ahead else "0", str(counts[standing.NOT_PLAYED])]
            body.append([f"{peer['name']} {policy}", peer["version"], *means, *shown])
    return markdown(header, body, numbers_from=2)


_VERDICTS = (standing.BEHIND, standing.LEVEL, standing.AHEAD, standing.NOT_PLAYED)


def _mean(values: list[float]) -> str:
    return number(math.fsum(values) / len(values)) if values else "–"  # noqa: RUF001


def failures(found: dict[str, Any]) -> list[str]:
    """What was not played, and why, as lines of a list: the same reason once."""
    lines = [f"- {peer['name']}: {peer['why_not']}." for peer in found["peers"] if peer["why_not"]]
    by_reason: dict[tuple[str, str], list[str]] = {}
    for one in standing.standings(found):
        if one.words:
            reason = policy_name(found, one.peer, one.policy), one.words
            by_reason.setdefault(reason, []).append(one.scenario + one.pace)
    return [without_places(line) for line in lines] + [
        f"- {name} on {', '.join(where)}: {without_places(words)}." for (name, words), where in by_reason.items()
    ]


def without_places(words: str) -> str:
    """What others say in their errors may name folders and addresses of this machine."""
    return " ".join(re.sub(r"(\w+:/)?/[^\s'\"]+/[^\s'\"]*", "...", words).split())


def speed(found: dict[str, Any]) -> str:
    """Rounds per second and what they are to ours and to C's."""
    timed = found["speed"]
    own, c = timed["own"], timed["c"]
    header = ["what", "rounds/s", f"{SIMULATED} is faster by", "share of C", "import, s", "compile, s", "memory, MB"]
    c_rate = c.get("rounds_per_s")

    def row(name: str, told: dict[str, Any]) -> list[str]:
        if "rounds_per_s" not in told:
            return [name, told.get("error") or told.get("why_not", ""), *[""] * (len(header) - 2)]
        rate = told["rounds_per_s"]
        share = f"{rate / c_rate:.2g}" if c_rate else ""
        seconds = [f"{told[part]:.2f}" if part in told else "" for part in ("import_s", "compile_s")]
        peak = f"{told['peak_mb']:,.0f}" if "peak_mb" in told else ""
        return [name, f"{rate:,.0f}", _times(own["rounds_per_s"] / rate), share, *seconds, peak]

    body = [row("C program, the loop alone", c)]
    if "engine_rounds_per_s" in c:
        body.append(row(LOOP, {"rounds_per_s": c["engine_rounds_per_s"]}))
    body.append(row(f"{SIMULATED} (`doral.simulate`)", own))
    body.append(row(f"`{POLICY}` simulated (`doral.simulate`)", timed["full"]))
    if "native" in timed:
        native = timed["native"]
        body.append(row("Vowpal Wabbit RegCB, native pass over answers", native))
        if "with_decisions_per_s" in native:
            both = {"rounds_per_s": native["with_decisions_per_s"]}
            body.append(row("Vowpal Wabbit RegCB, native pass over decisions and answers", both))
    called = [(policy_name(found, one["peer"], one["policy"]), one) for one in timed["peers"]]
    called.append(("`d-linucb`, one call per decision from Python (campaign in memory)", timed["online"]))
    called.sort(key=lambda one: -one[1].get("rounds_per_s", 0.0))
    return markdown(header, [*body, *(row(*one) for one in called)])


def fastest(found: dict[str, Any]) -> dict[str, Any] | None:
    """Of the peers that Python calls."""
    timed = [one for one in found["speed"]["peers"] if "rounds_per_s" in one]
    return max(timed, key=lambda one: one["rounds_per_s"]) if timed else None


def online_words(found: dict[str, Any]) -> str:
    """What a campaign does beside the fastest peer, where both are called round by round."""
    best, online = fastest(found), found["speed"]["online"]
    if best is None or "rounds_per_s" not in online:
        return ""
    ratio = online["rounds_per_s"] / best["rounds_per_s"]
    name = policy_name(found, best["peer"], best["policy"])
    return f"Called so, `d-linucb` decides {_times(ratio)} times as many rounds a second as {name}, the fastest peer. "


def c_words(found: dict[str, Any]) -> str:
    """How far a program goes that does nothing else."""
    best, c = fastest(found), found["speed"]["c"]
    if best is None or "rounds_per_s" not in c:
        return ""
    ratio = _times(c["rounds_per_s"] / best["rounds_per_s"])
    return (
        f" The C program that decides the same is {ratio} times as fast as the fastest peer: about as far as one gets."
    )


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def targets(found: dict[str, Any]) -> str:
    """What was wanted, what was found, and whether that is enough."""
    asked = standing.standings(found)
    every = [one for one in asked if one.lead is not None]
    behind = sum(one.verdict == standing.BEHIND for one in every)
    level = sum(one.verdict == standing.LEVEL for one in every)
    ahead = len(every) - behind - level
    shown = f"{behind} of {len(every)} pairs that were played; {level} not told apart, {ahead} with the peer ahead"
    if len(asked) > len(every):
        shown += f"; {len(asked) - len(every)} not played"
    rows = [
        [f"`{POLICY}` ahead of every peer on every scenario, by an interval", shown, _reached(behind == len(every))]
    ]
    timed = found["speed"]
    if timed is not None:
        own = timed["own"]["rounds_per_s"]
        best = fastest(found)
        if best is not None:
            fastest_peer = "the fastest peer that Python calls"
            rows.append(_speed_target(SIMULATED, PYTHON_TARGET, fastest_peer, own / best["rounds_per_s"]))
            if "engine_rounds_per_s" in timed["c"]:
                ratio = timed["c"]["engine_rounds_per_s"] / best["rounds_per_s"]
                rows.append(
                    _speed_target(LOOP, PYTHON_TARGET, f"{fastest_peer}, whose player is not timed either", ratio)
                )
        if "rounds_per_s" in timed.get("native", {}):
            ratio = own / timed["native"]["rounds_per_s"]
            native = "the native pass of Vowpal Wabbit's RegCB over answers"
            rows.append(_speed_target(SIMULATED, NATIVE_TARGET, native, ratio))
    return markdown(["target", "found", ""], rows, numbers_from=3)


def _speed_target(own: str, target: float, what: str, ratio: float) -> list[str]:
    return [
        f"{own}: at least {target:g} times as fast as {what}",
        f"{ratio:,.1f} times",
        _reached(ratio >= target),
    ]


def _reached(is_reached: bool) -> str:
    return "reached" if is_reached else "**missed**"
