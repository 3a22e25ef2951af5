"""Decisions in parts, for those who cannot keep an iterator open: each part says where the next one begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from doral import _check
from doral.errors import InvalidValue, UnknownName
from doral.live.errors import BrokenLog, UnknownDecision
from doral.live.events.event import DECIDE_SCOPE, IS_PENDING, STATE_NAMES, Corrected, Deciding, Settled
from doral.live.kinds.request import Subject, scoped_key, used_keys
from doral.live.runtime.session import Session
from doral.live.state.parts import make_id, read_id
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision, make_decision

MAX_PAGE = 1_000
_MOST_LOOKED_AT = 10_000  # of decisions in other states, for one part


class DecisionPage(NamedTuple):
    """Some decisions in their order.

    Attributes:
        decisions: Those of this part; it may have none, and others may still follow.
        next: What to give as `after` for the next part; None: there is nothing more.
    """

    decisions: list[Decision]
    next: str | None


def read_page(session: Session, *, after: str | None, state: str | None, limit: int) -> DecisionPage:
    """At most `limit` decisions after the one with this id; all of one read are of one moment."""
    if state is not None and not _check.is_among(state, STATE_NAMES):
        raise UnknownName("state", state, STATE_NAMES)
    limit = _check.whole_number("limit", limit, at_least=1, at_most=MAX_PAGE)
    begin, tag = session.read(lambda log, now: (_beginning(log, now, after, state), now.names.tag))
    found: list[Decision] = []
    looked_at, is_last = 0, False
    while not is_last and len(found) < limit and looked_at < _MOST_LOOKED_AT:
        wanted = limit - len(found)
        # Where only some count, whole pages are read: what is asked for may be rare.
        page = wanted if state is None else MAX_PAGE
        some = partial(_read_some, begin=begin, state=state, page=page, wanted=wanted)
        made, begin, n_read = session.read(some)
        found += made
        looked_at += n_read
        is_last = n_read == 0
    if not is_last:
        is_last = session.read(lambda log, now: not log.decided_after(begin, upto=now.sequence, limit=1))
    return DecisionPage(found, None if is_last else make_id(tag, begin))


def find_by_key(session: Session, key: str) -> Decision | None:
    """The decision that was made, or recorded, with this key."""
    scoped = scoped_key(DECIDE_SCOPE, key)

    def look(log: Log, now: CampaignState) -> Decision | None:
        for event in used_keys(log, now, [scoped]).values():
            if isinstance(event, Deciding):
                return Subject.find(log, now, event.sequence).decision()
        return None

    return session.read(look)


def _beginning(log: Log, now: CampaignState, after: str | None, state: str | None) -> int:
    begin = 0
    if after is not None:
        try:
            begin = read_id(now.names.tag, after)
        except UnknownDecision as error:
            raise InvalidValue("after", after, "give what was given as `next`, or the id of a decision") from error
    if state == STATE_NAMES[IS_PENDING]:
        begin = max(begin, now.expiries.all_upto)
    return begin


def _read_some(
    log: Log, now: CampaignState, begin: int, state: str | None, *, page: int, wanted: int
) -> tuple[list[Decision], int, int]:
    """Decisions in the state that is asked for, the last event that was looked at, and how many were."""
    decided = log.decided_after(begin, upto=now.sequence, limit=page)
    if not decided:
        return [], begin, 0
    about = log.about_range(decided[0].sequence, decided[-1].sequence)
    made: list[Decision] = []
    for n_read, event in enumerate(decided, start=1):
        one = make_decision(now.names, event, about.get(event.sequence, ()), now.expiries)
        if state is None or one.state == state:
            made.append(one)
        if len(made) == wanted:
            return made, event.sequence, n_read
    return made, decided[-1].sequence, len(decided)


class Tally:
    """Counts while decisions are listed, page by page. A list that is not whole still has all that are pending."""

    def __init__(self, *, is_whole: bool) -> None:
        self._is_whole = is_whole
        self._sequence: int | None = None  # of the state when the first page was read
        self._states = dict.fromkeys(STATE_NAMES, 0)
        self._corrections = 0

    def count(
        self, now: CampaignState, decided: Sequence[Deciding], about: Mapping[int, Sequence[Settled]]
    ) -> list[Decision]:
        """The decisions of one page."""
        if self._sequence is None:
            self._sequence = now.sequence
        made = [make_decision(now.names, event, about.get(event.sequence, ()), now.expiries) for event in decided]
        for one in made:
            self._states[one.state] += 1
        self._corrections += sum(isinstance(event, Corrected) for later in about.values() for event in later)
        return made

    def compare(self, now: CampaignState) -> None:
        """At the end. Where somebody wrote meanwhile, the pages are of different states, and nothing can be said."""
        if self._sequence not in (None, now.sequence):
            return
        listed, expected = self._states, dict(zip(STATE_NAMES, now.counts.states, strict=True))
        listed, expected = (
            {**listed, "corrections": self._corrections},
            {**expected, "corrections": now.counts.corrections},
        )
        if not self._is_whole:
            pending = STATE_NAMES[IS_PENDING]
            listed, expected = {pending: listed[pending]}, {pending: expected[pending]}
        if listed != expected:
            raise BrokenLog(
                f"the log has decisions {listed}, and should have {expected}: events are missing or were changed; "
                "restore a backup, and see `doral campaign verify`"
            )
