"""Forms as every page has them: a label, a help text and the mistake at each field; what was typed stays.

Nothing here needs a script. Words that come from outside are escaped here, and nowhere else.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from doral.errors import DoralError, InvalidValue, shown
from doral.service.access.keys import Caller
from doral.service.pages.shell import csrf_field

KEY_FIELD = "key"
_KEY_BYTES = 18
_EXACT = 2.0**53


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


# --- fields -----------------------------------------------------------------------------------------------------------


def attributes(values: Mapping[str, str | bool | None]) -> str:
    """Of an element: escaped; what is None or False is left out, what is True stands alone."""
    made = []
    for name, value in values.items():
        if value is True:
            made.append(f" {name}")
        elif value is not None and value is not False:
            made.append(f' {name}="{escape(value)}"')
    return "".join(made)


def _told(id_: str, *, help_: str, mistakes: Mistakes) -> dict[str, str | bool | None]:
    """What a field says of its help and its mistake to those who do not see them."""
    words = mistakes.by_field.get(id_)
    about = [f"{id_}-mistake"] * bool(words) + [f"{id_}-help"] * bool(help_)
    return {
        "aria-describedby": " ".join(about) or None,
        "aria-invalid": "true" if words else None,
        "autofocus": mistakes.first == id_,
    }


def wrapped(id_: str, label: str, control: str, *, help_: str = "", mistakes: Mistakes, look: str = "") -> str:
    """A control with its label above, and its help and its mistake around it."""
    words = mistakes.by_field.get(id_)
    wrong = f'<p class="mistake" id="{escape(id_)}-mistake">{escape(words)}</p>' if words else ""
    help_line = f'<p class="help" id="{escape(id_)}-help">{escape(help_)}</p>' if help_ else ""
    looks = " ".join(one for one in ("field", look, "wrong" if words else "") if one)
    return f'<div class="{looks}"><label for="{escape(id_)}">{escape(label)}</label>{help_line}{control}{wrong}</div>'


def text_field(
    id_: str,
    label: str,
    *,
    value: str = "",
    help_: str = "",
    mistakes: Mistakes,
    kind: str = "text",
    name: str | None = None,
    is_required: bool = False,
    look: str = "",
    more: Mapping[str, str | bool | None] | None = None,
) -> str:
    """One line of text, a number, a date, or a secret."""
    given: dict[str, str | bool | None] = {
        "id": id_,
        "name": name or id_,
        "type": kind,
        "value": None if kind in ("file", "password") else value,
        "required": is_required,
        "autocomplete": "off",
        **_told(id_, help_=help_, mistakes=mistakes),
        **(more or {}),
    }
    return wrapped(id_, label, f"<input{attributes(given)}>", help_=help_, mistakes=mistakes, look=look)


def area_field(id_: str, label: str, *, value: str = "", help_: str = "", mistakes: Mistakes, rows: int = 3) -> str:
    """Several lines of text."""
    given: dict[str, str | bool | None] = {
        "id": id_,
        "name": id_,
        "rows": str(rows),
        "spellcheck": "false",
        **_told(id_, help_=help_, mistakes=mistakes),
    }
    control = f"<textarea{attributes(given)}>\n{escape(value)}</textarea>"
    return wrapped(id_, label, control, help_=help_, mistakes=mistakes)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of several; those of one group stand together."""

    value: str
    words: str
    group: str = ""


def select_field(
    id_: str,
    label: str,
    choices: Sequence[Choice],
    *,
    value: str = "",
    help_: str = "",
    mistakes: Mistakes,
    look: str = "",
) -> str:
    """One of several; the first where none is chosen. A value that is none of them is shown as chosen nowhere."""
    made, group = [], ""
    for one in choices:
        if one.group != group:
            made.append(f"{'</optgroup>' if group else ''}<optgroup{attributes({'label': one.group})}>")
            group = one.group
        is_chosen = one.value == value
        made.append(f"<option{attributes({'value': one.value, 'selected': is_chosen})}>{escape(one.words)}</option>")
    made.append("</optgroup>" if group else "")
    given = {"id": id_, "name": id_, **_told(id_, help_=help_, mistakes=mistakes)}
    control = f"<select{attributes(given)}>{''.join(made)}</select>"
    return wrapped(id_, label, control, help_=help_, mistakes=mistakes, look=look)


def hidden(name: str, value: str) -> str:
    """Something that travels with the form."""
    return f"<input{attributes({'type': 'hidden', 'name': name, 'value': value})}>"


def button(words: str, *, name: str | None = None, value: str | None = None, look: str = "") -> str:
    """What sends the form."""
    given = {"type": "submit", "name": name, "value": value, "class": look or None}
    return f"<button{attributes(given)}>{escape(words)}</button>"


def form(
    action: str,
    caller: Caller | None,
    inner: str,
    *,
    look: str = "",
    is_upload: bool = False,
    more: Mapping[str, str | bool | None] | None = None,
) -> str:
    """A form of this caller's page. Mistakes are told by us and not by the browser, in the same words for everybody."""
    given: dict[str, str | bool | None] = {
        "method": "post",
        "action": action,
        "class": look or None,
        "enctype": "multipart/form-data" if is_upload else None,
        "accept-charset": "utf-8",
        "novalidate": True,
        **(more or {}),
    }
    token = "" if caller is None else csrf_field(caller)
    return f"<form{attributes(given)}>{token}{inner}</form>"


def mistakes_summary(mistakes: Mistakes) -> str:
    """All that is wrong, above the form, each a link to its field."""
    if not mistakes:
        return ""
    many = len(mistakes.by_field)
    lines = "".join(
        f'<li><a href="#{escape(id_)}">{escape(mistakes.labels[id_])}</a>: {escape(words)}</li>'
        for id_, words in mistakes.by_field.items()
    )
    title = "One thing has to be put right:" if many == 1 else f"{many} things have to be put right:"
    return f'<div class="told bad" role="alert"><p><strong>{title}</strong></p><ul>{lines}</ul></div>'


def facts_list(facts: Iterable[tuple[str, str]]) -> str:
    """Names and values in two columns; plain text."""
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{rows}</dl>'
