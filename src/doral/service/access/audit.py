"""A note of every administrative act: who, when, from where, what. No secret is ever in one."""

from __future__ import annotations

import logging
import time
from typing import Any

from fastapi import Request

from doral.service.access.acts import act_row
from doral.service.access.caller import Caller
from doral.service.access.entrance import address_of
from doral.service.service import service_of

_log = logging.getLogger("doral.service.audit")


async def noted(request: Request, caller: Caller, act: str, campaign: str | None, **details: Any) -> None:
    """Note an act, after it has succeeded and before the caller is told.

    Where it cannot be noted, the caller is told that the store failed, asks again with the same key, and is noted then.

    Args:
        request: That asked for it.
        caller: Who asked.
        act: In a few words, such as "arm paused".
        campaign: Its name; None where it concerns none.
        details: What else to know; nothing secret, and no person.
    """
    row = act_row(
        act,
        campaign,
        details,
        at=time.time(),
        key_id=caller.key_id,
        key_name=caller.name,
        request_id=str(getattr(request.state, "request_id", "")),
        address=address_of(request.scope),
    )
    service = service_of(request)
    await service.run(lambda: service.entrance.books.note(row))
    _log.info("%s (key %s, campaign %s)", act, caller.key_id, campaign)
