"""What can go wrong between a service and whoever calls it, beyond what can go wrong with a campaign."""

from __future__ import annotations

from doral.errors import DoralError
from doral.live.errors import OutcomeUnknown


class ServiceError(DoralError):
    """The service has refused a request, or could not carry it out, for a reason that a local campaign does not have.

    Args:
        words: What is wrong, and what to do.
        code: By which programs tell it from others.
        status: Of the answer, as HTTP counts.
        retry_after_s: When to try again, where the service said so.
    """

    def __init__(self, words: str, code: str = "failed", status: int = 500, retry_after_s: float | None = None) -> None:
        super().__init__(words, code, status, retry_after_s)
        self.code, self.status, self.retry_after_s = code, status, retry_after_s

    def __str__(self) -> str:
        return str(self.args[0])


class NotAllowed(ServiceError):
    """The key is missing, is not known any more, or does not allow this."""


class TooManyRequests(ServiceError):
    """The key has asked for more than it may; `retry_after_s` says when to ask again."""


class ServiceUnreachable(ServiceError):
    """No answer came in the time that was given, however often the request was sent again; nothing was changed."""


class RequestLost(ServiceUnreachable, OutcomeUnknown):
    """A change was sent, and no answer came: it may have happened or not.

    Ask again with the same key: it gives back what was stored, or does it now.

    Args:
        words: What is wrong, and what to do.
        key: Of the request: the caller's own, or the one that was drawn for it. Items of a batch that have no key of
            their own have this one with their place added: "KEY/0", "KEY/1" and so on. None: the request needs none,
            doing it twice is as doing it once.
    """

    def __init__(self, words: str, key: str | None = None) -> None:
        super().__init__(words, "request-lost", 504)
        self.args = (words, key)  # by which it is pickled
        self.key = key
