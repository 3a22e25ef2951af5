"""How long a broken connection is tried again."""

from __future__ import annotations

import logging
import time

from doral.live.errors import ConnectionLost

RECONNECT_S = 20.0
_PAUSE_S = 0.05
_log = logging.getLogger("doral.live")


class Patience:
    """Of one request."""

    _give_up_at: float | None = None
    _pause_s = _PAUSE_S

    def wait(self, error: ConnectionLost) -> None:
        """A pause before the next attempt; the error itself, once it has lasted too long."""
        now = time.monotonic()
        if self._give_up_at is None:
            self._give_up_at = now + RECONNECT_S
        if now > self._give_up_at:
            raise error
        _log.warning("%s; trying again", error)
        time.sleep(self._pause_s)
        self._pause_s = min(1.0, 2.0 * self._pause_s)

    @property
    def left_s(self) -> float | None:
        """How much is left after a connection broke; None as long as none did."""
        return None if self._give_up_at is None else max(0.0, self._give_up_at - time.monotonic())
