"""Why silence is not zero: 2,400 kits of two kinds, seen on day 60, with what different readers make of it.

The quick kit works less often; the slow one more often, and most of its answers are still on their way.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from sheet import BLUE, FAINT, GREEN, INK, ORANGE, RED, SOFT, Sheet

TODAY, PER_DAY, DEADLINE = 60, 20, 30


@dataclass(frozen=True)
class Kind:
    name: str
    mean_days: float
    answers: float  # the share that ever answers
    works: float  # of those that are answered


QUICK, SLOW = Kind("quick kit", 4, 0.95, 0.40), Kind("slow kit", 18, 0.95, 0.60)


@dataclass(frozen=True)
class Sent:
    """A kit: the day it was sent, when its answer comes (None: never), and whether it has worked."""

    day: int
    delay: int | None
    worked: bool

    def is_known(self, today: int) -> bool:
        return self.delay is not None and self.day + self.delay <= today


def sent(kind: Kind, seed: int) -> list[Sent]:
    """Twenty a day; delays are geometric."""
    draw = random.Random(seed)
    made = []
    for day in range(TODAY):
        for _ in range(PER_DAY):
            delay = 1
            while draw.random() > 1 / kind.mean_days:
                delay += 1
            will = draw.random() < kind.answers
            made.append(Sent(day, delay if will else None, draw.random() < kind.works))
    return made


def true_return(kind: Kind, age: int) -> float:
    return kind.answers * (1 - (1 - 1 / kind.mean_days) ** age)


def kaplan_meier(kits: list[Sent], today: int, last_age: int) -> list[float]:
    """The share that has answered by each age 0, 1, ...: of those still silent and still watched, how many answer."""
    silent, curve = 1.0, [0.0]
    for age in range(1, last_age + 1):
        at_risk = [k for k in kits if today - k.day >= age and not (k.delay is not None and k.delay < age)]
        now = sum(k.delay == age for k in at_risk)
        silent *= 1 - now / len(at_risk) if at_risk else 1.0
        curve.append(1 - silent)
    return curve


def readings(kits: list[Sent], today: int) -> dict[str, float]:
    """What a kit is said to bring within the deadline, by four readers."""
    known = [k for k in kits if k.is_known(today) and k.delay is not None and k.delay <= DEADLINE]
    mean = sum(k.worked for k in known) / max(len(known), 1)
    n_sent = sum(k.day <= today for k in kits)
    return {
        "silence is zero": sum(k.worked for k in known) / n_sent,
        "only answers count": mean,
        "censored": mean * kaplan_meier([k for k in kits if k.day <= today], today, DEADLINE)[DEADLINE],
    }


def truth(kind: Kind) -> float:
    return kind.works * true_return(kind, DEADLINE)


def waiting() -> Sheet:
    """Twenty slow kits, seen today; beside them the return curve as three readers draw it."""
    kits = sent(SLOW, seed=7)
    sheet = Sheet(860, 430, "Twenty slow kits as seen on day 60, and the return curve by three readers")
    sheet.text(30, 36, "Twenty slow kits, seen on day 60", size=17, at="start", bold=True)
    left, unit = 40.0, 5.2
    some = [k for k in kits if k.day % 3 == 0][::20][:20]
    for i, kit in enumerate(some):
        y = 62 + 15 * i
        x = left + unit * kit.day
        end = left + unit * TODAY
        if kit.is_known(TODAY):
            assert kit.delay is not None
            end = x + unit * kit.delay
            sheet.line(x, y, end, y, SOFT, width=2)
            sheet.dot(end, y, 4.5, GREEN if kit.worked else "#ffffff", GREEN)
        else:
            sheet.line(x, y, end + 14, y, ORANGE, width=2, dash="4 3", arrow=True)
        sheet.dot(x, y, 2.5, INK)
    sheet.line(left + unit * TODAY, 50, left + unit * TODAY, 362, INK, width=1)
    sheet.text(left + unit * TODAY, 378, "today", size=13)
    sheet.dot(46, 400, 4.5, GREEN, GREEN)
    sheet.text(56, 405, "worked", size=13, at="start")
    sheet.dot(122, 400, 4.5, "#ffffff", GREEN)
    sheet.text(132, 405, "did not", size=13, at="start")
    sheet.line(196, 400, 226, 400, ORANGE, width=2, dash="4 3", arrow=True)
    sheet.text(234, 405, "no answer yet: not a no", size=13, at="start")

    sheet.text(470, 36, "How many answer within ... days?", size=17, at="start", bold=True)
    x0, y0, wide, high = 500.0, 362.0, 290.0, 300.0

    def at(age: float, share: float) -> tuple[float, float]:
        return x0 + wide * age / 40, y0 - high * share

    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        sheet.line(*at(0, share), *at(40, share), FAINT, width=1)
        sheet.text(x0 - 8, at(0, share)[1] + 5, f"{share:.0%}", size=12, colour=SOFT, at="end")
    for age in (0, 10, 20, 30, 40):
        sheet.text(at(age, 0)[0], y0 + 18, str(age), size=12, colour=SOFT)
    ages = range(41)
    came = [sum(k.is_known(TODAY) and k.delay is not None and k.delay <= a for k in kits) for a in ages]
    n_known = sum(k.is_known(TODAY) for k in kits)
    sheet.curve([at(a, true_return(SLOW, a)) for a in ages], INK, width=5)
    sheet.curve(
        [at(a, s) for a, s in zip(ages, kaplan_meier(kits, TODAY, 40), strict=True)], "#7fb2ea", width=2.5, steps=True
    )
    sheet.curve([at(a, c / len(kits)) for a, c in zip(ages, came, strict=True)], RED, steps=True)
    sheet.curve([at(a, c / n_known) for a, c in zip(ages, came, strict=True)], ORANGE, steps=True)
    for x, colour, word in (
        (470, INK, "truth"),
        (532, "#7fb2ea", "Kaplan-Meier"),
        (642, RED, "silence is no"),
        (752, ORANGE, "answers only"),
    ):
        sheet.line(x, 400, x + 14, 400, colour, width=4)
        sheet.text(x + 18, 405, word, size=12.5, at="start")
    return sheet


def race() -> Sheet:
    """What each kit is said to bring, day by day, where silence is taken for a zero and where it is not."""
    sheet = Sheet(860, 380, "What each kit is said to bring, by day: silence as zero, and censored")
    x0s, wide, high, y0 = (60.0, 480.0), 330.0, 230.0, 310.0
    kinds = {QUICK: (BLUE, sent(QUICK, seed=3)), SLOW: (GREEN, sent(SLOW, seed=7))}
    days = range(6, TODAY + 1)
    for x0, reader, title in zip(
        x0s, ("silence is zero", "censored"), ("Silence taken for a zero", "Silence taken for silence"), strict=True
    ):
        sheet.text(x0 - 30, 36, title, size=17, at="start", bold=True)

        def at(day: float, value: float, x0: float = x0) -> tuple[float, float]:
            return x0 + wide * day / TODAY, y0 - high * value / 0.6

        for value in (0.0, 0.2, 0.4, 0.6):
            sheet.line(*at(0, value), *at(TODAY, value), FAINT, width=1)
            sheet.text(x0 - 8, at(0, value)[1] + 5, f"{value:.1f}", size=12, colour=SOFT, at="end")
        for day in (0, 20, 40, 60):
            sheet.text(at(day, 0)[0], y0 + 18, str(day), size=12, colour=SOFT)
        for kind, (colour, kits) in kinds.items():
            sheet.line(*at(0, truth(kind)), *at(TODAY, truth(kind)), colour, width=1.5, dash="5 4")
            sheet.curve([at(day, min(readings(kits, day)[reader], 0.6)) for day in days], colour)
        sheet.text(x0 + wide / 2, y0 + 38, "day of the campaign", size=12.5, colour=SOFT)
    for x, colour, word, dash in (
        (60, BLUE, "quick kit", ""),
        (170, GREEN, "slow kit, the better one", ""),
        (380, SOFT, "what they truly bring within 30 days", "5 4"),
    ):
        sheet.line(x, 366, x + 24, 366, colour, width=3, dash=dash)
        sheet.text(x + 32, 371, word, size=13, at="start")
    return sheet
