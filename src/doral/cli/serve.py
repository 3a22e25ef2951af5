"""`doral serve`: a store of campaigns as a service, with pages. What it needs is imported when it runs."""

from __future__ import annotations

import math
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from doral.cli.command import MISUSED, say
from doral.cli.options import DEFAULT_STORAGE, refuse_memory
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.service.settings import ServiceSettings

_STORAGE_HELP = "sqlite:///file.db or postgresql://host/db; it is made where it is missing."
_HOST_HELP = "Address to listen on. One that others can reach needs --tls-cert, or --allow-plain-http."
_PLAIN_HELP = "Listen on an address that others can reach without TLS: where a proxy that speaks it stands before."
_DIRECT_HELP = "Listen with TLS on an address that others can reach, with no balancer before it: in a trusted network."
_RATE_HELP = "Requests per second that one key may send, on average; 0: no limit."
_BODY_HELP = "Bytes that one request may have."
_CODE_HELP = "Policies and models of your own by campaign, as kits=rules:Thrifty."
_BATCH_HELP = "Decisions, answers or records in one request."
_EXPIRE_HELP = "Seconds between two looks for decisions that are too old for an answer; 0: never by itself."
_WATCH_HELP = "Seconds between two looks for what somebody should be told of."
_WEBHOOK_HELP = "URL that is told when an alarm begins and ends."
_SECRET_HELP = "File with the secret that signs what is sent there. Or put it into DORAL_WEBHOOK_SECRET."
_STOP_HELP = "Seconds that requests get to end when the service is stopped."
_PUBLIC_HELP = "Under which people reach it, as https://example.org, where a proxy stands before it."
_LOG_HELP = (
    "Lines on standard error: text, json, auto (text at a terminal, json elsewhere), or quiet: what is wrong only."
)
_DEMO_HELP = "A try-out that moves by itself: made-up people come to made-up campaigns. The link signs you in."

_STORAGE_VARIABLE = "DORAL_STORAGE"
_SECRET_VARIABLE = "DORAL_WEBHOOK_SECRET"
_LEAST_SECRET = 16  # characters
_LOG_FORMATS = ("auto", "text", "json", "quiet")
_EXTRA = "doral serve needs more than the library: pip install 'doral[serve]'"
_MODULES = ("fastapi", "uvicorn", "starlette", "httptools", "uvloop", "prometheus_client", "python_multipart")
_DEMO_EXPIRE_EVERY_S, _DEMO_WATCH_EVERY_S = 2.0, 5.0  # things happen within minutes there


def serve(
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage",
            "-s",
            envvar=_STORAGE_VARIABLE,
            metavar="URL",
            help=_STORAGE_HELP,
            show_default=DEFAULT_STORAGE,
        ),
    ] = None,
    code: Annotated[str, typer.Option(envvar="DORAL_CODE", metavar="CODE", help=_CODE_HELP)] = "",
    host: Annotated[str, typer.Option(metavar="ADDRESS", help=_HOST_HELP)] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="PORT", help="To listen on; 0: any that is free.")
    ] = 8787,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate, with those that vouch.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Private key of the certificate.")] = None,
    allow_plain_http: Annotated[bool, typer.Option("--allow-plain-http", help=_PLAIN_HELP)] = False,
    direct: Annotated[bool, typer.Option("--direct", help=_DIRECT_HELP)] = False,
    rate: Annotated[float, typer.Option(min=0, metavar="PER_S", help=_RATE_HELP)] = 0.0,
    max_body: Annotated[int, typer.Option(min=1_000, metavar="BYTES", help=_BODY_HELP)] = 16 * 1024 * 1024,
    max_batch: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help=_BATCH_HELP)] = 10_000,
    expire_every: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help=_EXPIRE_HELP, show_default="60")
    ] = None,
    watch_every: Annotated[
        float | None, typer.Option(min=0.1, metavar="SECONDS", help=_WATCH_HELP, show_default="30")
    ] = None,
    webhook: Annotated[str | None, typer.Option(metavar="URL", help=_WEBHOOK_HELP)] = None,
    webhook_secret_file: Annotated[Path | None, typer.Option(metavar="FILE", help=_SECRET_HELP)] = None,
    stop_within: Annotated[float, typer.Option(min=0, metavar="SECONDS", help=_STOP_HELP)] = 20.0,
    public_url: Annotated[str | None, typer.Option(metavar="URL", help=_PUBLIC_HELP)] = None,
    log_format: Annotated[str, typer.Option(help=_LOG_HELP)] = "auto",
    demo: Annotated[bool, typer.Option("--demo", help=_DEMO_HELP)] = False,
) -> None:
    """Serve campaigns over HTTP, with live pages. At the first start it prints the key of an administrator."""
    with _with_extra():
        if log_format not in _LOG_FORMATS:
            raise InvalidValue("log_format", log_format, "must be auto, text, json or quiet")
        _refuse_infinite(rate=rate, expire_every=expire_every, watch_every=watch_every, stop_within=stop_within)
        if demo and storage == os.environ.get(_STORAGE_VARIABLE):
            storage = None  # where somebody's own campaigns are, which was not meant here
        if storage is not None:
            refuse_memory(storage)
        from doral.live.state.own_policy import read_code
        from doral.service.settings import Limits, ServiceSettings

        secret = _webhook_secret(webhook, webhook_secret_file)
        with _stored(storage, demo=demo) as url:
            settings = ServiceSettings(
                storage=url,
                code=read_code(code),
                host=host,
                port=port,
                tls_cert=tls_cert,
                tls_key=tls_key,
                allow_plain_http=allow_plain_http,
                allow_direct=direct,
                limits=Limits(body_bytes=max_body, batch=max_batch, rate_per_s=rate),
                expire_every_s=_first(expire_every, _DEMO_EXPIRE_EVERY_S if demo else 60.0),
                watch_every_s=_first(watch_every, _DEMO_WATCH_EVERY_S if demo else 30.0),
                webhook=webhook,
                webhook_secret=secret,
                stop_within_s=stop_within,
                # The link has to stay in sight of whoever tries it.
                log_format="quiet" if demo and log_format == "auto" else log_format,
                is_demo=demo,
                demo_token=secrets.token_urlsafe(32) if demo else None,
                public_url=public_url,
            )
            _refuse_wrong_demo(settings)
            _run(settings)


def _refuse_infinite(**numbers: float | None) -> None:
    for field, number in numbers.items():
        if number is not None and not math.isfinite(number):
            raise InvalidValue(field, number, "must be a finite number")


def _first(given: float | None, otherwise: float) -> float:
    return otherwise if given is None else given


@contextmanager
def _with_extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _MODULES:
            raise
        say(f"doral: {_EXTRA}")
        raise typer.Exit(MISUSED) from None


def _webhook_secret(webhook: str | None, file: Path | None) -> str | None:
    """From a file or the environment: on the command line, everybody on the machine could read it."""
    if file is not None and webhook is None:
        raise InvalidValue("webhook_secret_file", str(file), "is for --webhook, which was not given")
    if webhook is None:
        return None
    found = os.environ.get(_SECRET_VARIABLE) if file is None else file.read_text(encoding="utf-8")
    found = (found or "").strip()
    if not found:
        where = _SECRET_VARIABLE if file is None else str(file)
        remedy = f"needs a secret that signs what is sent, and {where} has none"
        if file is None:
            remedy += ": put one there, or into a file that --webhook-secret-file names"
        raise InvalidValue("webhook", "...", remedy)
    if len(found) < _LEAST_SECRET:
        remedy = (
            f"is signed with a secret of {len(found)} characters: take {_LEAST_SECRET} or more that nobody can guess"
        )
        raise InvalidValue("webhook", "...", remedy)
    return found


@contextmanager
def _stored(storage: str | None, *, demo: bool) -> Iterator[str]:
    """The URL of the store: a demonstration without one leaves nothing behind."""
    if storage is not None or not demo:
        yield storage or DEFAULT_STORAGE
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="doral-demo-") as folder:
        yield f"sqlite:///{quote(folder)}/campaigns.db"


def _refuse_wrong_demo(settings: ServiceSettings) -> None:
    """Whoever has the link of a demonstration may do everything in it: it is for this machine alone."""
    if not settings.is_demo:
        return
    from doral.wire.values import is_loopback

    if not is_loopback(settings.host):
        raise InvalidValue("host", settings.host, "a demonstration is for this machine alone: leave --host out")
    if settings.public_url is not None:
        remedy = "a demonstration is for this machine alone: leave --public-url out"
        raise InvalidValue("public_url", settings.public_url, remedy)
    from doral.live.store import open as open_store
    from doral.service.demo.history import refuse_others
    from doral.service.demo.population import populations

    with open_store(settings.storage) as store:
        refuse_others(store, populations())


def _run(settings: ServiceSettings) -> None:
    from doral.service.demo.feeding import PATH
    from doral.service.operations.server import serve as run

    def tell(url: str) -> None:
        """Where it is, once it is there; and the first key, which nobody could ask for otherwise."""
        address = (settings.public_url or url).rstrip("/")
        key = _first_key(settings.storage)
        if settings.demo_token is None:
            typer.echo(f"page  {address}/")
        else:
            typer.echo(f"page  {address}{PATH}?token={settings.demo_token}")
        if key is not None:
            typer.echo(f"key   {key}")
            if settings.demo_token is None:
                hint = "of an administrator, shown this once: keep it, and make others with `doral keys create`"
            else:
                hint = "of an administrator: for programs, and to sign in with other browsers"
            typer.echo(f"      {hint}")
        elif not _has_administrator(settings.storage):
            say("doral: no key of an administrator is valid: `doral keys create NAME --role admin` makes one")
        if settings.demo_token is not None:
            typer.echo("The link signs one browser in, once. People come by themselves; Ctrl-C ends it.")
        sys.stdout.flush()

    run(settings, when_ready=tell)


def _first_key(storage: str) -> str | None:
    from doral.live.store import open as open_store
    from doral.service.access.keys import make_first_key

    with open_store(storage) as store:
        return make_first_key(store.books, time.time())


def _has_administrator(storage: str) -> bool:
    """Whether somebody can do everything. Where another key was made before the first start, none may have it."""
    from doral.live.store import open as open_store
    from doral.service.access.keys import is_administrator

    with open_store(storage) as store:
        return any(is_administrator(one, time.time()) for one in store.books.all_keys())
