"""Which column is what, from the data as well as from names; what is ambiguous is asked, never guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from doral.errors import InvalidValue, UnknownName, shown
from doral.logs.columns import (
    ANSWER_FLAGS,
    CONTEXTS,
    EXPORTED,
    KNOWN,
    SIMULATED,
    Chosen,
    Roles,
    by_name,
    hints_at,
    plain,
    tier_of,
    unit_in,
)
from doral.logs.log import Assumption, SeenColumn
from doral.logs.profile import (
    Profile,
    decides,
    distinct_partitions,
    is_level_of_control,
    is_no_word,
    is_numbering,
    is_of_days,
    one_hot_group,
    profiles_of,
    wide_group,
    without_copies,
)
from doral.logs.summary import Question, UnclearColumns
from doral.logs.times import DAY_US, moments_of, order_of
from doral.logs.values import rewards_of

if TYPE_CHECKING:
    import polars as pl

MOST_ARMS = 200  # levels of a column that nobody has named as the arm
_FEW = 30  # rows: so few say nothing of what recurs
_NEARLY_NEVER = 0.01
_MOST_ASKED = 8  # candidates that a question names
_MOST_PROFILED = 400  # columns; of a wider table only those whose names say something are looked at
_GIVEN = ("got", "given", "assigned", "sent", "treated", "received")  # said of arms
_MEANING = {
    "arm": "what was done",
    "reward": "what came of it",
    "time": "when they arrived",
    "answered": "when the answer came",
    "cost": "what a use costs",
    "delay": "how long the answer took",
    "paid": "what was paid in the end",
    "probability": "the probability of what was done",
}


def understand(
    frame: pl.DataFrame,
    *,
    chosen: Mapping[str, Chosen],
    arm_columns: Sequence[str],
    context: Sequence[str] | None,
    source: str,
    decimal_comma: bool = False,
    given: Mapping[str, Any],
) -> tuple[Roles, tuple[SeenColumn, ...]]:
    """Return the role of every column, or raise `UnclearColumns`.

    Args:
        frame: The table.
        chosen: By role, the column that the caller names, False for none, None where the table has to tell.
        arm_columns: Columns that the caller names as an arm each.
        context: Columns by name, or None: the one that is called so.
        source: The name of the table, for messages.
        decimal_comma: Whether "1,234" is 1.234.
        given: The options of the caller as they were given, for the call that is suggested.
    """
    names = frame.columns
    named = {role: name for role, name in chosen.items() if isinstance(name, str) and name}
    _check_named(named, arm_columns, context, names)
    if set(names) >= EXPORTED or set(names) >= SIMULATED:
        return _by_exact_names(names, chosen, named, context), ()
    looked_at = list(names)
    if len(looked_at) > _MOST_PROFILED:
        said = [one for one in names if any(tier_of(role, one) is not None for role in KNOWN)]
        looked_at = list(dict.fromkeys([*named.values(), *arm_columns, *(context or ()), *said]))[:_MOST_PROFILED]
    profiles = profiles_of(frame.select(looked_at), decimal_comma=decimal_comma)
    found = _Detection(profiles, named, arm_columns, chosen, context, given)
    found.run()
    seen = tuple(one.seen() for one in profiles.values())
    if found.questions:
        raise UnclearColumns(found.questions, seen, found.suggestion(given), source)
    return found.roles(names), seen


def _check_named(
    named: Mapping[str, str], arm_columns: Sequence[str], context: Sequence[str] | None, names: Sequence[str]
) -> None:
    by_role = [*named.items(), *(("arm", name) for name in arm_columns), *(("context", name) for name in context or ())]
    for role, name in by_role:
        if name not in names:
            raise InvalidValue(role, name, str(UnknownName("column", name, names)))
    if "answered" in named and "delay" in named:
        raise InvalidValue("delay", named["delay"], "name either answered= or delay=, not both")
    taken = [name for _, name in by_role]
    for name in taken:
        if taken.count(name) > 1:
            raise InvalidValue("column", name, "cannot be two things at once; name another for one of them")


def _by_exact_names(
    names: Sequence[str], chosen: Mapping[str, Chosen], named: Mapping[str, str], context: Sequence[str] | None
) -> Roles:
    """Of what doral itself wrote: names leave no doubt."""
    columns = dict(named)
    free = [one for one in names if one not in columns.values() and one not in (context or ())]
    guessed = []
    for role in KNOWN:
        if role in columns or chosen.get(role) is not None or (role == "delay" and "answered" in columns):
            continue
        if role == "answered" and "delay" in columns:
            continue
        if found := by_name(role, free):
            columns[role] = found[0]
            guessed.append(role)
            free.remove(found[0])
    if context is None:
        context = [one for one in free if one == "context"]
        guessed += ["context"] * len(context)
    return Roles(
        columns={role: columns[role] for role in ("time", *KNOWN) if role in columns},
        context=tuple(context),
        guessed=tuple(guessed),
        units={},
        is_export=set(names) >= EXPORTED,
        is_simulated=set(names) >= SIMULATED,
        unused=tuple(one for one in names if one not in columns.values() and one not in context),
    )


class _Detection:
    """The search: roles that are settled, one after another, and questions where they cannot be."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        named: Mapping[str, str],
        arm_columns: Sequence[str],
        chosen: Mapping[str, Chosen],
        context: Sequence[str] | None,
        given: Mapping[str, Any],
    ) -> None:
        self.profiles, self.given = profiles, given
        self.columns: dict[str, str] = dict(named)
        self.arm_columns = tuple(arm_columns)
        self.chosen = chosen
        self.context = context
        self.assumptions: list[Assumption] = []
        self.questions: list[Question] = []
        self.likely: dict[str, Any] = {}
        self.proposed: list[str] = []
        self.time_of_day: str | None = None

    # What is still to be told apart.

    @property
    def taken(self) -> set[str]:
        return {*self.columns.values(), *self.arm_columns, *(self.context or ()), *filter(None, [self.time_of_day])}

    def free(self) -> list[Profile]:
        return [one for name, one in self.profiles.items() if name not in self.taken]

    def is_open(self, role: str) -> bool:
        if role == "arm" and self.arm_columns:
            return False
        return role not in self.columns and self.chosen.get(role) is None

    def settle(self, role: str, name: str, why: str) -> None:
        self.columns[role] = name
        self.assumptions.append(Assumption(what=role, value=name, why=why))

    def ask(self, role: str, candidates: Iterable[Profile | str], why: str, *, can_be_none: bool = False) -> None:
        listed = [one if isinstance(one, str) else one.name for one in candidates][:_MOST_ASKED]
        if listed:
            self.likely[role] = listed[0]
        self.questions.append(Question(role=role, candidates=tuple(listed), why=why, can_be_none=can_be_none))

    def choose(self, role: str, candidates: Sequence[Profile], why: str) -> bool:
        """Settle the role if there is one candidate; ask if there are several; True if there was any."""
        if len(candidates) == 1:
            self.settle(role, candidates[0].name, why)
        elif candidates:
            listed = ", ".join(shown(one.name) for one in candidates[:_MOST_ASKED])
            self.ask(role, candidates, f"{listed} could each be {_MEANING[role]} ({role}=)")
        return bool(candidates)

    def run(self) -> None:
        if self.is_open("observed_until"):
            found = self._of_names("observed_until", [one for one in self.free() if one.kind != "other"])
            if len(found) == 1:
                self.settle("observed_until", found[0].name, "by its name")
        self._times()
        self._numbers_by_name()
        self._key()
        self._reward_by_name()
        self._arm()
        self._reward()
        self._contexts()
        self._unnamed_cost()
        self._cost_of_outcome()
        if not self.questions:
            self._how_it_is_written()

    def _times(self) -> None:
        """When they arrived and were answered: never empty is the arrival, empty at times the answer."""
        times = [one for one in self.free() if one.kind == "times" and not one.is_row_number]
        times = [one for one in times if not hints_at("other_time", one.name) or _known_time(one.name)]
        others = [role for role in KNOWN if role not in ("time", "answered")]
        times = [one for one in times if not any(tier_of(role, one.name) == 0 for role in others)]
        if any(one.is_surely_times for one in times):  # numbers of this size may be of something else
            times = [one for one in times if one.is_surely_times]
        if self.is_open("time"):
            self._arrival(times)
        times = [one for one in times if one.name not in self.taken]
        if self.is_open("answered") and "delay" not in self.columns:
            self._answer(times)

    def _arrival(self, times: list[Profile]) -> None:
        days = [one for one in times if is_of_days(one) and one.share_empty <= _NEARLY_NEVER]
        clocks = [one for one in self.free() if one.is_time_of_day and one.share_empty <= _NEARLY_NEVER]
        days = self._of_names("time", days) or days
        if len(days) == 1 and len(clocks) == 1:
            self.settle("time", days[0].name, f"its days, with the time of day in {shown(clocks[0].name)}")
            self.time_of_day = clocks[0].name
            return
        plainest = [one for one in self.free() if tier_of("time", one.name) == 0 and one.kind != "other"]
        named = plainest or self._of_names("time", times)
        always = [one for one in times if one.share_empty <= _NEARLY_NEVER]
        if len(named) == 1 and (named[0].share_empty <= 0.2 or plainest):
            self.settle("time", named[0].name, "by its name")
            return
        if not times:
            numbers = [one for one in self.free() if one.kind in ("numbers", "yes/no")]
            if found := self._of_names("time", numbers):
                self.choose("time", found, "by its name")
            elif unread := [one for one in self.free() if self._is_unread_time(one)]:
                listed = ", ".join(shown(one.name) for one in unread[:_MOST_ASKED])
                why = f"{listed} may hold times that cannot be read; write 2026-02-20 08:00"
                self.ask("time", unread, why, can_be_none=True)
            return
        likely = [one for one in always if not hints_at("answer", one.name) and tier_of("answered", one.name) is None]
        likely = named or likely
        if hinted := [one for one in likely if hints_at("arrival", one.name) or one in named]:
            likely = hinted
        likely = without_copies(likely)
        if not likely and len(always) == 1 and len(times) > 1:
            likely = always  # all others are empty at times
        if len(likely) == 1:
            is_alone = len(always) == 1 and always[0] is likely[0]
            self.settle("time", likely[0].name, "the only times that are never empty" if is_alone else "by its name")
        elif likely:
            self.choose("time", likely, "")
        elif len(times) == 1 and hints_at("arrival", times[0].name):
            self.settle("time", times[0].name, "by its name")
        else:
            listed = ", ".join(shown(one.name) for one in times[:_MOST_ASKED])
            self.ask("time", times, f"is one of {listed} {_MEANING['time']} (time=)?", can_be_none=True)

    def _answer(self, times: list[Profile]) -> None:
        plainest = [one for one in self.free() if tier_of("answered", one.name) == 0 and one.kind != "other"]
        is_of_world = self._is_of_world()
        numbers = [one for one in self.free() if one.kind in ("numbers", "yes/no")] if not is_of_world else []
        named = plainest or self._of_names("answered", times) or self._of_names("answered", numbers)
        if not named:
            named = [one for one in times if hints_at("answer", one.name)]
        if self.choose("answered", without_copies(named), "by its name"):
            return
        times = [one for one in times if not hints_at("arrival", one.name)]
        sometimes = [one for one in times if one.share_empty > _NEARLY_NEVER and self._is_after_arrival(one)]
        if len(sometimes) == 1:
            self.settle("answered", sometimes[0].name, "times that are empty at times, and lie after the arrival")
        elif sometimes:
            self.choose("answered", sometimes, "")
        elif later := [one for one in times if self._is_after_arrival(one)]:
            listed = ", ".join(shown(one.name) for one in later[:_MOST_ASKED])
            why = f"is {listed} {_MEANING['answered']} (answered=)?"
            self.ask("answered", later, why, can_be_none=True)

    def _is_unread_time(self, one: Profile) -> bool:
        """Text that differs from row to row as times do, or that is called a time and has digits."""
        is_called = one.kind == "words" and tier_of("time", one.name) in (0, 1)
        return one.is_like_unread_times or (is_called and any(letter.isdigit() for letter in "".join(one.words)))

    def _is_of_world(self) -> bool:
        """Whether arrivals are dates."""
        name = self.columns.get("time")
        return name is not None and self.profiles[name].kind == "times"

    def _is_after_arrival(self, one: Profile) -> bool:
        if "time" not in self.columns:
            return False
        arrival = self.profiles[self.columns["time"]]
        if arrival.kind != "times":
            return False
        with np.errstate(invalid="ignore"):
            early = (one.value < arrival.value - DAY_US)[one.is_known & arrival.is_known]
        return bool(early.size) and float(early.mean()) <= _NEARLY_NEVER and bool(np.isfinite(one.value).any())

    def _of_names(self, role: str, among: Sequence[Profile]) -> list[Profile]:
        names = by_name(role, [one.name for one in among])
        return [one for one in among if one.name in names]

    def _numbers_by_name(self) -> None:
        """Delays, costs, payments, probabilities and ends of observation, where names say so and data agree."""
        numbers = [one for one in self.free() if one.kind in ("numbers", "yes/no", "empty")]
        if self.is_open("delay") and "answered" not in self.columns:
            kinds = ("numbers", "durations", "yes/no")
            found = self._of_names("delay", [one for one in self.free() if one.kind in kinds])
            if not found:
                found = [
                    one
                    for one in self.free()
                    if one.kind in ("numbers", "durations")
                    and (
                        hints_at("delay", one.name)
                        or (hints_at("answer", one.name) and (one.kind == "durations" or unit_in(one.name)))
                    )
                ]
            if not self.choose("delay", found, "by its name"):
                self._unnamed_delay()
        numbers = [one for one in numbers if one.name not in self.taken]
        if self.is_open("probability"):
            found = self._of_names("probability", numbers)
            self.choose("probability", found, "by its name")
        if self.is_open("cost"):
            found = self._of_names("cost", [one for one in numbers if not hints_at("context", one.name)])
            if not found:
                found = [one for one in numbers if hints_at("cost", one.name) and not hints_at("context", one.name)]
            self.choose("cost", found, "by its name")
        if self.is_open("paid"):
            numbers = [one for one in numbers if one.name not in self.taken]
            found = self._of_names("paid", [one for one in numbers if one.kind == "numbers" or self._is_of_cost(one)])
            self.choose("paid", found, "by its name")

    def _unnamed_delay(self) -> None:
        """Durations without a name that says so, and words in a column that is called a delay."""
        lengths = [one for one in self.free() if one.kind == "durations" and not one.is_time_of_day]
        called = [one for one in self.free() if one.kind == "words" and tier_of("delay", one.name) is not None]
        if lengths:
            listed = ", ".join(shown(one.name) for one in lengths[:_MOST_ASKED])
            self.ask("delay", lengths, f"is {listed} {_MEANING['delay']} (delay=)?", can_be_none=True)
        elif called:
            why = f"{shown(called[0].name)} holds no durations; write '1 day, 04:05', or numbers with delay_unit="
            self.ask("delay", called, why, can_be_none=True)

    def _is_of_cost(self, one: Profile) -> bool:
        """Whether 0 and 1 are amounts: where costs are 1, or all is free."""
        if one.sampled.dtype == _string() and not {"0", "1"} >= {*one.words}:
            return False
        cost = self.columns.get("cost")
        return cost is None or bool((self.profiles[cost].value > 1.0).sum() == 0)

    def _key(self) -> None:
        if self.is_open("key"):
            found = self._of_names("key", [one for one in self.free() if one.kind in ("words", "numbers", "yes/no")])
            if found:
                self.settle("key", found[0].name, "by its name")

    def _outcomes(self) -> list[Profile]:
        """Columns that could be what came of it."""
        found = []
        flags, _ = one_hot_group(self.free())
        for one in self.free():
            if one.is_row_number or one.is_unnamed or hints_at("context", one.name) or one.name in flags:
                continue
            is_number = one.kind == "numbers" and not (one.is_identifier or hints_at("identifier", one.name))
            is_few_words = one.kind == "words" and 2 <= one.levels <= 6
            if one.kind == "yes/no" or is_number or is_few_words:
                found.append(one)
        return found

    def _reward_by_name(self) -> None:
        if not self.is_open("reward"):
            self._answer_flag()
            return
        counts = [one for one in self.free() if one.kind == "numbers" and hints_at("count", one.name) and one.is_whole]
        if len(counts) > 1:
            listed = ", ".join(shown(one.name) for one in counts[:4])
            why = f"columns such as {listed} seem to sum up: a log has one row per decision; say with reward= which"
            self.ask("reward", counts, f"{why} column tells {_MEANING['reward']}, if it has")
            return
        outcomes = [one for one in self.free() if one.kind in ("numbers", "yes/no", "words", "empty")]
        outcomes = [one for one in outcomes if one.kind != "words" or one.levels <= 50]
        first = self._of_names("reward", outcomes)
        if first and tier_of("reward", first[0].name) == 0:
            self.choose("reward", first, "by its name")
            self._answer_flag()
            return
        hinted = [one for one in self._outcomes() if hints_at("outcome", one.name) or one in first]
        hinted = [one for one in hinted if one.kind != "words" or one in first or self._has_answer_words(one)]
        hinted = [one for one in hinted if not (one.kind == "numbers" and hints_at("average", one.name))]
        if "answered" in self.columns and len(hinted) > 1:
            hinted = [one for one in hinted if self._is_empty_with_answer(one)] or hinted
        if len(hinted) == 1:
            self.settle("reward", hinted[0].name, "by its name")
        elif hinted:
            self.choose("reward", sorted(hinted, key=lambda one: one not in first), "by its name")
        elif first:
            self.choose("reward", first, "by its name")
        elif "answered" in self.columns:
            fitting = [one for one in self._outcomes() if self._is_empty_with_answer(one)]
            if len(fitting) == 1:
                self.settle("reward", fitting[0].name, "empty, or 0, where there is no answer")
            elif fitting:
                self.choose("reward", fitting, "")

    def _answer_flag(self) -> None:
        """A column that says yes where there is an answer, beside one that says which."""
        if not self.is_open("answered") or "delay" in self.columns:
            return
        found = [one for one in self.free() if one.is_two and plain(one.name) in ANSWER_FLAGS]
        if len(found) == 1:
            self.settle("answered", found[0].name, "by its name: yes where there is an answer")

    def _has_answer_words(self, one: Profile) -> bool:
        from doral.logs.values import NO, YES

        return any(word.lower() in (*YES, *NO) for word in one.words)

    def _is_empty_with_answer(self, one: Profile) -> bool:
        """Whether the column is empty, or 0, where there is no time of an answer."""
        answer = self.profiles[self.columns["answered"]]
        if answer.is_known.all() or not answer.is_known.any():
            return False
        is_known = one.is_known if one.kind == "words" else np.isfinite(one.value)
        if is_known.all():
            return bool((one.value[~answer.is_known] == 0.0).all() and (one.value[answer.is_known] > 0.0).any())
        return float((is_known != answer.is_known).mean()) <= _NEARLY_NEVER

    def _reward(self) -> None:
        """What came of it, where no name says so."""
        if not self.is_open("reward") or any(one.role == "reward" for one in self.questions):
            return
        outcomes = [one for one in self._outcomes() if one.name not in list(self.likely.values())]
        outcomes = [one for one in outcomes if one.kind != "words" or self._has_answer_words(one)]
        yes_no = [one for one in outcomes if one.is_two and (one.levels > 1 or one.share_empty > 0.0)]
        if "answered" in self.columns or "delay" in self.columns:
            if not yes_no:
                return  # an answer is the outcome: silent feedback
        elif len(yes_no) == 1 and len(outcomes) == 1:
            self.settle("reward", yes_no[0].name, "the only column that can be an outcome")
            return
        listed = ", ".join(shown(one.name) for one in outcomes[:_MOST_ASKED])
        why = f"say with reward= which column tells {_MEANING['reward']}" + (f": {listed}" if listed else "")
        is_optional = "answered" in self.columns or "delay" in self.columns
        self.ask("reward", [*yes_no, *(one for one in outcomes if not one.is_two)], why, can_be_none=is_optional)

    def _arm(self) -> None:
        if not self.is_open("arm"):
            return
        words = [one for one in self.free() if one.kind in ("words", "yes/no", "numbers", "empty")]
        words = [one for one in words if one.kind != "numbers" or one.is_whole]
        plainest = [one for one in self.free() if tier_of("arm", one.name) == 0 and one.kind != "other"]
        named = plainest or self._of_names("arm", words)
        if len(named) > 1:
            named = distinct_partitions(named)
        if len(named) > 1 and (deciding := [one for one in named if self._decides_cost(one)]):
            named = deciding
        if named:
            self.choose("arm", named, "by its name")
            return
        one_hot, word = one_hot_group(self.free())
        if one_hot and (hints_at("arm", word) or word in _GIVEN):
            self.arm_columns = one_hot
            why = "in every row at most one of them is 1"
            self.assumptions.append(Assumption(what="arm", value=", ".join(one_hot), why=why))
            return
        candidates = [one for one in words if self._can_be_arm(one)]
        deciding = distinct_partitions([one for one in candidates if self._decides_cost(one)])
        if len(deciding) == 1 and not one_hot:
            self.settle("arm", deciding[0].name, f"{deciding[0].levels} levels that recur, each with one cost")
            return
        hinted = [one for one in candidates if self._weight(one) >= 2]
        others = distinct_partitions([one for one in candidates if not hints_at("context", one.name)])
        is_alone = len(distinct_partitions(hinted)) == 1 and len(others) <= 1
        if is_alone and not one_hot:
            self.settle("arm", (others or hinted)[0].name, self._why_arm(hinted[0]))
            return
        is_outcome = self.is_open("reward") and "answered" not in self.columns and others and others[0].is_two
        if is_outcome and len(others) == 1:  # of these, only the caller knows which was chosen
            ordered = [one for one in self.free() if one is not others[0] and one.recurs and one.levels <= 20]
            self._ask_for_arm(ordered, one_hot)
            return
        if len(others) == 1 and not one_hot and len(candidates) == 1:
            self.settle("arm", others[0].name, f"the only column of a few levels ({others[0].levels}) that recur")
            return
        words_alone = [one for one in others if one.kind == "words"]
        rest = [one for one in others if one.kind != "words"]
        outcomes = [one for one in self._outcomes() if one.kind != "words"]
        if len(words_alone) == 1 and len(rest) == 1 and self.is_open("reward") and rest == outcomes:
            self.settle("arm", words_alone[0].name, f"the only words ({words_alone[0].levels}) that recur")
            return
        ordered = sorted(others or candidates, key=lambda one: -self._weight(one))
        self._ask_for_arm(ordered, one_hot)

    def _ask_for_arm(self, ordered: list[Profile], one_hot: Sequence[str]) -> None:
        if wide := wide_group(self.profiles):
            listed = ", ".join(shown(one) for one in wide[:4])
            why = (
                f"columns such as {listed} seem to be of one arm each: a log has one row per decision, with the"
                " arm in a column (unpivot the table), say with arm= which"
            )
        elif one_hot:
            listed = ", ".join(shown(one) for one in one_hot[:4])
            why = f"at most one of {listed} is 1 in every row: say with arm= whether these are the arms"
        elif ordered:
            listed = ", ".join(shown(one.name) for one in ordered[:_MOST_ASKED])
            why = f"say with arm= which column tells {_MEANING['arm']}: {listed} could be it"
        else:
            listed = ", ".join(shown(one) for one in list(self.profiles)[:20])
            why = f"say with arm= which column tells {_MEANING['arm']}; there are {listed}"
        self.ask("arm", ordered, why)
        if wide:  # before all that is asked because of it
            self.questions.insert(0, self.questions.pop())
        if one_hot and not wide:
            self.likely["arm"] = list(one_hot)

    def _can_be_arm(self, one: Profile) -> bool:
        """A few levels that recur."""
        if one.is_row_number or one.is_unnamed or one.is_identifier or not 2 <= one.levels <= MOST_ARMS:
            return False
        if hints_at("identifier", one.name) and one.kind == "numbers" and one.levels > 20:
            return False
        if one.kind == "numbers" and (one.levels > 20 or not one.is_whole):
            return False
        if hints_at("context", one.name) and not is_level_of_control(one.words):
            return False
        if (
            (one.is_two or hints_at("count", one.name))
            and hints_at("outcome", one.name)
            and not is_level_of_control(one.words)
        ):
            return False
        is_named = hints_at("arm", one.name) or hints_at("weak_arm", one.name)
        return one.recurs or (is_named and one.rows < _FEW)

    def _weight(self, one: Profile) -> float:
        """How much speaks for an arm; 2 is a clear word."""
        weight = 2.0 * hints_at("arm", one.name) + 1.0 * hints_at("weak_arm", one.name)
        weight += 2.0 * (one.levels <= 20 and is_level_of_control(one.words)) + 2.0 * self._decides_cost(one)
        return weight + 0.1 * (one.kind == "words")

    def _why_arm(self, one: Profile) -> str:
        by_name_ = "by its name" if hints_at("arm", one.name) else "by the names of its levels"
        return f"{by_name_}; {one.levels} levels that recur"

    def _decides_cost(self, one: Profile) -> bool:
        """Whether each level has one cost, and costs differ."""
        name = self.columns.get("cost")
        return name is not None and one.recurs and one.levels <= MOST_ARMS and decides(one, self.profiles[name].value)

    def _contexts(self) -> None:
        free = [one for one in self.free() if one.name not in list(self.likely.values())]
        usable = [one for one in free if not (one.is_row_number or one.is_identifier or one.kind in ("times", "empty"))]
        usable = [one for one in usable if not one.is_constant and one.kind not in ("durations", "other")]
        if self.context is None:
            tiers = ([one for one in free if plain(one.name) in tier] for tier in CONTEXTS)
            found = next((tier for tier in tiers if tier), [])
            self.context = tuple(one.name for one in found)
            for one in found:
                self.assumptions.append(Assumption(what="context", value=one.name, why="by its name"))
        self.proposed = [
            one.name
            for one in usable
            if one.name not in self.taken
            and (one.kind in ("words", "yes/no") or one.is_whole)
            and (one.levels <= 64 or hints_at("context", one.name))
            and (hints_at("context", one.name) or not hints_at("outcome", one.name))
        ]
        self.proposed.sort(key=lambda name: not hints_at("context", name))

    def _unnamed_cost(self) -> None:
        """Numbers that depend on the arm alone may be its cost, or something else: only the caller knows."""
        if not self.is_open("cost") or "arm" not in self.columns or any(one.role == "cost" for one in self.questions):
            return
        arm = self.profiles[self.columns["arm"]]
        if not arm.recurs or arm.levels > MOST_ARMS:
            return
        found = [
            one
            for one in self.free()
            if one.kind == "numbers"
            and not hints_at("identifier", one.name)
            and not hints_at("context", one.name)
            and not one.is_constant
            and bool((one.value[np.isfinite(one.value)] >= 0.0).all())
            and not is_numbering(one)
            and decides(arm, one.value)
        ]
        if found:
            listed = ", ".join(shown(one.name) for one in found)
            why = f"{listed} depends on {shown(arm.name)} alone: is it {_MEANING['cost']} (cost=)?"
            self.ask("cost", found, why, can_be_none=True)

    def _cost_of_outcome(self) -> None:
        """A price that is there only where something was bought may be what the customer paid."""
        name, reward = self.columns.get("cost"), self.columns.get("reward")
        if name is None or reward is None or self.chosen.get("cost") is not None or tier_of("cost", name) == 0:
            return
        cost, outcome = self.profiles[name], self.profiles[reward]
        is_paid = np.nan_to_num(cost.value) > 0.0
        is_good = np.nan_to_num(outcome.value) > 0.0
        if is_good.any() and not is_good.all() and (is_paid == is_good).mean() > 1.0 - _NEARLY_NEVER:
            why = f"{shown(name)} is there only where {shown(reward)} is: is it {_MEANING['cost']} (cost=)?"
            del self.columns["cost"]
            self.assumptions = [one for one in self.assumptions if one.what != "cost"]
            self.ask("cost", [cost], why, can_be_none=True)

    def _how_it_is_written(self) -> None:
        """Words that are no plain yes or no, days and months that look alike, durations without a unit."""
        reward = self.columns.get("reward")
        if reward is not None and not self.given.get("positive") and self.profiles[reward].kind == "words":
            profile = self.profiles[reward]
            try:
                rewards_of(profile.sampled, positive=())
            except InvalidValue as error:
                said = sorted(profile.words[:_MOST_ASKED], key=is_no_word)
                self.ask("positive", said, error.remedy)
        times = [self.columns[role] for role in ("time", "answered", "observed_until") if role in self.columns]
        of_text = [one for one in map(self.profiles.get, times) if one is not None and one.kind == "times"]
        if not self.given.get("date_order") and not any(order_of(one.text) for one in of_text):
            for one in of_text:
                try:
                    moments_of(one.sampled, role="time")
                except InvalidValue as error:
                    if "date_order" in error.remedy:
                        self.ask("date_order", ("day-first", "month-first"), error.remedy)
                        break
        delay = self.columns.get("delay")
        is_of_world = self._is_of_world() and not is_of_days(self.profiles[self.columns["time"]])
        is_asked = is_of_world and not self.given.get("delay_unit") and delay is not None
        if delay is not None and is_asked and unit_in(delay) is None and self.profiles[delay].kind != "durations":
            why = f"say with delay_unit= what the numbers in column {shown(delay)} count"
            self.ask("delay_unit", ("days", "hours", "minutes", "seconds", "weeks"), why)

    # What comes out.

    def roles(self, names: Sequence[str]) -> Roles:
        columns = dict(self.columns)
        if self.arm_columns:
            columns["arm"] = ", ".join(self.arm_columns)
        named: tuple[str, ...] = ("time", "delay")
        units = {role: unit for role in named if role in columns and (unit := unit_in(columns[role]))}
        order = [*KNOWN, "context"]
        assumptions = sorted(self.assumptions, key=lambda one: order.index(one.what))
        return Roles(
            columns={role: columns[role] for role in ("time", *KNOWN) if role in columns},
            context=tuple(self.context or ()),
            guessed=tuple(dict.fromkeys(one.what for one in assumptions)),
            units=units,
            unused=tuple(one for one in names if one not in self.taken),
            arm_columns=self.arm_columns,
            assumptions=tuple(assumptions),
            proposed=tuple(self.proposed),
            time_of_day=self.time_of_day,
        )

    def suggestion(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options of a complete call, with the likeliest answers."""
        found: dict[str, Any] = {}
        for role in ("time", *KNOWN):
            if role in self.columns:
                found[role] = self.columns[role]
            elif role in self.likely:
                found[role] = self.likely[role]
        for one in self.questions:
            found.setdefault(one.role, self.likely.get(one.role, False if one.can_be_none else "COLUMN"))
        if self.arm_columns:
            found["arm"] = list(self.arm_columns)
        if self.context and self.chosen:
            found["context"] = list(self.context)
        return {**found, **{name: value for name, value in given.items() if value is not None}}


def _known_time(name: str) -> bool:
    return tier_of("time", name) is not None or tier_of("answered", name) is not None


def _string() -> type[pl.String]:
    import polars as pl

    return pl.String
