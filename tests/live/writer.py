"""A process to be killed: it writes to a campaign, and notes every intention before and every answer after.

Run as a program it loads the compiled code once, then forks a writer for each line `forever url campaign seed notes`
that it reads (or one that backs up), or several for `shared url campaign count notes` or `compete ...`:
starting Python anew for hundreds of kills takes hours.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import doral
from doral.engine.engine import PROGRAM
from doral.live.campaign import Campaign

PROBLEM = doral.Problem(
    arms=[doral.Arm(f"a{i}", features=[0.1 * i, 1.0], cost=cost) for i, cost in enumerate((0.1, 0.2, 0.7))],
    contexts={"old": 0.3, "young": 0.7},
    budget=400.0,
    horizon=5000,
    deadline=60,
)
POLICY = doral.policy("doral", min_answers=3, race_budget_share=0.1)
CONTEXTS = ("old", "young")
SNAPSHOT_EVERY = 40  # often, so that a kill hits the writing of one, too

Work = Callable[..., None]


class Writer:
    def __init__(self, campaign: Campaign, seed: int, notes: int) -> None:
        self.campaign, self.rng, self.notes, self.name = campaign, random.Random(seed), notes, f"w{seed}"
        self.step = 0
        self.open: list[str] = []
        self.answered: list[str] = []

    def note(self, **facts: Any) -> None:
        os.write(self.notes, (json.dumps(facts) + "\n").encode())

    def do(self, name: str, **arguments: Any) -> Any:
        """Intention, deed, answer."""
        self.note(step=self.step, intent=name, **arguments)
        result = getattr(self.campaign, name)(**arguments)
        shown = [result] if not isinstance(result, list) else result
        self.note(
            step=self.step,
            done=[[one.id, one.arm, one.reward, one.state] for one in shown if isinstance(one, doral.Decision)],
        )
        return result

    def work(self) -> None:
        self.step += 1
        key = f"{self.name}-{self.step}"
        choice = self.rng.random()
        if choice < 0.5 or not self.open:
            self.took(self.do("decide", context=self.rng.choice(CONTEXTS), key=key))
        elif choice < 0.6:
            arrivals = [{"context": self.rng.choice(CONTEXTS), "key": f"{key}-{i}"} for i in range(4)]
            for decision in self.do("decide_many", arrivals=arrivals):
                self.took(decision)
        elif choice < 0.85:
            decision_id = self.open.pop(self.rng.randrange(len(self.open)))
            self.do("feedback", decision_id=decision_id, reward=round(self.rng.random(), 3), key=key)
            self.answered.append(decision_id)
        elif choice < 0.92 and self.answered:
            self.do("correct", decision_id=self.rng.choice(self.answered), reward=round(self.rng.random(), 3), key=key)
        elif choice < 0.97:
            self.do("cancel", decision_id=self.open.pop())
        else:
            self.do("expire")

    def took(self, decision: doral.Decision) -> None:
        if decision.arm is not None:
            self.open.append(decision.id)


def write_forever(url: str, campaign: str, seed: int, notes: str) -> None:
    descriptor = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    opened = doral.open(url).campaign(campaign)
    opened._session.reader.snapshot_every = SNAPSHOT_EVERY
    writer = Writer(opened, seed, descriptor)
    while True:
        writer.work()


def share_keys(url: str, campaign: str, seed: int, notes: str, *, steps: int = 40, keys: int = 60) -> None:
    """Decide under keys that other processes use, too, and answer what comes back."""
    descriptor = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    rng = random.Random(seed)
    opened = doral.open(url).campaign(campaign)
    opened._session.reader.snapshot_every = SNAPSHOT_EVERY
    for _ in range(steps):
        number = rng.randrange(keys)
        if rng.random() < 0.2:
            arrivals = [{"context": CONTEXTS[one % 2], "key": f"k{one}"} for one in range(number, number + 3)]
            made = opened.decide_many(arrivals)
            named = [(arrival["key"], one) for arrival, one in zip(arrivals, made, strict=True)]
        else:
            named = [(f"k{number}", opened.decide(CONTEXTS[number % 2], key=f"k{number}"))]
        for key, one in named:
            os.write(descriptor, (json.dumps([key, one.id, one.arm]) + "\n").encode())
        first = named[0][1]
        if first.arm is not None and rng.random() < 0.7:
            opened.feedback(first.id, 0.25, key=f"{named[0][0]}-answer")


COMPETING = 4


def compete(url: str, campaign: str, seed: int, notes: str, *, n: int = 60) -> None:
    """Decide so often, as fast as the others let one, and go on until all of them have: none is ever alone for long."""
    opened = doral.open(url).campaign(campaign)
    opened.report()
    note, made, until = Path(notes), 0, time.monotonic() + 60.0
    while made < n or len(list(note.parent.glob("enough-*"))) < COMPETING:
        opened.decide(CONTEXTS[seed % 2])
        made += 1
        if made == n:
            note.with_name(f"enough-{note.name}").touch()
        assert time.monotonic() < until, "the others do not come"
    note.write_text(str(made))


def back_up(url: str, campaign: str, seed: int, notes: str) -> None:
    """One backup after another."""
    store = doral.open(url)
    for number in range(seed, 1_000_000):
        store.backup(f"{notes}-{number}.db", names=[campaign])


def tell(url: str, campaign: str, seed: int, notes: str) -> None:
    """Write down what this engine reads in the log, and go on with it."""
    opened = doral.open(url).campaign(campaign)
    ledger = {name: str(amount) for name, amount in opened.ledger().to_json().items()}
    said = {"decisions": [asdict(one) for one in opened.decisions()], "ledger": ledger}
    for i in range(40):
        one = opened.decide(CONTEXTS[i % 2], key=f"told-{seed}-{i}")
        if one.arm is not None and i % 3:
            opened.feedback(one.id, (i % 5) / 5)
    opened.save_snapshot()
    Path(notes).write_text(json.dumps(said))


def upgrade(url: str, campaign: str, seed: int, notes: str) -> None:
    """Bring the tables up to date, and wait to be killed."""
    del campaign, seed, notes
    doral.open(url).list()
    time.sleep(1_000)


def race_for_books(url: str, campaign: str, seed: int, notes: str) -> None:
    """Be the first to make a key, to raise alarms, and to be given what has to be told; what one succeeded in."""
    from doral.live.storage.service_tables import AlarmRow, KeyRow

    with doral.open(url) as store:
        books = store.books
        key = KeyRow(
            id=f"{seed:012x}", name="first", roles=(), campaigns=None, digest=b"x", created_at=1.0, expires_at=None
        )
        won: dict[str, Any] = {"key": books.add_first_key(key)}
        alarm = AlarmRow(campaign=campaign, rule="", subject="", since=1.0, words="x")
        alarms = [replace(alarm, rule=f"rule-{i}") for i in range(9)]
        won["raised"] = [one.rule for one in alarms if books.raise_alarm(one)]
        won["claimed"] = []
        for _ in range(9):
            won["claimed"] += [one.rule for one in books.claim_deliveries(100.0, lease_s=50.0, limit=2)]
    Path(notes).write_text(json.dumps(won))


ALONE: dict[str, Work] = {
    "forever": write_forever,
    "back-up": back_up,
    "upgrade": upgrade,
}
TOGETHER: dict[str, Work] = {"shared": share_keys, "compete": compete, "tell": tell, "books": race_for_books}


def fork(work: Callable[..., None], *arguments: Any) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(*arguments)
            code = 0
        except Exception:  # noqa: BLE001  (shown by the parent's output; the exit code tells the test)
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def warm_up() -> None:
    """Load the compiled code, before the first fork: no campaign of these tests begins interpreted."""
    PROGRAM.load()
    with doral.open("memory://") as store:
        campaign = store.create("warm", PROBLEM, policy=POLICY, seed=1, clock="rounds")
        answered = campaign.feedback(campaign.decide("old").id, 1.0)
        campaign.correct(answered.id, 0.5)
        campaign.cancel(campaign.decide("old").id)
        campaign.expire(1000)


def main() -> None:
    warm_up()
    say("ready")
    for line in sys.stdin:
        work, url, name, seed, notes = line.split()
        if work in ALONE:
            children = [fork(ALONE[work], url, name, int(seed), notes)]
            say(children[0])
        else:  # several at once
            alike = TOGETHER[work]
            children = [fork(alike, url, name, one, f"{notes}-{one}") for one in range(int(seed))]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        say(f"ended {' '.join(map(str, codes))}")


if __name__ == "__main__":
    main()
