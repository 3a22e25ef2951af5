"""What a page shows in place of what was asked for: that it is not there, cannot be read or done, or is not allowed."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from fastapi import Request
from fastapi.responses import HTMLResponse

from doral.errors import DoralError, UnknownName
from doral.live.errors import ArchiveMissing, BrokenLog, CampaignGone, StorageError, UnknownDecision
from doral.pages.names import short
from doral.service.access.keys import Caller
from doral.service.access.refusals import as_told_to
from doral.service.pages.forms import words_of
from doral.service.pages.shell import shell
from doral.wire.problems import ServiceError, to_problem


def refused_page(
    request: Request,
    caller: Caller | None,
    error: DoralError,
    *,
    back: str = "/",
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """In words, with what to do about it and a way back; the status is the one that the API would answer.

    Args:
        request: That asked.
        caller: Who is signed in, if anybody.
        error: What is wrong.
        back: Where to go on.
        headers: More headers.
    """
    error = as_told_to(caller, error)
    title, words, status = _told(error)
    way = "All campaigns" if back == "/" else "Back"
    main = (
        f'<div class="refused"><h1>{escape(title)}</h1>{f"<p>{escape(words)}</p>" if words else ""}'
        f'<p class="told bad" role="alert">{escape(short(words_of(error, is_at_field=False), 600))}</p>'
        f'<p><a class="button" href="{escape(back)}">{way}</a></p></div>'
    )
    return shell(request, caller, title=title, main=main, status=status, headers=headers)


def _told(error: DoralError) -> tuple[str, str, int]:
    """The title, what else to know, and the status."""
    found = to_problem(error)
    title, status = str(found["title"]), int(found["status"])
    if isinstance(error, CampaignGone):
        return "This campaign was deleted", "Nothing of it is left in this store; a backup may still have it.", status
    if isinstance(error, UnknownName) and error.kind == "campaign":
        return "No such campaign", "It may have been deleted, or never been.", 404
    if isinstance(error, UnknownName) and error.kind == "act":  # it is the address that is wrong
        return title, "", 404
    if isinstance(error, UnknownDecision):
        return "No such decision", "This campaign has no decision of that id.", status
    if isinstance(error, ArchiveMissing):
        words = (
            "Old events are in a file of an earlier version that could not be read: put it back, and start the service "
            "again."
        )
        return "An archive is missing", words, status
    if isinstance(error, BrokenLog):
        words = (
            "What is stored is not what was written: nothing is shown, rather than something wrong. "
            "Look with `doral campaign verify`, and restore a backup."
        )
        return "The log is damaged", words, status
    if isinstance(error, StorageError):
        return "The store cannot be used", "Nothing is lost by that. Try again in a while.", status
    if isinstance(error, ServiceError) and error.status == 403:
        return "Not for this key", "Whoever is signed in may not do this. Sign in with another key.", status
    return title, "", status
