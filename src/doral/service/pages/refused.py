"""What a page shows in place of a campaign: that it is not there, that it cannot be read, that somebody may not."""

from __future__ import annotations

from html import escape

from fastapi import Request
from fastapi.responses import HTMLResponse

from doral.errors import DoralError, UnknownName
from doral.live.errors import ArchiveMissing, BrokenLog, CampaignGone, StorageError, UnknownDecision
from doral.pages.names import short
from doral.service.access.caller import Caller
from doral.service.access.refusals import as_told_to
from doral.service.pages.shell import shell
from doral.wire.problems import ServiceError, to_problem

_BACK = '<p><a class="button" href="/">All campaigns</a></p>'


def refused_page(request: Request, caller: Caller | None, error: DoralError, *, name: str = "") -> HTMLResponse:
    """In words, with what to do about it.

    Args:
        request: That asked.
        caller: Who is signed in, if anybody.
        error: What is wrong.
        name: Of the campaign that the page would be about.
    """
    error = as_told_to(caller, error)
    shown = short(name, 60)
    title, words, status = _told(error, shown)
    main = (
        f'<div class="refused"><h1>{escape(title)}</h1><p>{escape(words)}</p>'
        f'<p class="detail"><code>{escape(short(str(error), 600))}</code></p>{_BACK}</div>'
    )
    return shell(request, caller, title=title, main=main, status=status)


def _told(error: DoralError, name: str) -> tuple[str, str, int]:
    status = int(to_problem(error)["status"])
    if isinstance(error, CampaignGone):
        return "This campaign was deleted", "Nothing of it is left in this store; a backup may still have it.", 410
    if isinstance(error, UnknownName):
        return "No such campaign", f"There is no campaign {name!r} here. It may have been deleted, or never been.", 404
    if isinstance(error, UnknownDecision):
        return "No such decision", "This campaign has no decision of that id.", 404
    if isinstance(error, ArchiveMissing):
        words = "Old events are in a file that is not where it was: bring it back, or say where it is. Decisions go on."
        return "An archive is missing", words, status
    if isinstance(error, BrokenLog):
        words = (
            "What is stored is not what was written: nothing is shown, rather than something wrong. "
            "Look with `doral campaign verify`, and restore a backup."
        )
        return "The log is damaged", words, status
    if isinstance(error, StorageError):
        return "The store cannot be read", "Nothing is lost by that. Load this page again in a while.", status
    if isinstance(error, ServiceError) and error.status == 403:
        return "Not for this key", "Whoever is signed in may not see this. Sign in with another key.", 403
    return str(to_problem(error)["title"]), "The request could not be carried out.", status
