"""Decisions in parts, for those who cannot keep an iterator open: each part says where the next one begins."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from doral import _check
from doral.errors import InvalidValue, UnknownName
from doral.live.decision import Decision, make_decision, make_id, read_id
from doral.live.errors import UnknownDecision
from doral.live.events import DECIDE_SCOPE, IS_PENDING, MAKES_DECISION, STATE_NAMES
from doral.live.fold import Fold
from doral.live.keys import used_keys
from doral.live.requests import scoped_key
from doral.live.session import Session
from doral.live.storage.contract import Log
from doral.live.subject import Subject

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
    begin, tag = session.read(lambda log, fold: (_beginning(log, fold, after, state), fold.names.tag))
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
        is_last = session.read(lambda log, fold: not log.decided_after(begin, upto=fold.sequence, limit=1))
    return DecisionPage(found, None if is_last else make_id(tag, begin))


def find_by_key(session: Session, key: str) -> Decision | None:
    """The decision that was made, or recorded, with this key."""
    scoped = scoped_key(DECIDE_SCOPE, key)

    def look(log: Log, fold: Fold) -> Decision | None:
        for event in used_keys(log, fold, [scoped]).values():
            if event.kind in MAKES_DECISION:
                return Subject.find(log, fold, event.sequence).decision()
        return None

    return session.read(look)


def _beginning(log: Log, fold: Fold, after: str | None, state: str | None) -> int:
    begin = 0
    if after is not None:
        try:
            begin = read_id(fold.names.tag, after)
        except UnknownDecision as error:
            raise InvalidValue("after", after, "give what was given as `next`, or the id of a decision") from error
    if state == STATE_NAMES[IS_PENDING]:
        begin = max(begin, fold.expiries.all_upto, log.archived)
    return begin


def _read_some(
    log: Log, fold: Fold, begin: int, state: str | None, *, page: int, wanted: int
) -> tuple[list[Decision], int, int]:
    """Decisions in the state that is asked for, the last event that was looked at, and how many were."""
    decided = log.decided_after(begin, upto=fold.sequence, limit=page)
    if not decided:
        return [], begin, 0
    about = log.about_range(decided[0].sequence, decided[-1].sequence)
    made: list[Decision] = []
    for n_read, event in enumerate(decided, start=1):
        one = make_decision(fold.names, event, about.get(event.sequence, ()), fold.expiries)
        if state is None or one.state == state:
            made.append(one)
        if len(made) == wanted:
            return made, event.sequence, n_read
    return made, decided[-1].sequence, len(decided)
