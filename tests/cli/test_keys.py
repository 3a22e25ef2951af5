"""`doral keys`: made, listed and revoked in a shell; a key is printed once, alone."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import doral
from doral.cli.app import app
from doral.service.access.keys import read_key
from tests.service.harness import PROBLEM


class Shell:
    """Calls `doral keys` on a store; gives what it prints, and what it says to the person."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "c.db"
        self.storage = f"sqlite:///{self.path}"

    def __call__(self, *words: str, code: int = 0) -> tuple[str, str]:
        result = CliRunner().invoke(app, ["keys", words[0], "--storage", self.storage, *words[1:]])
        assert result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.stdout, result.stderr


@pytest.fixture
def keys(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_key_is_printed_alone_and_kept_nowhere(keys: Shell) -> None:
    printed, said = keys("create", "shop", "--role", "decide", "--role", "feedback", "--campaign", "kits")
    key = read_key(printed.removesuffix("\n"))
    assert key is not None
    assert key.secret not in said
    assert "no campaign 'kits' yet" in said
    for file in keys.path.parent.iterdir():
        assert key.secret.encode() not in file.read_bytes()
    with doral.open(keys.storage) as store:
        row = store.books.key(key.id)
        assert row is not None
        assert key.matches(row)
        assert (row.name, row.roles, row.campaigns, row.expires_at) == ("shop", ("decide", "feedback"), ("kits",), None)
        [act] = store.books.acts()
        assert (act.act, act.address, json.loads(act.details)["id"]) == ("key created", "command line", key.id)
        store.create("kits", PROBLEM)
    _, said = keys("create", "other", "--role", "read", "--campaign", "kits")
    assert "no campaign" not in said


def test_keys_are_listed_with_what_became_of_them(keys: Shell) -> None:
    made = json.loads(keys("create", "long", "--role", "admin", "--expires", "90d", "--json")[0])
    assert made["expires_at"] == pytest.approx(time.time() + 90 * 86_400, abs=60)
    keys("create", "short", "--role", "read", "--expires", "0.001s")
    time.sleep(0.01)
    listed, _ = keys("list")
    assert made["key"] not in listed
    heads, *lines = listed.splitlines()
    assert heads.split() == ["ID", "Name", "Roles", "Campaigns", "Created", "Expires", "State"]
    assert [line.split()[-1] for line in lines] == ["valid", "expired"]
    assert keys("revoke", made["id"]) == (f"revoked {made['id']} (long)\n", "")
    assert keys("revoke", made["key"])[0] == f"{made['id']} was revoked before\n"
    found = json.loads(keys("list", "--json")[0])
    assert [(one["name"], one["state"]) for one in found] == [("long", "revoked"), ("short", "expired")]
    assert not any("digest" in one or "key" in one for one in found)
    acts = [json.loads(line) for line in keys("log", "--json")[0].splitlines()]
    assert [(one["act"], one["details"]["name"]) for one in acts] == [
        ("key revoked", "long"),
        ("key created", "short"),
        ("key created", "long"),
    ]
    assert "key revoked" in keys("log", "-n", "1")[0].splitlines()[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--role", "boss"), "unknown role 'boss'"),
        (("--role", "read", "--expires", "90"), "--expires '90':"),
        (("--role", "read", "--expires", "0d"), "--expires"),
        (("--role", "read", "--expires", "2001-01-01T00:00Z"), "--expires"),
        (("--role", "read", "--expires", "soon"), "--expires 'soon':"),
        (("--role", "read", "--campaign", ""), "name of a campaign"),
    ],
)
def test_what_is_wrong_is_said_before_a_file_is_made(keys: Shell, words: tuple[str, ...], said: str) -> None:
    assert said in keys("create", "shop", *words, code=2)[1]
    assert not keys.path.exists()


def test_a_key_needs_a_role_and_a_name(keys: Shell) -> None:
    keys("create", "shop", code=2)
    assert "name of a key" in keys("create", "", "--role", "read", code=2)[1]


def test_a_store_that_is_not_there_and_a_key_that_is_none(keys: Shell) -> None:
    assert "c.db" in keys("list", code=1)[1]
    keys("create", "shop", "--role", "read")
    assert "unknown key 'ffff'" in keys("revoke", "ffff", code=2)[1]
