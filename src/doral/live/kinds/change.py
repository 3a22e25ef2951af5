"""Changes to the campaign itself: its arms, its budget, its end, its clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doral import _check
from doral.errors import InvalidValue
from doral.live.events.event import (
    ARM_IS_RETIRED,
    ArmAdded,
    ArmChanged,
    ClockSet,
    Closed,
    EngineJoined,
    Event,
    Extended,
    PauseChanged,
    Place,
    ToppedUp,
    known,
)
from doral.live.kinds.request import Request, granted, note
from doral.live.runtime.clock import Stamp
from doral.live.state.parts import exact, plus
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.text import duration
from doral.problem import MAX_AMOUNT, MAX_HORIZON, MIN_AMOUNT, Arm, n_given_features


class Change(Request[None]):
    """A change that happens once by its key. Where it is there already, only the key is noted."""

    def __init__(self, key: str | None) -> None:
        self.key = key

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        place = Place(0, 0.0, 0.0, 0, key=self.key)
        event = self.event(state, place)
        said = event.request()
        if granted(log, state, self.key, said) is not None:
            return (), None
        if not isinstance(event, Closed):
            state.refuse_if_closed()
        if not self.is_needed(state):
            return note(state, stamp, self.key, said), None
        return (self.event(state, stamp.place(state, self.key)),), None

    def event(self, state: CampaignState, place: Place) -> Event:
        """Return the event that the change is."""
        raise NotImplementedError

    def is_needed(self, state: CampaignState) -> bool:
        """Whether it changes something; a DoralError where it cannot be."""
        raise NotImplementedError

    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> None:
        """There is nothing to tell."""


class AddArm(Change):
    """A new arm."""

    def __init__(self, arm: Arm, key: str | None) -> None:
        super().__init__(key)
        self.arm = arm

    def event(self, state: CampaignState, place: Place) -> Event:
        return ArmAdded(place, self.arm)

    def is_needed(self, state: CampaignState) -> bool:
        arm, n_features = self.arm, n_given_features(state.problem)
        if any(
            (arm.name, arm.features, arm.cost) == (one.name, one.features[:n_features], one.cost)
            for one in state.problem.arms
        ):
            return False
        _check.no_duplicates("name of an arm", (*state.problem.arm_names, arm.name))
        if len(arm.features) != n_features:
            remedy = f"must be {n_features}, as for the other arms"
            raise InvalidValue(f"number of features of arm {arm.name!r}", len(arm.features), remedy)
        return True


class ChangeArm(Change):
    """An arm is paused, resumed or retired."""

    def __init__(self, name: str, status: int, key: str | None) -> None:
        super().__init__(key)
        self.name, self.status = name, status

    def event(self, state: CampaignState, place: Place) -> Event:
        return ArmChanged(place, state.problem.arm_index(self.name), self.status)

    def is_needed(self, state: CampaignState) -> bool:
        arm = state.problem.arm_index(self.name)
        if arm == state.problem.control:
            raise InvalidValue("arm", self.name, "is what those get who are skipped: it can always be had")
        if state.arms.status[arm] == self.status:
            return False
        if state.arms.status[arm] == ARM_IS_RETIRED:
            raise InvalidValue("arm", self.name, "is retired, for good; add it under a new name")
        return True


class TopUp(Change):
    """More budget."""

    def __init__(self, amount: float, key: str | None) -> None:
        super().__init__(key)
        self.amount = amount

    def event(self, state: CampaignState, place: Place) -> Event:
        return ToppedUp(place, self.amount)

    def is_needed(self, state: CampaignState) -> bool:
        if plus(state.ledger.total, exact(self.amount)) > exact(MAX_AMOUNT):
            remedy = f"makes a budget of more than {MAX_AMOUNT:g}: give a smaller one, or use another unit"
            raise InvalidValue("amount", self.amount, remedy)
        return True


def top_up_amount(given: object) -> float:
    """Return how much more there is to spend; within the limits of a budget."""
    return _check.finite_number("amount", given, at_least=MIN_AMOUNT, at_most=MAX_AMOUNT)


class Extend(Change):
    """More arrivals."""

    def __init__(self, rounds: int, key: str | None) -> None:
        super().__init__(key)
        self.rounds = rounds

    def event(self, state: CampaignState, place: Place) -> Event:
        if state.engine.until is not None:
            raise InvalidValue("rounds", self.rounds, "this campaign ends with a date: extend(until=...) moves it")
        return Extended(place, rounds=self.rounds)

    def is_needed(self, state: CampaignState) -> bool:
        if state.engine.horizon + self.rounds > MAX_HORIZON:
            remedy = f"makes a horizon of more than {MAX_HORIZON:,}: give fewer"
            raise InvalidValue("rounds", self.rounds, remedy)
        return True


class ExtendUntil(Change):
    """A later end, in seconds since 1970."""

    def __init__(self, until: float, key: str | None) -> None:
        super().__init__(key)
        self.until = until

    def event(self, state: CampaignState, place: Place) -> Event:
        return Extended(place, until=self.until - state.definition.epoch)

    def is_needed(self, state: CampaignState) -> bool:
        end, clock = state.engine.until, self.until - state.definition.epoch
        if end is None:
            raise InvalidValue("until", self.until, "this campaign ends with a number of arrivals: extend it by rounds")
        if clock < end:
            remedy = "is before the campaign's end: an end is only moved to a later date"
            raise InvalidValue("until", self.until, remedy)
        return clock > end


class Pause(Change):
    """All arrivals are skipped until the campaign is resumed, or no longer so."""

    def __init__(self, is_paused: bool, key: str | None) -> None:
        super().__init__(key)
        self.is_paused = is_paused

    def event(self, state: CampaignState, place: Place) -> Event:
        return PauseChanged(place, self.is_paused)

    def is_needed(self, state: CampaignState) -> bool:
        return state.arms.is_paused != self.is_paused


class Close(Change):
    """No more decisions."""

    def event(self, state: CampaignState, place: Place) -> Event:
        return Closed(place)

    def is_needed(self, state: CampaignState) -> bool:
        return not state.closed


class RepairClock(Request[None]):
    """The campaign's clock was carried away: it shows what this host's does, or what the caller says."""

    def __init__(self, to: object, key: str | None) -> None:
        self.to, self.key = to, key

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        definition = state.definition
        said = target = stamp.said(state, self.to, field="to")
        if granted(log, state, self.key, [ClockSet.KIND, said]) is not None:
            return (), None
        now = stamp.wall - definition.epoch if definition.is_in_seconds else float(state.round + 1)
        if target is None:
            target = max(0.0, now)
        if target >= state.clock:
            raise InvalidValue("to", self.to, "the campaign's clock is not ahead of that: there is nothing to repair")
        behind = now - target
        if behind > (stamp.tolerance_s if definition.is_in_seconds else 0.0):
            what = (
                f"{duration(behind)} behind this host's clock"
                if definition.is_in_seconds
                else "before the last arrival"
            )
            raise InvalidValue("to", self.to, f"is {what}: give nothing, and it is set to what it must show now")
        place = Place(state.sequence + 1, target, stamp.wall, stamp.writer, said, self.key)
        return (ClockSet(place),), None

    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> None:
        """There is nothing to tell."""


# --- applying ---------------------------------------------------------------------------------------------------------


def apply_change(state: CampaignState, event: Event) -> Event:
    """Make the change."""
    state.advance(event)
    if isinstance(event, ToppedUp | Extended):
        state.bend_plan()
    if isinstance(event, ArmAdded):
        state.add_arm(event.arm)
    elif isinstance(event, ArmChanged):
        state.arms.set_status(event.arm, event.status)
    elif isinstance(event, ToppedUp):
        state.ledger.top_up(exact(event.amount))
        state.engine.top_up(event.amount)
    elif isinstance(event, Extended):
        if event.until is not None:
            state.engine.extend_until(event.until)
        else:
            state.engine.extend(known(event.rounds))
    elif isinstance(event, PauseChanged):
        state.arms.pause(event.is_paused)
    elif isinstance(event, Closed):
        state.closed = True
    elif isinstance(event, EngineJoined):
        state.engines[event.name] = event.sequence
    elif isinstance(event, ClockSet):  # what seems to have been decided later was decided now at the latest
        state.names.repairs.append((event.sequence, event.clock))
        state.swept = state.engine.played
        state.engine.set_clock(event.clock)
    return event
