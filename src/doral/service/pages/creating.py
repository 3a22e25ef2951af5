"""`/new`: a campaign is described by a form or a file, shown in words, and then created."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from doral.errors import DoralError, InvalidValue
from doral.service.access.guard import act_of, form_needs, page_needs
from doral.service.access.keys import Caller
from doral.service.creation import Wanted, create
from doral.service.pages.acting_messages import telling
from doral.service.pages.creating_files import asked_of_file
from doral.service.pages.creating_page import describing
from doral.service.pages.creating_review import reviewing
from doral.service.pages.creating_values import MORE_ROWS, MOST_ROWS, Asked, Typed, asked_of, seed_of
from doral.service.pages.forms import KEY_FIELD, Mistakes
from doral.service.pages.forms_answers import campaign_path, see
from doral.service.pages.forms_reading import MAX_FILE_BYTES, Sent, read_form
from doral.service.pages.refused import refused_page
from doral.service.pages.shell import shell
from doral.service.service import Service, service_of

router = APIRouter(include_in_schema=False)
_TITLE = "New campaign"
_SCRIPTS = ("forms.js",)
_MOST_FIELDS = 4 * MOST_ROWS + 100


async def _with_room(request: Request, caller: Annotated[Caller, Depends(page_needs("admin"))]) -> None:
    """Forms with many rows, and problems of thousands of arms that travel along, are read in spite of their size."""
    del caller  # of strangers nothing is read
    await request.form(max_fields=_MOST_FIELDS, max_part_size=4 * MAX_FILE_BYTES)


@router.get("/new")
async def describe(request: Request, caller: Annotated[Caller, Depends(page_needs("admin"))]) -> Response:
    """The empty form."""
    return shell(request, caller, title=_TITLE, main=describing(caller), scripts=_SCRIPTS)


@router.post("/new", dependencies=[Depends(_with_room)])
async def take_form(
    request: Request,
    caller: Annotated[Caller, Depends(form_needs("admin"))],
    service: Annotated[Service, Depends(service_of)],
) -> Response:
    """Check it, show it again, or create what was shown."""
    sent = await read_form(request)
    typed = Typed.of(sent)
    step = sent.one("step")
    if step == "create":
        return await _create(request, caller, service, sent)
    if step in ("rows", "edit"):
        main = describing(caller, typed=typed, more_rows=MORE_ROWS if step == "rows" else 0)
        return shell(request, caller, title=_TITLE, main=main, scripts=_SCRIPTS)
    asked, mistakes = await service.run(lambda: asked_of(typed, taken=set(service.store.list())))
    if asked is None:
        main = describing(caller, typed=typed, mistakes=mistakes)
        return shell(request, caller, title=_TITLE, main=main, scripts=_SCRIPTS, status=422)
    return shell(request, caller, title=asked.name, main=reviewing(caller, asked, typed=typed))


@router.post("/new/file")
async def take_file(
    request: Request,
    caller: Annotated[Caller, Depends(form_needs("admin"))],
    service: Annotated[Service, Depends(service_of)],
) -> Response:
    """Show what a file asks for."""
    sent = await read_form(request)

    def read() -> Asked:
        asked = asked_of_file(
            sent.files.get("file"), name=sent.one("name"), policy=sent.one("policy"), clock=sent.one("clock")
        )
        asked.check()
        if asked.name in service.store.list():
            raise InvalidValue("name", asked.name, "is the name of a campaign that is there already; give another")
        return asked

    try:
        asked = await service.run(read)
    except DoralError as error:
        mistakes = Mistakes()
        is_name = isinstance(error, InvalidValue) and error.field in ("name", "name of a campaign")
        if is_name:
            mistakes.take("file-name", error, label="Name")
        elif isinstance(error, InvalidValue) and error.field == "problem file":
            mistakes.take("file", error, label="File")
        else:
            mistakes.add("file", f"{error}.", label="File")
        main = describing(caller, file_mistakes=mistakes, file_values=Typed.of(sent))
        return shell(request, caller, title=_TITLE, main=main, scripts=_SCRIPTS, status=422)
    return shell(request, caller, title=asked.name, main=reviewing(caller, asked, typed=None))


async def _create(request: Request, caller: Caller, service: Service, sent: Sent) -> Response:
    seed = seed_of(sent.one(KEY_FIELD))

    def make() -> str:
        asked = Asked.from_json(sent.raw("asked"))
        asked.check()
        wanted = Wanted(
            name=asked.name,
            problem=asked.problem,
            policy=asked.policy_options,
            clock=asked.clock,
            seed=seed,
            until=asked.until,
        )
        act = act_of(request, caller, "campaign created", asked.name)
        made, _ = create(service.store, wanted, may_be_there=True, act=act)  # the same form may be sent twice
        return made.name

    try:
        name = await service.run(make)
    except DoralError as error:
        return refused_page(request, caller, error, back="/new")
    return see(telling(caller, campaign_path(name), "created"))
