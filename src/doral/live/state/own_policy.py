"""A policy of the user's own, live: it chooses arms; budget, ledger and log are ours.

Its object lives in the process. Opening the campaign makes a new one, which is asked about all arrivals of the log and
told all answers again: with the same code and seed it then knows what it knew. No snapshot holds it.
"""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from doral import _check
from doral.engine.decide import SKIPPED_OVER
from doral.errors import InvalidValue
from doral.live.errors import PolicyFailed
from doral.live.events.event import OWN_CHOICE, OWN_SKIP, Answered, Choice, Decided
from doral.live.events.person import features_of
from doral.live.state.parts import bits_of
from doral.prediction.external import External
from doral.prediction.python_policy import Answer, Arrival, PolicyMaker, PythonPolicy
from doral.problem import Problem

if TYPE_CHECKING:
    from doral.live.state.state import CampaignState

logger = logging.getLogger("doral.live")

OWN = "own"  # the name of such a policy where campaigns are created


class OwnPolicy:
    """One policy object and what it needs of the past."""

    def __init__(self, maker: PolicyMaker, state: CampaignState) -> None:
        self.name = state.definition.own or ""
        self._rounds: dict[int, int] = {}  # of decisions that are not answered yet
        self._is_warned = False
        self._policy = make_own_policy(self.name, maker, state.definition.problem, state.definition.seed)

    def choose(self, state: CampaignState, event: Decided) -> Choice:
        """Ask the policy for an arm, and return the whole choice; PolicyFailed where it cannot be had."""
        round_, arrival = state.round + 1, event.arrival
        until = state.engine.until
        if event.own >= until if until is not None else round_ > state.engine.horizon:
            return Choice(None, None, 0.0, round_, SKIPPED_OVER, None, None, None)
        costs, available = state.arms.exact_costs(arrival.context), bits_of(arrival.available)
        arms = tuple(
            arm
            for arm, status in enumerate(state.arms.status)
            if status == 0
            and arm != state.arms.control
            and (available is None or (arm < len(available) and available[arm]))
            and (costs[arm] <= state.ledger.left or state.ledger.may_overdraw)
        )
        features = features_of(arrival.person) or ()
        asked = Arrival(
            round_,
            arrival.context,
            arms,
            float(state.ledger.left),
            max(1, state.engine.horizon - state.round),
            event.own,
            math.inf if until is None else until,
            dict(zip(state.names.person, features, strict=True)) if features else {},
        )
        try:
            said = self._policy.decide(asked)
        except Exception as error:
            raise self._failed(f"raised an error in round {round_}", error) from error
        if isinstance(said, str) and said in state.problem.arm_names:
            said = state.problem.arm_names.index(said)
        if said is None:
            if state.arms.control is None:
                return Choice(None, None, 0.0, round_, OWN_SKIP, None, None, None)
            said = state.arms.control
        elif isinstance(said, str | bool) or said not in arms:
            names = ", ".join(f"{state.problem.arm_names[arm]!r} ({arm})" for arm in arms) or "no arm"
            raise self._failed(f"chose {said!r} in round {round_}: available were {names}, and None skips", None)
        arm = int(said)
        cost, reason = state.arms.costs(arrival.context)[arm], OWN_SKIP if arm == state.arms.control else OWN_CHOICE
        return Choice(state.engine.played, arm, cost, round_, reason, None, None, None)

    def note(self, event: Decided, choice: Choice) -> None:
        """Take in what the log says was chosen."""
        if event.choice.arm is not None:
            self._rounds[event.sequence] = event.choice.round
        if event.choice.arm != choice.arm and not self._is_warned:
            self._is_warned = True
            logger.warning(
                "policy %s would have chosen otherwise in event %d than the log says: its code or its random numbers "
                "have changed; the log stays as it is",
                self.name,
                event.sequence,
            )

    def hear(self, state: CampaignState, event: Answered) -> None:
        """Tell the policy of an answer."""
        about, settlement = event.about, event.settlement
        decided = self._rounds.pop(about.decision, 0)
        answer = Answer(
            state.round, decided, about.context, about.arm, event.reward, settlement.cost, event.own,
            event.own - (event.delay or 0.0),
        )  # fmt: skip
        try:
            self._policy.observe(answer)
        except Exception as error:
            raise self._failed(f"could not observe the answer to event {about.decision}", error) from error

    def _failed(self, what: str, error: Exception | None) -> PolicyFailed:
        return _failed(self.name, what, error)


def make_own_policy(name: str, maker: PolicyMaker, problem: Problem, seed: int) -> PythonPolicy:
    """Return a new policy object; PolicyFailed where it cannot be made, or lacks a method."""
    try:
        policy = maker(problem, seed)
    except Exception as error:
        raise _failed(name, "could not be made", error) from error
    for method in ("decide", "observe"):
        if not callable(getattr(policy, method, None)):
            raise _failed(name, f"has no method {method}, which every policy needs", None)
    return policy


def _failed(name: str, what: str, error: Exception | None) -> PolicyFailed:
    why = "" if error is None else f": {type(error).__name__}: {error}"
    return PolicyFailed(f"policy {name} {what}{why}; nothing was stored: mend it, and open the store again")


# --- named in the configuration of a store ----------------------------------------------------------------------------

Code = str | External | PolicyMaker


def load_code(code: object) -> dict[str, External | PolicyMaker]:
    """Return models and policies by campaign."""
    if code is not None and not isinstance(code, Mapping):
        raise InvalidValue("code", code, "must be a mapping from campaigns to package.module:attribute")
    return {_check.name("name of a campaign in code", name): _loaded(name, one) for name, one in (code or {}).items()}


def _loaded(name: str, code: object) -> External | PolicyMaker:
    """Return the model or the policy that a campaign's code names, as `package.module:attribute`."""
    if isinstance(code, str):
        module, _, attribute = code.partition(":")
        if not module or not attribute:
            raise InvalidValue("code", code, "must be package.module:attribute")
        try:
            found: Any = importlib.import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
        except Exception as error:
            remedy = f"cannot be imported for campaign {name!r} ({type(error).__name__}: {error}): is it on sys.path?"
            raise InvalidValue("code", code, remedy) from error
        code = found
    if isinstance(code, External) or callable(code):
        return code
    raise InvalidValue("code", code, "must lead to a doral.external(...) or to a class or function (problem, seed)")


def label_of(code: object) -> str:
    """Return what a policy is called in the log: its path, or the name of the class."""
    return code if isinstance(code, str) else str(getattr(code, "__name__", type(code).__name__))


def read_code(words: str) -> Mapping[str, str]:
    """Return code by campaign, from words such as `kits=clinic.models:forest`.

    >>> read_code("kits=clinic.models:forest calls=clinic.rules:Thrifty")
    {'kits': 'clinic.models:forest', 'calls': 'clinic.rules:Thrifty'}
    """
    found = {}
    for word in words.split():
        name, _, path = word.partition("=")
        if not name or not path:
            raise InvalidValue("code", word, "must be campaign=package.module:attribute")
        found[name] = path
    return found
