"""Administrative acts as they are noted: of bounded length, and without secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from doral.live.storage.service_tables import ActRow

COMMAND_LINE = "command line"  # in the place of an address
_LONGEST = 4_000  # characters of details


def act_row(
    act: str,
    campaign: str | None,
    details: Mapping[str, Any],
    *,
    at: float,
    key_id: str,
    key_name: str,
    request_id: str = "",
    address: str = "",
) -> ActRow:
    """A row to be stored."""
    return ActRow(
        number=0,
        at=at,
        key_id=key_id,
        key_name=key_name,
        act=act,
        campaign=campaign,
        details=written(details),
        request_id=request_id,
        address=address,
    )


def act_by_hand(act: str, details: Mapping[str, Any], *, at: float, who: str) -> ActRow:
    """What was done without a key: on the machine itself, with access to the store."""
    return act_row(act, None, details, at=at, key_id="", key_name=who, address=COMMAND_LINE)


def written(details: Mapping[str, Any]) -> str:
    """As JSON of bounded length.

    >>> written({"arm": "letter"})
    '{"arm": "letter"}'
    """
    text = json.dumps(details, default=str, ensure_ascii=False, sort_keys=True)
    text = text.encode(errors="replace").decode()  # a lone surrogate is no text that a database takes
    return text if len(text) <= _LONGEST else json.dumps({"begins": text[:_LONGEST]}, ensure_ascii=False)
