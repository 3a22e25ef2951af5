"""A campaign for which a model predicts: in the process that holds the model.

The model is no part of the campaign. What it predicted for somebody is stored with the decision, among the features, so
that the log can be read again without it, and whoever has no model can still take answers and look. Models are fitted
on the decisions of the log, after the decision with which one is due.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from doral.engine.setup import PREDICTION_PREFIX as PREFIX
from doral.engine.setup import longest
from doral.errors import DoralError, InvalidValue
from doral.live.campaign import Campaign
from doral.live.events.event import DECIDE_SCOPE, STATE_NAMES, Deciding
from doral.live.events.person import features_of
from doral.live.kinds.decide import Decide, arrival_of, context_for
from doral.live.kinds.request import as_batch, scoped_key, used_keys
from doral.live.runtime.group_commit import each, store_each
from doral.live.runtime.session import Session
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision
from doral.live.views.preview import Preview
from doral.person import FeaturesLike, Levels, checked_features, traits_of
from doral.prediction.external import External
from doral.prediction.models import Known
from doral.problem import Problem

_RETURNED = STATE_NAMES.index("returned")


class ExternalCampaign(Campaign):
    """Made by `store.create(..., policy=doral.external(model))`, opened by `store.campaign(name, model=...)`."""

    def __init__(self, session: Session, external: External) -> None:
        super().__init__(session)
        self._external = external
        self._own = _own_problem(self.problem, external)
        self._levels = Levels(self._own.person)
        seed = session.read(lambda _, state: state.definition.seed)
        self._models = external.models(self._own, seed=(seed, 0), levels=self._levels)
        self._fit_at = external.schedule.first
        self._is_new = True
        self._lock = Lock()

    def decide(
        self,
        context: str | None = None,
        available: Iterable[str] | None = None,
        key: str | None = None,
        at: object = None,
        *,
        features: FeaturesLike | None = None,
        weight: float | None = None,
        deadline: float | None = None,
    ) -> Decision:
        """As `Campaign.decide`; `features` are those of the problem, and the model says the rest.

        Args:
            context: As for `Campaign.decide`.
            available: As for `Campaign.decide`.
            key: As for `Campaign.decide`.
            at: As for `Campaign.decide`.
            features: What is known of this one, for the model.
            weight: As for `Campaign.decide`.
            deadline: As for `Campaign.decide`, in seconds (or rounds).
        """
        told = self._foretold([{"context": context, "key": key, "features": features}])[0]
        made = super().decide(context, available, key, at, features=told, weight=weight, deadline=deadline)
        self.refit_if_due()
        return made

    def preview(
        self,
        context: str | None = None,
        available: Iterable[str] | None = None,
        at: object = None,
        *,
        features: FeaturesLike | None = None,
        weight: float | None = None,
        deadline: float | None = None,
    ) -> Preview:
        """As `Campaign.preview`, with what the model says now.

        Args:
            context: As for `Campaign.decide`.
            available: As for `Campaign.decide`.
            at: As for `Campaign.decide`.
            features: What is known of this one, for the model.
            weight: As for `Campaign.decide`.
            deadline: As for `Campaign.decide`, in seconds (or rounds).
        """
        told = self._foretold([{"context": context, "features": features}])[0]
        return super().preview(context, available, at, features=told, weight=weight, deadline=deadline)

    def decide_many(self, arrivals: Iterable[str | Mapping[str, Any]]) -> list[Decision]:
        """As `Campaign.decide_many`; one model predicts for all of them.

        Args:
            arrivals: As for `Campaign.decide_many`.
        """
        asked = [_as_mapping(one) for one in as_batch("arrivals", arrivals)]
        told = self._foretold(asked)
        made = super().decide_many([{**one, "features": said} for one, said in zip(asked, told, strict=True)])
        self.refit_if_due()
        return made

    def decide_each(self, arrivals: Iterable[str | Mapping[str, Any]]) -> list[Decision | DoralError]:
        """As `Campaign.decide_each`; one model predicts for all of them.

        Args:
            arrivals: As for `Campaign.decide_many`.
        """

        def told(one: object) -> dict[str, Any]:
            asked = _as_mapping(one)
            return {**asked, "features": self._foretold([asked])[0]}

        asked = each(lambda one: Decide(arrival_of(told(one))), as_batch("arrivals", arrivals))
        made = store_each(self._session, asked)
        self.refit_if_due()
        return made

    def refit(self) -> int:
        """Fit the models that are due; returns how many. It happens by itself with decisions."""
        with self._lock:
            before = self._models.n_fits
            n_known = self._n_known()
            if n_known >= self._fit_at:
                self._models.refit(self._known())
                self._fit_at = self._external.schedule.after(n_known)
            self._is_new = False
            return self._models.n_fits - before

    def prepared(self, arrivals: Iterable[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """As `Campaign.prepared`, with features that hold what the model predicts.

        Args:
            arrivals: As for `Campaign.prepared`.
        """
        asked = [_as_mapping(one) for one in as_batch("arrivals", arrivals)]
        told = self._foretold(asked)
        return [{**one, "features": said} for one, said in zip(asked, told, strict=True)]

    def refit_if_due(self) -> None:
        """Fit the models anew, if enough answers have come."""
        if self._n_known() >= self._fit_at:
            self.refit()

    def _n_known(self) -> int:
        """By what the schedule goes: answers; where nobody says no, decisions."""

        def count(_: Log, state: CampaignState) -> int:
            counts = state.counts
            return sum(counts.arm_plays) if state.problem.feedback == "silent" else counts.states[_RETURNED]

        return self._session.read(count)

    # --- what is predicted ------------------------------------------------------------------------------------------

    def _foretold(self, asked: Sequence[Mapping[str, Any]]) -> list[dict[str, float | str | None]]:
        """Features with predictions; those of a key that was used before are what they were then."""
        if self._is_new:  # there may be a log to learn from
            self.refit()
        own = self._own
        contexts = np.array([context_for(own, one.get("context")) for one in asked], dtype=np.int64)
        given = [one.get("features") for one in asked]
        values = [checked_features(own.person, own.missing, {} if one is None else one) for one in given]
        with self._lock:
            traits = np.array([traits_of(own.person, self._levels, one) for one in values], dtype=np.float64)
            predicted = self._models.predict(contexts, traits.reshape(len(asked), own.n_traits))
        before = self._predicted_before([one.get("key") for one in asked])
        names, arms = own.person_names, [PREFIX + name for name in own.arm_names]
        found: list[dict[str, float | str | None]] = []
        for one, row, said in zip(values, predicted.tolist(), before, strict=True):
            fresh = {arm: None if math.isnan(value) else value for arm, value in zip(arms, row, strict=True)}
            found.append({**dict(zip(names, one, strict=True)), **(fresh if said is None else said)})
        return found

    def _predicted_before(self, keys: Sequence[str | None]) -> list[dict[str, float | str | None] | None]:
        """By key; None for one that is new, or whose features were erased."""
        scoped = [scoped_key(DECIDE_SCOPE, key) for key in keys]
        if not any(scoped):
            return [None] * len(keys)

        def look(log: Log, state: CampaignState) -> dict[str, dict[str, float | str | None]]:
            found = {}
            for key, event in used_keys(log, state, scoped).items():
                values = features_of(event.arrival.person) if isinstance(event, Deciding) else None
                if values is not None:
                    told = dict(zip(state.problem.person_names, values, strict=True))
                    found[key] = {name: value for name, value in told.items() if name.startswith(PREFIX)}
            return found

        stored = self._session.read(look)
        return [None if key is None else stored.get(key) for key in scoped]

    # --- what is learned --------------------------------------------------------------------------------------------

    def _known(self) -> Known:
        """Answers that came in time; where nobody says no, decisions that are older than the longest deadline."""
        own, limit = self._own, longest(self._own.deadlines)
        is_silent, now = own.feedback == "silent", self._session.read(lambda _, state: state.names.epoch + state.clock)
        contexts, arms = ({name: i for i, name in enumerate(names)} for names in (own.context_names, own.arm_names))
        rows: list[tuple[int, list[float], int, float]] = []
        for one in self.decisions():
            arm = own.control if one.arm is None else arms.get(one.arm)
            if arm is None or one.features is None or one.state in ("skipped", "cancelled"):
                continue
            is_in_time = one.delay is not None and one.delay <= limit
            if (now - one.decided_at > limit) if is_silent else is_in_time:
                values = [one.features[name] for name in own.person_names]
                reward = one.reward if is_in_time and one.reward is not None else 0.0
                rows.append((contexts[one.context], traits_of(own.person, self._levels, values), arm, reward))
        return Known(
            np.array([row[0] for row in rows], dtype=np.int64),
            np.array([row[1] for row in rows], dtype=np.float64).reshape(len(rows), own.n_traits),
            np.array([row[2] for row in rows], dtype=np.int64),
            np.array([row[3] for row in rows], dtype=np.float64),
        )


def _as_mapping(arrival: object) -> Mapping[str, Any]:
    """Return the arguments of `decide`, given so or as the name of a context."""
    if isinstance(arrival, str):
        return {"context": arrival}
    if not isinstance(arrival, Mapping):
        raise InvalidValue("arrival", arrival, "must be a context, or a mapping")
    return arrival


def _own_problem(problem: Problem, external: External) -> Problem:
    """The problem without predictions; an arm that was added later has none, and is left to the engine."""
    arms = tuple(arm for arm in problem.arms if PREFIX + arm.name in problem.person_names)
    if not arms:
        remedy = "is for campaigns that were created with policy=doral.external(...); this one takes no predictions"
        raise InvalidValue("model", external.name, remedy)
    person = tuple(feature for feature in problem.person if not feature.name.startswith(PREFIX))
    if len(arms) < problem.n_arms:
        problem = dataclasses.replace(problem, arms=arms)
    return dataclasses.replace(problem, person=person, missing=external.missing if person else "error")
