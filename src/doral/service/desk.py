"""Where the requests about one campaign are handed in: single ones that come together are stored together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.decision import Decision
from doral.service.operations.metrics import Metrics

Result = TypeVar("Result")


class _Run(Protocol):
    def __call__(self, work: Callable[[], Result]) -> Awaitable[Result]: ...


class Desk:
    """Requests about one campaign, in their order."""

    def __init__(self, campaign: Campaign, run: _Run, metrics: Metrics) -> None:
        self.campaign, self._run, self._metrics = campaign, run, metrics

    async def decide(self, arrival: Mapping[str, Any]) -> Decision:
        """One arrival; stored with others that wait."""
        return await self._run(lambda: self.campaign.decide(**arrival))

    async def decide_many(self, arrivals: Sequence[Mapping[str, Any]]) -> list[Decision]:
        """All of them or none."""
        return await self._run(lambda: self.campaign.decide_many(arrivals))

    async def feedback(self, answer: Mapping[str, Any]) -> Decision:
        """One answer; stored with others that wait."""
        return await self._run(lambda: self.campaign.feedback(**answer))

    async def feedback_each(self, answers: Sequence[Mapping[str, Any]]) -> list[Decision | DoralError]:
        """Each for itself: what is wrong with one does not keep the others out."""

        def one(answer: Mapping[str, Any]) -> Decision | DoralError:
            try:
                return self.campaign.feedback(**answer)
            except DoralError as error:
                return error

        return await self._run(lambda: [one(answer) for answer in answers])

    async def correct(self, answer: Mapping[str, Any]) -> Decision:
        """A later, better value for an answer."""
        return await self._run(lambda: self.campaign.correct(**answer))

    async def cancel(self, decision_id: str, key: str | None, at: object) -> Decision:
        """A decision was not carried out."""
        return await self._run(lambda: self.campaign.cancel(decision_id, key, at))

    async def record_many(self, records: Sequence[Mapping[str, Any]]) -> list[Decision]:
        """All of them or none."""
        return await self._run(lambda: self.campaign.record_many(records))

    async def write(self, ask: Callable[[Campaign], Result]) -> Result:
        """Any other change, in its turn."""
        return await self._run(lambda: ask(self.campaign))

    async def read(self, ask: Callable[[Campaign], Result]) -> Result:
        """Look at something."""
        return await self._run(lambda: ask(self.campaign))
