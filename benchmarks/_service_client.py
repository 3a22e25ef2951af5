"""A client that goes on until it is answered: every request has a key, so that asking again changes nothing."""

from __future__ import annotations

import http.client
import json
import time
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

_AGAIN_AFTER_S = (0.05, 0.1, 0.2, 0.4)
_GIVES_UP_AFTER_S = 60.0
_ANSWERS_WITHIN_S = 10.0


class Client:
    """One connection, used by one thread."""

    def __init__(self, url: str, key: str, campaign: str) -> None:
        self._host = urlsplit(url).netloc
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._campaign = campaign
        self._connection: http.client.HTTPConnection | None = None
        self.retries = 0

    def decide(self, context: str, *, key: str) -> dict[str, Any]:
        return self._ask("decisions", {"context": context, "key": key})

    def decide_many(self, arrivals: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("decisions/batch", {"arrivals": arrivals})["decisions"]
        return found

    def feedback(self, answer: dict[str, Any]) -> dict[str, Any]:
        return self._ask("feedback", answer)

    def feedback_many(self, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
        results = self._ask("feedback/batch", {"answers": answers})["results"]
        return [one["decision"] for one in results]

    def cancel(self, decision_id: str, *, key: str) -> dict[str, Any]:
        return self._ask(f"decisions/{decision_id}/cancel", {"key": key})

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        began, tries = time.monotonic(), 0
        text = json.dumps(body)
        while True:
            try:
                return self._once(path, text)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if time.monotonic() - began > _GIVES_UP_AFTER_S:
                    raise RuntimeError(f"{path}: no answer within {_GIVES_UP_AFTER_S:g} s") from error
                time.sleep(_AGAIN_AFTER_S[min(tries, len(_AGAIN_AFTER_S) - 1)])
                tries += 1
                self.retries += 1

    def _once(self, path: str, text: str) -> dict[str, Any]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self._host, timeout=_ANSWERS_WITHIN_S)
        self._connection.request("POST", f"/v1/campaigns/{self._campaign}/{path}", text, self._headers)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status in (429, 503):
            raise http.client.HTTPException(said.decode(errors="replace"))
        if answer.status not in (200, 201):
            raise RuntimeError(f"{path}: {answer.status} {said.decode(errors='replace')}")
        found: dict[str, Any] = json.loads(said)
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
