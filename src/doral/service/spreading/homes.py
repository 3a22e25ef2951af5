"""Which of several workers a campaign is at home with: told by its name alone, so that all of them say the same."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b


def home_of(name: str, places: Iterable[int]) -> int:
    """One of these places. Each has a number for the name, and the highest wins: without the winner the others keep
    what they have, and what was the winner's is spread over all of them.

    Args:
        name: Of the campaign.
        places: Of the workers that are alive; at least one.

    >>> [home_of(name, range(3)) for name in ("kits", "visits", "letters", "calls")]
    [2, 1, 1, 2]
    """
    given = name.encode("utf-8", "surrogatepass")

    def draw(place: int) -> bytes:
        return blake2b(given, digest_size=8, key=place.to_bytes(4, "big")).digest()

    return max(places, key=draw)
