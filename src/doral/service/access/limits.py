"""How often: requests of a key, and wrong keys from an address. Counted in each process for itself."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable

_WINDOW_S = 60.0
_MOST_ADDRESSES = 10_000


class Rates:
    """A bucket of tokens for every key: each request takes one, and they come back at a steady rate."""

    def __init__(self, rate_per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate_per_s, max(1, burst), clock
        self._buckets: dict[str, tuple[float, float]] = {}  # what was left in it, and when

    def wait_s(self, key_id: str) -> float:
        """0 where the request may go on; else after how many seconds the next may."""
        if not self._rate > 0:
            return 0.0
        now = self._clock()
        left, at = self._buckets.get(key_id, (float(self._burst), now))
        left = min(float(self._burst), left + (now - at) * self._rate)
        if left < 1.0:
            self._buckets[key_id] = (left, now)
            return (1.0 - left) / self._rate
        self._buckets[key_id] = (left - 1.0, now)
        return 0.0


class Failures:
    """Wrong keys from each address in the last minute or so."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._counted: dict[str, tuple[float, int]] = {}  # when its minute began, and how many

    def wait_s(self, address: str) -> float:
        """0 where another may be tried; else how long to wait."""
        began, count = self._counted.get(_network(address), (0.0, 0))
        left = began + _WINDOW_S - self._clock()
        return left if count >= self._most and left > 0 else 0.0

    def add(self, address: str) -> None:
        """One more."""
        now, network = self._clock(), _network(address)
        began, count = self._counted.get(network, (now, 0))
        if now >= began + _WINDOW_S:
            del self._counted[network]  # so that they stand in the order in which they began
            began, count = now, 0
        self._counted[network] = (began, count + 1)
        if len(self._counted) > _MOST_ADDRESSES:
            del self._counted[next(iter(self._counted))]


def _network(address: str) -> str:
    """Whoever has one address of IPv6 has 2**64 of them."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.IPv6Network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
