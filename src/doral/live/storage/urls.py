"""Where a store is: the URL, taken apart once. What is shown of it never holds a password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from doral.errors import InvalidValue

_HIDDEN = "..."
_SECRETS = frozenset(("password", "sslpassword", "oauth_client_secret", "scram_client_key"))
_SQLITE_FORM = "must be sqlite:///file.db, or sqlite:////full/path/file.db"
_POSTGRES_FORM = "must be postgresql://user:password@host:port/database"
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:(//)?")


@dataclass(frozen=True, kw_only=True)
class SqliteFile:
    """A file, by its full path: a later change of the working directory changes nothing."""

    path: Path

    @property
    def shown(self) -> str:
        return f"sqlite:///{quote(str(self.path))}"


@dataclass(frozen=True, kw_only=True)
class PostgresDatabase:
    """What libpq is told, by its names."""

    parameters: Mapping[str, str] = field(repr=False)
    shown: str

    def without_secrets(self, text: str) -> str:
        """A message of the driver or the server, which may quote what it was given."""
        for name in _SECRETS:
            secret = self.parameters.get(name, "")
            if secret:
                for form in (secret, quote(secret), quote(secret, safe="")):
                    text = text.replace(form, _HIDDEN)
        return text


def redacted(url: object) -> object:
    """What may be shown of something that should have been a URL, and may hold a password anywhere."""
    if not isinstance(url, str):
        return url if url is None or isinstance(url, int | float) else f"<{type(url).__name__}>"
    scheme = _SCHEME.match(url)
    if scheme and scheme.group() == "sqlite://" and _is_plain_path(url[len("sqlite://") :]):
        return url
    if scheme:
        return url if scheme.end() == len(url) else scheme.group() + _HIDDEN
    return url if re.fullmatch(r"[\w./\\-]*", url) else _HIDDEN


def _is_plain_path(text: str) -> bool:
    return not re.search(r"[@?#]", unquote(text))


def read_sqlite(url: str) -> SqliteFile:
    """The file of sqlite:///relative.db or sqlite:////absolute.db."""
    start = "sqlite:///"
    rest = url[len(start) :]
    if not url.startswith(start) or not rest or "?" in rest or "#" in rest:
        raise InvalidValue("url", redacted(url), _SQLITE_FORM)
    if re.match(r"[^/]*:[^/]*@", unquote(rest)):
        raise InvalidValue("url", redacted(url), _SQLITE_FORM + ": there is no user and no password")
    name = _unquoted(rest, url, _SQLITE_FORM)
    if "\x00" in name:
        raise InvalidValue("url", redacted(url), _SQLITE_FORM + ": a file's name cannot hold a NUL")
    if name.endswith("/"):
        raise InvalidValue("url", redacted(url), _SQLITE_FORM + ": this names a folder")
    return SqliteFile(path=Path.cwd() / name)


def read_postgres(url: str) -> PostgresDatabase:
    """`postgresql://[user[:password]@][host[:port]][/database][?option=value&...]`, with several hosts if need be."""
    rest, _, query = url.split("://", 1)[1].partition("?")
    authority, _, database = rest.partition("/")
    user_part, at, hosts = authority.rpartition("@")
    if _NOT_IN_A_URL.search(url) or "#" in url:
        raise _refused(url, "write spaces and special characters as %20 and so on")
    if "@" in user_part or "@" in database:
        raise _refused(url, "write an @ in a user's name or a password as %40")
    parameters: dict[str, str] = {}
    if at:
        user, colon, password = user_part.partition(":")
        if ":" in password:
            raise _refused(url, "write a colon in a password as %3A")
        parameters |= {"user": _plain(user, url)}
        if colon:
            parameters |= {"password": _plain(password, url)}
    names, ports = _hosts(hosts, url)
    parameters |= {"host": names, "port": ports, "dbname": _plain(database, url)}
    for option in query.split("&") if query else []:
        name, equals, value = option.partition("=")
        if not equals:
            raise _refused(url, "options are ?name=value&name=value")
        parameters[_plain(name, url)] = _plain(value, url)
    given = {name: value for name, value in parameters.items() if value.strip(",")}
    return PostgresDatabase(parameters=given, shown=_shown(given))


def _refused(url: str, why: str) -> InvalidValue:
    return InvalidValue("url", redacted(url), f"{_POSTGRES_FORM}: {why}")


def _plain(text: str, url: str) -> str:
    plain = _unquoted(text, url, _POSTGRES_FORM)
    if "\x00" in plain:
        raise _refused(url, "it cannot hold a NUL")
    return plain


def _unquoted(text: str, url: str, form: str) -> str:
    plain = None
    if not _BAD_ESCAPE.search(text):
        try:
            plain = unquote(text, errors="strict")
            plain.encode()
        except UnicodeError:
            plain = None
    if plain is None:  # raised here, so that the error has no context that quotes the text
        raise InvalidValue("url", redacted(url), f"{form}: a % begins an escape as %20, and a % itself is %25")
    return plain


def _hosts(text: str, url: str) -> tuple[str, str]:
    names, ports = [], []
    for one in text.split(","):
        found = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*)(?::([0-9]*))?", one)
        if found is None:
            raise _refused(url, "the host is a name or an [IPv6 address], and the port a number")
        port = found[2] or ""
        if port and not 1 <= int(port[:6]) <= 65535:
            raise _refused(url, "the port is a number from 1 to 65535")
        names.append(_plain(found[1].strip("[]"), url))
        ports.append(port)
    return ",".join(names), ",".join(ports)


def _shown(parameters: Mapping[str, str]) -> str:
    user, host, port = (parameters.get(name, "") for name in ("user", "host", "port"))
    where = f"{quote(user)}@" if user else ""
    where += quote(host, safe=":,") + (f":{port}" if port.strip(",") else "")
    return f"postgresql://{where}/{quote(parameters.get('dbname', ''))}"
