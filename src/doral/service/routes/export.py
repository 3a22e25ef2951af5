"""All decisions as a file, sent while it is written: memory does not grow with them, here or on disk."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.service import Service, service_of
from doral.service.streams import OwningStream

router = APIRouter(tags=["looking"])
_MEDIA = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@router.get(
    "/v1/campaigns/{name}/export",
    summary="All decisions as a file",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The file. A transfer that breaks off is not whole, and clients report it.",
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
)
async def export(
    request: Request,
    name: str,
    service: Annotated[Service, Depends(service_of)],
    caller: Annotated[Caller, Depends(needs("read"))],
    format: Annotated[Literal["parquet", "csv"], Query(description="Of the file.")] = "parquet",  # noqa: A002
) -> Response:
    """As `Campaign.export` writes it. Decisions go on meanwhile, and those that come late may be in it."""
    del caller
    desk = await service.desk(name)
    person = (await desk.read(lambda campaign: campaign.problem)).person
    headers = {"Content-Disposition": disposition(f"{name}.{format}"), "Cache-Control": "no-store"}
    async with AsyncExitStack() as stack:
        sending = service.exports.sending(desk.campaign, person, format, lambda: service.entrance.holds(request.scope))
        content = await stack.enter_async_context(sending)
        return OwningStream(content, stack.pop_all(), media_type=_MEDIA[format], headers=headers)


def disposition(file_name: str) -> str:
    """A header that saves a file under a name that no file system takes for a path or a command.

    >>> disposition("../a b.csv")
    'attachment; filename="a_b.csv"'
    """
    plain = _UNSAFE.sub("_", file_name).lstrip("._-")
    plain = plain[-100:] if "." in plain.strip(".") else "campaign." + plain
    printable = "".join(one if one.isprintable() else "_" for one in file_name)  # nothing that turns it round
    own = re.sub(r"[_/\\:*?\"<>|]+", "_", printable).lstrip(". ")
    if own.isascii():
        return f'attachment; filename="{plain}"'
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(own, safe='')}"
