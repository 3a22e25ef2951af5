"""A note of every administrative act: who, when, from where, what. No secret is ever in one."""

from __future__ import annotations

import logging
import time
from typing import Any

from fastapi import Request

from doral.live.storage.service_tables import ActRow
from doral.service.access.acts import act_row
from doral.service.access.caller import Caller
from doral.service.access.entrance import address_of

_log = logging.getLogger("doral.service.audit")


def act_of(request: Request, caller: Caller, act: str, campaign: str | None, **details: Any) -> ActRow:
    """The note of an act, which is stored in one transaction with what it changes.

    Args:
        request: That asked for it.
        caller: Who asked.
        act: In a few words, such as "arm paused".
        campaign: Its name; None where it concerns none.
        details: What else to know; nothing secret, and no person.
    """
    _log.info("%s (key %s, campaign %s)", act, caller.key_id, campaign)
    return act_row(
        act,
        campaign,
        details,
        at=time.time(),
        key_id=caller.key_id,
        key_name=caller.name,
        request_id=str(getattr(request.state, "request_id", "")),
        address=address_of(request.scope),
    )
