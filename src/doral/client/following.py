"""Events as a service sends them (`text/event-stream`), read as they come; and files that were fetched."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doral.client.calls import Call
from doral.errors import shown
from doral.live.errors import CampaignGone, StorageError

_MOST_CHARACTERS = 4_000_000  # of one event; whatever sends more is no service of ours


@dataclass(frozen=True, kw_only=True)
class CampaignEvent:
    """Something that has happened to a campaign.

    Attributes:
        sequence: Its number in the log.
        kind: What it is, in a word.
        data: What is said of it, in plain values.
    """

    sequence: int
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Feed:
    """What is asked for: events of a path, after one of them.

    `last` asks for the number of the last one that there is: whoever begins now is not to miss what happens while a
    connection is lost.
    """

    path: str
    after: int | None
    last: Call[int]


class EventReader:
    """Lines into events. It knows the last of them, after which to go on when a connection is lost."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.begin()

    def begin(self) -> None:
        """A new connection: of an event that was cut in two, nothing is kept."""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._kind, self._id = "", ""
        self._lines: list[str] = []

    @property
    def headers(self) -> dict[str, str]:
        """With which a connection asks for what follows."""
        return {"Accept": "text/event-stream", "Last-Event-ID": str(self.after)}

    def feed(self, part: bytes) -> Iterator[CampaignEvent]:
        """The events that are whole with this part; ValueError for what is no such stream."""
        text = self._rest + self._decoder.decode(part)
        if len(text) > _MOST_CHARACTERS:
            raise ValueError("an event without an end")
        whole = text.removesuffix("\r")  # a line may end in two characters, and the part between them
        lines = whole.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + text[len(whole) :]
        for line in lines:
            found = self._hear(line)
            if found is not None:
                yield found

    def _hear(self, line: str) -> CampaignEvent | None:
        if line == "":
            return self._whole()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._lines.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id":
            self._id = value
        return None

    def _whole(self) -> CampaignEvent | None:
        lines, kind, self._lines, self._kind = self._lines, self._kind, [], ""
        number, self._id = self._id, ""
        if not lines:
            return None
        data = json.loads("\n".join(lines))
        if kind == "end":
            if data.get("why") == "deleted":
                raise CampaignGone("the campaign was deleted: there are no more events")
            return None  # of this connection alone
        self.after = int(number)
        return CampaignEvent(sequence=self.after, kind=kind, data=data)


def count_rows(path: str, kind: str) -> int:
    """How many decisions are in the file; StorageError where it is not whole."""
    if kind == "csv":
        with Path(path).open(encoding="utf-8", newline="") as file:
            return max(0, sum(1 for _ in csv.reader(file)) - 1)
    import polars as pl

    try:
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except pl.exceptions.PolarsError as error:
        raise StorageError(f"what the service has sent is no whole Parquet file: {error}") from None


def refused(path: Path, error: OSError) -> StorageError:
    remedy = "nothing was written: does its folder exist, has it space, and may it be written to?"
    return StorageError(f"path = {shown(str(path))}: {error.strerror or error}; {remedy}")
