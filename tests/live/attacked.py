"""A small campaign in which everything has happened, and all that can be asked of it: to be damaged by tests."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.events import row
from doral.live.events.event import Leased, LeaseEnded, Place
from doral.live.kinds.request import Request
from doral.live.runtime.clock import Stamp
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.store import Store
from tests.live.checks import expire_as_before

NAME = "attacked"
PROBLEM = doral.Problem(
    arms=[doral.Arm(name, features=[i, 1.0], cost=cost) for i, (name, cost) in enumerate({"a": 0.1, "b": 0.3}.items())],
    contexts={"x": 0.5, "y": 0.5},
    budget=9.0,
    horizon=80,
    deadline=15,
)
ALL_KINDS = set(range(row.CREATED, row.LEASE_ENDED + 1))


def live_through_everything(store: Store, *, with_snapshot: bool, is_closed: bool = False) -> Campaign:
    """Every kind of event, keys in every place, and decisions in every state at the end."""
    campaign = store.create(NAME, PROBLEM, policy=doral.policy("doral", min_answers=1), seed=5, clock="rounds")
    first = campaign.decide_many([{"context": "xy"[i % 2], "key": f"visit-{i}"} for i in range(6)])
    played = [one for one in first if one.arm is not None]
    campaign.feedback(played[0].id, 1.0, key="answer-0", actual_cost=0.05)
    campaign.feedback(played[0].id, 1.0, key="answer-again")  # a note
    campaign.correct(played[0].id, 0.5, key="correction")
    campaign.cancel(played[1].id, key="cancelled")
    campaign.add_arm(doral.Arm("c", features=[2.0, 0.5], cost=0.2), key="arm")
    campaign.pause_arm("c")
    campaign.resume_arm("c")
    campaign.top_up(1.5, key="invoice")
    campaign.extend(20, key="longer")
    campaign.record("x", "a", 2.0, reward=0.75, answered_at=5.0, cost=0.2, probability=0.5, spend=True, key="recorded")
    campaign.record("y", "b", 3.0)
    expire_as_before(campaign, 17.5, release=True)
    campaign.feedback(played[2].id, 0.25, actual_cost=0.1)
    _as_another_engine(lambda: campaign.decide("x", ["a", "c"], key="offered", at=9.0))
    campaign.decide("y", at=100.0)
    campaign.repair_clock(to=20.0)
    campaign.retire_arm("b")
    campaign.decide("x", [])
    late = campaign.decide("x", ["a"])
    more = campaign.decide_many(["x", "y"] * 4)
    for one in more[:4]:
        if one.arm is not None:
            campaign.feedback(one.id, 0.5, at=22.0)
    campaign.session.write(_OldLeases())
    campaign.expire(36.5)
    campaign.feedback(late.id, 0.75)
    campaign.forget("visit-3")
    campaign.decide_many(["x", "y"] * 2)
    if is_closed:
        campaign.close()
    if with_snapshot:
        campaign.save_snapshot()
    return campaign


class _OldLeases(Request[None]):
    """As a process of before leases were removed has written it."""

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> Any:
        first, left = state.sequence + 1, str(state.ledger.left)
        began, ended = (Place(sequence, state.clock, stamp.wall, 12_345) for sequence in (first, first + 1))
        return (Leased(began, left), LeaseEnded(ended, first, left, "recovered")), None

    def view(self, *_: Any) -> None:
        """There is nothing to tell."""


def _as_another_engine(call: Callable[[], object]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("runtime.session", "state.state"):
            patch.setattr(f"doral.live.{module}.engine_name", lambda: '{"doral": "another"}')
        call()


class Questions:
    """What is asked of the campaign; learned once from a whole one, so that the damaged one is asked the same."""

    def __init__(self, campaign: Campaign) -> None:
        self.by_state: dict[str, list[str]] = {}
        for one in campaign.decisions():
            self.by_state.setdefault(one.state, []).append(one.id)
        self.ids = [ids[k] for ids in self.by_state.values() for k in (0, -1)]
        self.pending, self.returned = self.by_state["pending"], self.by_state["returned"]

    def ask(self, store: Store, folder: Path, *, does_export: bool = True) -> Iterator[tuple[str, Callable[[], Any]]]:
        def of(call: Callable[[Campaign], Any]) -> Callable[[], Any]:
            return lambda: call(store.campaign(NAME))

        def export(campaign: Campaign) -> bytes:
            campaign.export(folder / "out.csv")
            return (folder / "out.csv").read_bytes()

        yield "list", store.list
        yield "report", of(lambda campaign: campaign.report().to_dict())
        yield "ledger", of(Campaign.ledger)
        yield "decisions", of(lambda campaign: list(campaign.decisions()))
        yield "pending", of(lambda campaign: list(campaign.decisions("pending")))
        if does_export:
            yield "export", of(export)
        for one in self.ids:
            yield f"decision {one}", partial(lambda one: store.campaign(NAME).decision(one), one)
        yield "verify", of(Campaign.verify)
        yield "same decide", of(lambda campaign: campaign.decide("x", key="visit-0"))
        yield "same answer", of(lambda campaign: campaign.feedback(self.returned[-1], 0.5))
        yield "same change", of(lambda campaign: campaign.top_up(1.5, key="invoice"))
        yield "decide", of(lambda campaign: campaign.decide("x", ["a", "c"], key="new"))
        yield "feedback", of(lambda campaign: campaign.feedback(self.pending[-1], 0.5, key="new"))
        yield "cancel", of(lambda campaign: campaign.cancel(self.pending[0]))
        yield "expire", of(lambda campaign: campaign.expire(500.0))
        yield "after", of(Campaign.ledger)


def answers(url: str, questions: Questions, folder: Path, *, is_brief: bool = False) -> dict[str, Any]:
    """What a fresh store says: answers, typed errors, and as `INTERNAL` what must never come out.

    Briefly: without an export, and little is asked of a log that cannot be read.
    """
    found: dict[str, Any] = {}
    try:
        store = doral.open(url, create=False)
    except DoralError as error:
        return {"open": f"error {type(error).__name__}"}
    except BaseException:  # noqa: BLE001  (this is what is looked for)
        return {"open": f"INTERNAL {traceback.format_exc()}"}
    with store:
        calls = questions.ask(store, folder, does_export=not is_brief)
        for name, call in calls:
            if is_brief and is_error(found.get("report")) and name not in ("decisions", "decide", "verify"):
                continue
            try:
                found[name] = call()
            except DoralError as error:
                found[name] = f"error {type(error).__name__}: {error}"
            except BaseException:  # noqa: BLE001
                found[name] = f"INTERNAL {traceback.format_exc()}"
    return found


def is_error(answer: object) -> bool:
    return isinstance(answer, str) and answer.startswith("error ")


def is_internal(answer: object) -> bool:
    return isinstance(answer, str) and answer.startswith("INTERNAL ")


def in_child(work: Callable[[Callable[[str], None]], None], log: Path) -> tuple[int, list[str]]:
    """Run in a forked process, which may crash; its exit code, and what it said until then."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with log.open("a", buffering=1) as said:
                work(lambda text: (said.write(text.replace("\n", "\\n") + "\n"), None)[1])
            code = 0
        except BaseException:  # noqa: BLE001
            with log.open("a") as said:
                said.write("BROKEN TEST " + traceback.format_exc().replace("\n", "\\n") + "\n")
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, log.read_text().splitlines()
