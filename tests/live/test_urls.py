"""No password in any message, whatever the URL."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import pytest

import doral
from doral.errors import DoralError, InvalidValue
from doral.live.errors import ConnectionLost
from doral.live.storage.urls import read_postgres
from tests.live import writer

SECRET = "s3cr3t"
WELL_FORMED = [  # nobody listens there
    "postgresql://user:s3cr3t@127.0.0.1:1/db",
    "postgres://user:s3cr3t@127.0.0.1:1/db",
    "postgresql://user@127.0.0.1:1/db?password=s3cr3t",
    "postgresql://127.0.0.1:1/db?user=u&password=s3cr3t&sslmode=disable",
    "postgresql://user:%73%33cr3t@127.0.0.1:1/db",
    "postgresql://user:s3cr3t%40x@127.0.0.1:1/db",
    "postgresql://user:s3cr3t@127.0.0.1:1,127.0.0.1:2/db",
    "postgresql://user:s3cr3t@[::1]:1/db",
    "postgresql://user:s3cr3t@/db?host=/nonexistent",
    "postgresql://user@127.0.0.1:1/db?sslpassword=s3cr3t",
    "postgresql://user:s3cr3t@127.0.0.1:1/db?sslmode=s3cr3t",
    "postgresql://user:s3cr3t@127.0.0.1:1/db?connect_timeout=s3cr3t",
]
MALFORMED = [
    "postgresql://user:s3cr3t@host:notaport/db",
    "postgresql://user:s3cr3t@host:99999/db",
    "postgresql://user:s3cr3t@host:1:2/db",
    "postgres://u:p@s3cr3t@h/db",
    "postgres://u:s3cr3t:more@h/db",
    "postgresql://u:p/s3cr3t@h/db",
    "postgresql://u:p?s3cr3t@h/db",
    "postgresql://u:p#s3cr3t@h/db",
    "postgresql://u:s3cr3t%zz@h/db",
    "postgresql://u:s3cr3t%00@h/db",
    "postgresql://u:s3cr3t%ff@h/db",
    "postgresql://u:s3cr3t with spaces@h/db",
    "postgresql://u:s3cr3t\n@h/db",
    "postgresql://u:s3cr3t\x00@h/db",
    "postgresql://u:s3cr3t\ud800@h/db",
    "postgresql://u:s3cr3t@[::1/db",
    "postgresql://u:s3cr3t@[nonsense]/db",
    "postgresql://u:s3cr3t@h/db?unknown=s3cr3t",
    "postgresql://u:s3cr3t@h/db?s3cr3t=1",
    "postgresql://u:s3cr3t@h/db?password",
    "postgresql+psycopg://u:s3cr3t@h/db",
    "postgresql:u:s3cr3t@h/db",
    "POSTGRESQL://u:s3cr3t@h/db",
    " postgresql://u:s3cr3t@h/db",
    "host=h user=u password=s3cr3t dbname=db",
    "PGPASSWORD=s3cr3t",
    "user:s3cr3t@host/db",
    "mysql://u:s3cr3t@h/db",
    "sqlite://u:s3cr3t@h/x.db",
    "sqlite:///u:s3cr3t@h/x.db",
    "sqlite:///u%3As3cr3t%40h/x.db",
    "sqlite:///x.db?password=s3cr3t",
    "sqlite:///x.db#s3cr3t@",
    "sqlite:u:s3cr3t@h",
    b"postgresql://u:s3cr3t@h/db",
    ["postgresql://u:s3cr3t@h/db"],
    Path("postgresql://u:s3cr3t@h/db"),
]


def shows(error: BaseException) -> str:
    """All that anybody could print of it."""
    parts = []
    one: BaseException | None = error
    while one is not None:
        parts += [str(one), repr(one), repr(one.args), repr(vars(one)), "".join(traceback.format_exception(one))]
        parts += [repr(one.__context__), repr(getattr(one, "orig", None))]
        one = one.__cause__ or one.__context__
    return "\n".join(parts)


@pytest.mark.parametrize("url", MALFORMED)
def test_a_malformed_url_is_refused_without_its_password(url: object) -> None:
    with pytest.raises(InvalidValue, match="url = ") as caught:
        doral.open(url)  # type: ignore[arg-type]
    assert SECRET not in shows(caught.value)
    assert SECRET not in str(pickle.loads(pickle.dumps(caught.value)))


@pytest.mark.parametrize("url", WELL_FORMED)
def test_a_server_out_of_reach_is_named_without_the_password(url: str) -> None:
    with pytest.raises(DoralError) as caught:
        doral.open(url, connect_timeout_s=1)
    assert isinstance(caught.value, ConnectionLost)
    assert "cannot reach PostgreSQL at postgresql://" in str(caught.value)
    assert SECRET not in shows(caught.value)
    assert SECRET not in repr(read_postgres(url))


def test_a_store_shows_where_it_is(postgres_url: str, tmp_path: Path) -> None:
    separator = "&" if "?" in postgres_url else "?"
    with doral.open(f"{postgres_url}{separator}password={SECRET}") as store:
        assert repr(store).startswith("<Store postgresql://")
        assert SECRET not in repr(store) + store._storage.url + repr(vars(store._storage))
        campaign = store.create("kits", writer.PROBLEM)
        assert SECRET not in repr(campaign)
    with doral.open(f"sqlite:///{tmp_path / 'a b.db'}".replace(" ", "%20")) as store:
        assert repr(store) == f"<Store sqlite:///{tmp_path}/a%20b.db>"


def test_what_a_url_means() -> None:
    found = read_postgres("postgresql://me:p%40ss@one:1,[::1]/my%20db?application_name=x%20y&sslmode=disable")
    assert found.parameters == {
        "user": "me",
        "password": "p@ss",
        "host": "one,::1",
        "port": "1,",
        "dbname": "my db",
        "application_name": "x y",
        "sslmode": "disable",
    }
    assert found.shown == "postgresql://me@one,::1:1,/my%20db"
    assert read_postgres("postgresql://").parameters == {}
