"""What came of rows and when: answers, rewards, and whether silence means something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral._arrays import Flags, Floats
from doral.log.cleaning import Sieve
from doral.problem import MAX_REWARD, Feedback

# If one answer in ten were a zero, so many answers without one would be rarer than 1 in 20.
_MANY = 30


@dataclass
class Outcomes:
    """Rewards and delays of all rows of a file, on the clock."""

    reward: Floats  # NaN where there is no answer
    delay: Floats  # infinite where there is none
    feedback: Feedback
    has_delays: bool
    notes: list[str]


def match_answers(
    sieve: Sieve,
    reward: Floats | None,
    delay: Floats | None,
    *,
    is_late: Flags,
    is_never: Flags,
    feedback: Feedback | None,
) -> Outcomes:
    """`is_late` rows were answered after all that was observed; of `is_never` it is said that no answer came."""
    notes: list[str] = []
    if reward is not None:
        is_wild = ~np.isnan(reward) & ~(np.abs(reward) <= MAX_REWARD)
        wild = reward
        sieve.drop(is_wild, f"have a reward that is not finite or beyond {MAX_REWARD:g}", lambda row: wild[row])
    if delay is None:
        assert reward is not None
        return _at_once(sieve, reward, feedback, notes)
    has_answer = np.isfinite(delay)
    if reward is None:
        notes.append("There is no column of rewards: an answer counts as 1, and nobody hears of zeros (silent).")
        said: Feedback = feedback or "silent"
        return Outcomes(np.where(has_answer, 1.0, np.nan), delay, said, True, notes)
    has_reward = ~np.isnan(reward)
    own = reward
    sieve.drop(has_answer & ~has_reward, "were answered, but have no reward")
    is_lost = has_reward & ~has_answer & ~is_late & ~is_never
    hears_zeros = bool((sieve.kept & has_answer & (reward <= 0.0)).any())
    is_silent_zero = is_lost & (reward == 0.0)
    if feedback != "explicit" and not hears_zeros and (sieve.kept & is_silent_zero).any():
        if feedback is None:
            notes.append(
                "Feedback is taken to be silent: no zero has a time of answer, so that zeros are what nobody heard of."
                " feedback='explicit' says otherwise."
            )
        feedback, is_lost = "silent", is_lost & ~is_silent_zero
    why = "have a reward, but nobody says when it came"
    sieve.drop(is_lost, why, lambda row: f"reward {own[row]:g}")
    if feedback is None:
        feedback = _guessed(sieve.kept, reward, has_answer, notes)
    if feedback == "silent":
        is_zero = has_answer & (reward == 0.0)
        if rows := int((sieve.kept & is_zero).sum()):
            notes.append(f"{rows:,} answers of 0 are taken as not heard: feedback is silent.")
        has_answer = has_answer & ~is_zero
    return Outcomes(
        np.where(has_answer, reward, np.nan),
        np.where(has_answer, delay, np.inf),
        feedback,
        has_delays=True,
        notes=notes,
    )


def _at_once(sieve: Sieve, reward: Floats, feedback: Feedback | None, notes: list[str]) -> Outcomes:
    notes.append("Nobody says when answers came (answered= or delay=): rewards are taken to be known at once.")
    is_known = ~np.isnan(reward)
    if feedback == "silent":
        is_known &= reward != 0.0
    if n_open := int((sieve.kept & ~is_known).sum()):
        notes.append(f"{n_open:,} rows without a reward are taken as not answered.")
    delay = np.where(is_known, 0.0, np.inf)
    return Outcomes(np.where(is_known, reward, np.nan), delay, feedback or "explicit", False, notes)


def _guessed(kept: Flags, reward: Floats, has_answer: Flags, notes: list[str]) -> Feedback:
    heard = reward[kept & has_answer]
    has_open = bool((kept & ~has_answer).any())
    if has_open and heard.size >= _MANY and heard.min() > 0.0 and heard.min() == heard.max():
        notes.append(
            f"Feedback is taken to be silent: all {heard.size:,} answers are {heard[0]:g}, and others have none."
            " feedback='explicit' says otherwise."
        )
        return "silent"
    return "explicit"
