"""What the tests of reports share."""

from __future__ import annotations

from html.parser import HTMLParser

from doral.experiments.kit.batches import Batch


class Silent:
    """Wants to know nothing about progress."""

    def begin(self, *, rounds: int) -> None: ...

    def batch(self, batch: Batch, *, is_kept: bool) -> None: ...

    def advance(self, rounds: int) -> None: ...


class Page(HTMLParser):
    """Collects what a test asks about, and complains about tags that do not match."""

    VOID = frozenset({"meta", "br", "img", "input", "link", "source"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def attributes(self, name: str) -> list[str]:
        return [value or "" for _, attributes in self.tags for key, value in attributes.items() if key == name]

    def count(self, tag: str) -> int:
        return sum(one == tag for one, _ in self.tags)
