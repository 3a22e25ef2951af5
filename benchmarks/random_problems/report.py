"""The report of a panel: by band of arrivals, by property, beside the best in hindsight, tails, the worst problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from doral._arrays import Floats
from doral.simulation.results.differences import FEWEST_RUNS, interval

from .panel import BANDS, Played, band_of

FAR_BELOW = 0.8  # of the mean of a policy on a problem
BEHIND = (5.0, 10.0, 30.0)  # points
BASE = "explore-then-lp"
WORST = 10
FEWEST = 5  # problems with a property
_NOT_A_PROPERTY = ("seed", "n")
_NUMBERS = ("budget", "deadline", "delay", "cost_spread", "n_arms", "n_contexts")


class Report:
    """What policies reached on problems that all of them played."""

    def __init__(self, played: Sequence[Played], *, judged: Sequence[str], rivals: Sequence[str]) -> None:
        self.judged, self.rivals = list(judged), [rival for rival in rivals if rival not in judged]
        self.policies = [*self.judged, *self.rivals]
        self.played = [one for one in played if all(policy in one.shares for policy in self.policies)]
        self.left_out = [one for one in played if one.left_out]
        self.means: Floats = np.array(
            [[np.mean(one.shares[policy]) for policy in self.policies] for one in self.played]
        ).reshape(len(self.played), len(self.policies))

    def lines(self, parts: Sequence[str]) -> list[str]:
        """Return the lines of these parts: bands, behind, properties, worst."""
        lines: list[str] = [f"{len(self.played)} problems; shares of the oracle's expected reward in percent"]
        for one in self.left_out:
            lines += [f"left out: {one.problem}: {policy}: {why}" for policy, why in one.left_out.items()]
        if not self.played:
            return lines
        made = {"bands": self._bands, "behind": self._behind, "properties": self._properties, "worst": self._worst}
        return lines + [line for part in parts for line in ("", *made[part]())]

    def _bands(self) -> list[str]:
        bands = np.array([band_of(one.arrivals) for one in self.played])
        lines = [f"{'by arrivals':34}" + "".join(f"{self._heading(name):>28}" for name in (*BANDS, "all"))]
        rows = {name: bands == name for name in BANDS} | {"all": np.full(bands.size, True)}
        lines.append(f"{'problems':34}" + "".join(f"{int(of.sum()):28d}" for of in rows.values()))
        for i, policy in enumerate(self.policies):
            lines.append(f"{policy:34.34}" + "".join(f"{_words(self.means[of, i]):>28}" for of in rows.values()))
        lines.append(
            f"{'best in hindsight':34}" + "".join(f"{_words(self.means[of].max(axis=1)):>28}" for of in rows.values())
        )
        for i, policy in enumerate(self.judged):
            cells = [self._lead(i, of) for of in rows.values()]
            lines.append(f"{policy[:17] + ' less best rival':34}" + "".join(f"{cell:>28}" for cell in cells))
        for i, policy in enumerate(self.judged[1:], start=1):
            cells = [_words(self.means[of, i] - self.means[of, 0], sign="+") for of in rows.values()]
            lines.append(f"{policy[:20] + ' less the first':34}" + "".join(f"{cell:>28}" for cell in cells))
        return lines

    @staticmethod
    def _heading(band: str) -> str:
        return f"{BANDS[band][0]:,}-{BANDS[band][1] // 1_000 * 1_000:,}" if band in BANDS else band

    def _lead(self, judged: int, of: Any) -> str:
        """Return the paired difference to the single rival that is best on these problems."""
        if not self.rivals or not of.any():
            return ""
        best = len(self.judged) + int(np.argmax(self.means[of][:, len(self.judged) :].mean(axis=0)))
        found = _words(self.means[of, judged] - self.means[of, best], sign="+")
        return f"{self.policies[best][:5]} {found}"

    def _behind(self) -> list[str]:
        """Return how often a policy is far behind the best in hindsight, or its own mean."""
        gap = self.means.max(axis=1, keepdims=True) - self.means
        heads = "".join(f"{f'>{points:g} points':>13}" for points in BEHIND)
        lines = [f"{'behind the best in hindsight':34}{heads}{'below half':>13}{'runs < 0.8':>13}"]
        base = self.means[:, self.policies.index(BASE)] if BASE in self.policies else None
        for i, policy in enumerate(self.policies):
            shares = "".join(f"{100.0 * (gap[:, i] > points).mean():12.1f}%" for points in BEHIND)
            halves = f"{int((self.means[:, i] < 0.5 * base).sum()):13d}" if base is not None else f"{'':13}"
            lines.append(f"{policy:34.34}{shares}{halves}{100.0 * self._tail(policy):12.1f}%")
        return [*lines, f"below half: problems below half of {BASE}; runs < 0.8: of the policy's mean on the problem"]

    def _tail(self, policy: str) -> float:
        shares = np.array([one.shares[policy] for one in self.played])
        means = shares.mean(axis=1, keepdims=True)
        return float(((shares < FAR_BELOW * means) & (means > 0.0)).mean())

    def _properties(self) -> list[str]:
        """Return means by property, with the lead over the best rival there."""
        lines = [f"{'by property':40}{'n':>5}" + "".join(f"{policy[:16]:>18}" for policy in self.policies) + "   lead"]
        names = dict.fromkeys(name for one in self.played for name in one.properties if name not in _NOT_A_PROPERTY)
        for name in names:
            values = [one.properties.get(name) for one in self.played]
            for value, of in _split(values) if name in _NUMBERS else _groups(values):
                if of.sum() >= FEWEST:
                    cells = "".join(f"{mean:18.1f}" for mean in self.means[of].mean(axis=0))
                    lines.append(f"{f'{name}: {value}':40.40}{int(of.sum()):5d}{cells}   {self._lead(0, of)}")
        return lines

    def _worst(self) -> list[str]:
        """Return the problems on which the first policy is the furthest behind, each with the command that plays it."""
        gap = self.means.max(axis=1) - self.means[:, 0]
        lines = [f"{'worst of ' + self.policies[0]:34}{'behind':>8}"]
        for i in np.argsort(-gap)[:WORST]:
            one, best = self.played[i], self.policies[int(np.argmax(self.means[i]))]
            lines.append(
                f"{one.problem:34}{gap[i]:8.1f}  {self.means[i, 0]:.1f} against {self.means[i].max():.1f} of {best}"
            )
            said = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in one.properties.items())
            lines += [f"    {said}", f"    {command(one, self.policies[0])}"]
        return lines


def command(one: Played, policy: str) -> str:
    """Return the command that plays a problem again."""
    kind, _, which = one.problem.partition("/")
    chosen = f"--seeds {which}:{int(which) + 1}" if kind == "random" else f"--named {which}"
    return f"python benchmarks/random_problems {chosen} --policies {policy}"


def _words(sample: Floats, sign: str = "") -> str:
    if not sample.size:
        return ""
    found = interval(sample)
    if sample.size < FEWEST_RUNS:
        return f"{found.mean:{sign}.1f}"
    return f"{found.mean:{sign}.1f} [{found.low:{sign}.1f}, {found.high:{sign}.1f}]"


def _groups(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    found = [value for value in dict.fromkeys(values) if value is not None]
    return [(value, np.array([one == value for one in values])) for value in sorted(found, key=str)]


def _split(values: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the thirds of a number."""
    known = np.array([np.nan if value is None else float(value) for value in values])
    if np.isnan(known).all():
        return []
    low, high = np.nanquantile(known, [1.0 / 3.0, 2.0 / 3.0])
    cut = [(f"<= {low:.3g}", known <= low), (f"to {high:.3g}", (known > low) & (known <= high))]
    return [*cut, (f"> {high:.3g}", known > high)]
