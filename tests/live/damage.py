"""Logs that somebody has tampered with: by SQL, and if he is thorough with a chain that fits again."""

from __future__ import annotations

from doral.live.campaign import Campaign
from doral.live.events.row import COLUMNS, Row, beginning, hash_key, link
from doral.live.storage.sql import _connect, _read_url


def rewrite(campaign: Campaign, *statements: str, with_chain: bool = False) -> None:
    """Run SQL on the campaign's database, and have the campaign forget what it knows."""
    session = campaign._session
    connection = session._open()._connection  # type: ignore[attr-defined]
    for sql in statements:
        sql = sql.replace(" events", f" {connection.schema}events")
        connection.execute(sql.replace("%", "%%") if connection.placeholder == "%s" else sql)
    if with_chain:
        _seal_anew(connection, session.row.id, session.row.tag)
    session.close()


def seal_by_url(url: str) -> None:
    """The chain of the first campaign computed anew, whatever the log says."""
    connection = _connect(_read_url(url))
    try:
        rows = connection.execute(f"SELECT id, tag FROM {connection.schema}campaigns WHERE id = 1")
        for campaign_id, tag in rows:
            _seal_anew(connection, campaign_id, tag)
    finally:
        connection.close()


def _seal_anew(connection: object, campaign_id: int, tag: str) -> None:
    run, schema, mark = connection.execute, connection.schema, connection.placeholder  # type: ignore[attr-defined]
    of_campaign = f"WHERE campaign_id = {campaign_id:d}"
    rows = run(f"SELECT {', '.join(COLUMNS)} FROM {schema}events {of_campaign} ORDER BY sequence")
    head, salt = beginning(tag), b""
    for event in map(Row._make, rows):
        if event.key is not None:
            event = event._replace(key_hash=hash_key(salt, event.key))
        head = link(head, event)
        salt = salt or head
        run(
            f"UPDATE {schema}events SET chain = {mark}, key_hash = {mark} {of_campaign} AND sequence = {mark}",
            (head, event.key_hash, event.sequence),
        )
    run(
        f"UPDATE {schema}campaigns SET head = {mark}, last_sequence = {mark} WHERE id = {campaign_id:d}",
        (head, rows[-1][0]),
    )
