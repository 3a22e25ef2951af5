"""A dry run: what would be decided for an arrival now, and why. Nothing is stored, reserved or learned."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from doral.live.events.event import ARM_IS_ACTIVE, Decided
from doral.live.kinds.decide import Arrival, Decide
from doral.live.runtime.clock import Stamp
from doral.live.runtime.replay import apply
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision, make_decision
from doral.pages.notebook import card

_MOST_OPTIONS = 50  # each is tried on a copy of the state


@dataclass(frozen=True, kw_only=True)
class Option:
    """One arm, if it were the only one.

    Attributes:
        arm: Its name.
        cost: Of a use in this context.
        value: What a use is thought to be worth.
        return_here: Return per unit of budget: the value by the cost; None where it costs nothing.
    """

    arm: str
    cost: float
    value: float
    return_here: float | None


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What the next decision would be, were this arrival the next one.

    Attributes:
        context: The name of the context.
        arm: The arm that would be played; None: skipped.
        cost: What would be reserved.
        value: What a use of the arm is thought to be worth; of a skip, of the arm that was thought of.
        price: What the budget currently buys, per unit.
        return_here: Return per unit of budget here, to be compared with `price`; None where it is not known.
        probability: Of this very choice.
        reason_code: As of a `Decision`.
        reason: The same in a sentence.
        options: All arms that could be had, the best return first; empty where they are more than 50.
    """

    context: str
    arm: str | None
    cost: float
    value: float
    price: float
    return_here: float | None
    probability: float | None
    reason_code: str
    reason: str
    options: tuple[Option, ...]

    def __repr__(self) -> str:
        return f"<Preview for {self.context}: {self.arm or 'skipped'}; {self.reason}>"

    def _repr_html_(self) -> str:
        rows = [("Arm", self.arm or "skipped"), ("Why", self.reason), ("Price", f"{self.price:.3g}")]
        rows += [(one.arm, f"worth {one.value:.3g} at cost {one.cost:g}") for one in self.options[:10]]
        return card(f"Preview for {self.context}", rows)


def preview(log: Log, state: CampaignState, asked: Arrival, stamp: Stamp) -> Preview:
    """Decide on a copy of the state; its coin falls as that of the next decision will."""
    event = _tried(log, state, asked, stamp)
    would: Decision = make_decision(state.names, event, (), state.expiries)
    return Preview(
        context=would.context,
        arm=would.arm,
        cost=would.cost,
        value=would.value,
        price=would.price,
        return_here=would.return_here,
        probability=would.probability,
        reason_code=would.reason_code,
        reason=would.reason,
        options=_options(log, state, asked, stamp, event),
    )


def _tried(log: Log, state: CampaignState, asked: Arrival, stamp: Stamp, *, is_resumed: bool = False) -> Decided:
    twin = copied(state)
    if is_resumed:
        twin.arms.pause(False)
    events, _ = Decide(asked).validate(twin, log, stamp)
    made = apply(twin, events)[0]
    assert isinstance(made, Decided)
    return made


def _options(log: Log, state: CampaignState, asked: Arrival, stamp: Stamp, event: Decided) -> tuple[Option, ...]:
    names: Sequence[str] = state.problem.arm_names if asked.available is None else asked.available
    arms = [state.problem.arm_index(name) for name in dict.fromkeys(names)]
    arms = [arm for arm in arms if state.arms.status[arm] == ARM_IS_ACTIVE and arm != state.arms.control]
    if len(arms) > _MOST_OPTIONS:
        return ()
    found = []
    for arm in arms:
        name, cost = state.problem.arm_names[arm], state.arms.costs(event.arrival.context)[arm]
        tried = _tried(log, state, asked._replace(available=[name]), stamp, is_resumed=True)
        value = tried.choice.value or 0.0
        found.append(Option(arm=name, cost=cost, value=value, return_here=value / cost if cost else None))
    return tuple(sorted(found, key=lambda one: -(one.value if one.return_here is None else one.return_here)))


def copied(state: CampaignState) -> CampaignState:
    """Another state that knows the same."""
    stored = json.loads(json.dumps(state.to_json()))
    twin = CampaignState.from_json(state.definition, state.names.tag, stored)
    arrays: dict[str, Any] = {}
    for name, array in state.engine.arrays():
        arrays[name] = array.copy()
        arrays[name].flags.writeable = array.flags.writeable  # part of the type for which kernels are compiled
    twin.engine.restore(arrays)
    twin.own = copy.deepcopy(state.own)
    return twin
