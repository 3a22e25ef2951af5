"""Forms: what is wrong with one, and what one has sent, of bounded size. Their fields are macros of `forms.html`."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import Request
from starlette.datastructures import FormData, UploadFile

from doral.errors import DoralError, InvalidValue, shown

KEY_FIELD = "key"
_KEY_BYTES = 18
_EXACT = 2.0**53
MAX_FILE_BYTES = 4 * 1024 * 1024  # a problem of 10,000 arms is smaller


def fresh_key() -> str:
    """The name of one request, made when its form is shown: sent twice, it is done once."""
    return secrets.token_urlsafe(_KEY_BYTES)


@dataclass(kw_only=True)
class Mistakes:
    """What is wrong with a form, by field; the first that is found of each field is kept."""

    by_field: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def add(self, field: str, words: str, *, label: str = "") -> None:
        """Something is wrong with a field; `label` is what people call it."""
        self.by_field.setdefault(field, words)
        self.labels.setdefault(field, label or field)

    def take(self, field: str, error: DoralError, *, label: str = "") -> None:
        """The same, in the words of an error."""
        self.add(field, words_of(error), label=label)

    def __bool__(self) -> bool:
        return bool(self.by_field)

    @property
    def first(self) -> str | None:
        """The field that gets the focus."""
        return next(iter(self.by_field), None)


def words_of(error: DoralError, *, is_at_field: bool = True) -> str:
    """What a person reads: next to the field, which is in sight, the value and the remedy alone."""
    if isinstance(error, InvalidValue) and is_at_field:
        remedy = error.remedy.rstrip(".")
        if error.value is None or error.value == "":
            return f"{remedy[:1].upper()}{remedy[1:]}."
        return f"{_as_typed(error.value)}: {remedy}."
    words = str(error)
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith(('.', '?')) else '.'}"


def _as_typed(value: object) -> str:
    """People type 7 and no 7.0, and no quotes."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return f"{value:.0f}"
    return shown(value)[1:-1] if isinstance(value, str) else shown(value)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of several; those of one group stand together."""

    value: str
    words: str
    group: str = ""


# --- what was sent ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SentFile:
    """A file that was chosen."""

    name: str
    content: bytes
    is_too_large: bool


@dataclass(frozen=True, kw_only=True)
class Sent:
    """The fields of a form by name, each as often as it was sent."""

    texts: Mapping[str, list[str]]
    files: Mapping[str, SentFile]

    def one(self, name: str) -> str:
        """A field, without blanks around it; nothing where it was not sent."""
        return next(iter(self.many(name)), "")

    def raw(self, name: str) -> str:
        """A field as it was sent."""
        return next(iter(self.texts.get(name, ())), "")

    def many(self, name: str) -> list[str]:
        """A field of which there are several, in their order."""
        return [one.strip() for one in self.texts.get(name, ())]


async def read_form(request: Request) -> Sent:
    """What was sent. Whatever else has read it before, it is there still."""
    form = await request.form()
    try:
        return await _read(form)
    finally:
        await form.close()


async def _read(form: FormData) -> Sent:
    texts: dict[str, list[str]] = {}
    files: dict[str, SentFile] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            if value.filename:
                content = await value.read(MAX_FILE_BYTES + 1)
                is_too_large = len(content) > MAX_FILE_BYTES
                files[name] = SentFile(name=value.filename, content=content, is_too_large=is_too_large)
        else:
            texts.setdefault(name, []).append(value)
    return Sent(texts=texts, files=files)
