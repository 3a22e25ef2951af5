"""What is counted while the service runs."""

from __future__ import annotations

from collections.abc import Sequence

from doral.live.decision import Decision


class Metrics:
    """Called by whoever does something; cheap enough to be called for every request."""

    def decided(self, campaign: str, decisions: Sequence[Decision]) -> None:
        """Decisions that were stored."""

    def answered(self, campaign: str, decisions: Sequence[Decision]) -> None:
        """Answers that were stored, with the states that they led to."""

    def grouped(self, campaign: str, size: int, *, waited_s: float, stored_s: float) -> None:
        """Requests that were stored together: how long the first of them waited, and how long storing took."""

    def answered_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered."""
