"""What a form has sent: texts and files, of bounded size, whatever the browser claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request
from starlette.datastructures import FormData, UploadFile

MAX_FILE_BYTES = 4 * 1024 * 1024  # a problem of 10,000 arms is smaller


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
