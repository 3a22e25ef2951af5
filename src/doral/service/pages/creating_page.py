"""The page on which a campaign is described: by a form, or by a file."""

from __future__ import annotations

from html import escape

from doral.engine.options import make_policy as policy_by_name
from doral.service.access.keys import Caller
from doral.service.pages.creating_values import LABELS, LEAST_ARM_ROWS, LEAST_CONTEXT_ROWS, Typed
from doral.service.pages.forms import (
    Choice,
    Mistakes,
    area_field,
    attributes,
    button,
    form,
    mistakes_summary,
    select_field,
    text_field,
)
from doral.simulation.catalogue.descriptions import PRESET_WORDS

_DECIMAL = {"inputmode": "decimal"}
_WHOLE = {"inputmode": "numeric"}
EMPTY = Typed()
_RARE = (
    "feedback",
    "paid",
    "counted",
    "reserve",
    "return_at_least",
    "baseline",
    "reward_low",
    "reward_high",
    "clock",
    "options",
)
_USUAL = ("", "explicit", "always", "within_deadline", "seconds")

_FEEDBACK = (
    Choice(value="explicit", words="come, too: silence means that nothing is known yet"),
    Choice(value="silent", words="never come: no news and a reward of 0 look the same, as with conversions"),
)
_PAID = (
    Choice(value="always", words="for every use of an arm"),
    Choice(value="on_answer", words="only when an answer comes within its deadline"),
)
_COUNTED = (
    Choice(value="within_deadline", words="all that come within their deadline, also after the last arrival"),
    Choice(value="by_end", words="only those that have come by the end"),
)
_CLOCK = (
    Choice(value="seconds", words="seconds: deadlines are real time"),
    Choice(value="rounds", words="rounds: one for each arrival"),
)


def live_policies() -> list[Choice]:
    """The presets that a campaign can run, each with its line: those that know the truth only simulate."""
    return [
        Choice(value=name, words=f"{name}: {words}", group=group)
        for group, names in PRESET_WORDS.items()
        for name, words in names.items()
        if _can_run(name)
    ]


def _can_run(name: str) -> bool:
    options = policy_by_name(name)
    return "oracle" not in (options.return_probability, options.sampling) and options.censoring != "instant"


def describing(
    caller: Caller,
    *,
    typed: Typed = EMPTY,
    mistakes: Mistakes | None = None,
    file_mistakes: Mistakes | None = None,
    file_values: Typed = EMPTY,
    more_rows: int = 0,
) -> str:
    """The whole page. What was typed is kept; a file has to be chosen again, as browsers have it."""
    mistakes, file_mistakes = mistakes or Mistakes(), file_mistakes or Mistakes()
    return (
        "<h1>New campaign</h1>"
        '<p class="lead">Describe what the budget is for. Nothing is created before you have seen it in words and '
        'said yes. You have a file? <a href="#from-file">Start from that.</a></p>'
        f"{mistakes_summary(mistakes)}{mistakes_summary(file_mistakes)}"
        f"{_by_form(caller, typed, mistakes, more_rows)}{_by_file(caller, file_values, file_mistakes)}"
    )


def _by_form(caller: Caller, typed: Typed, mistakes: Mistakes, more_rows: int) -> str:
    name = text_field(
        "name",
        LABELS["name"],
        value=typed.one("name"),
        help_="How people and programs will call it. It stays as it is.",
        mistakes=mistakes,
        is_required=True,
        more={"maxlength": "200"},
    )
    parts = [
        '<button type="submit" name="step" value="check" hidden>Check</button>',  # what Enter presses in any field
        _panel("The campaign", name),
        _panel("Arms", _arms(typed, mistakes, more_rows), id_="arms", mistakes=mistakes),
        _panel("Contexts", _contexts(typed, mistakes, more_rows), id_="contexts", mistakes=mistakes),
        _panel("Budget and time", _money_and_time(typed, mistakes)),
        _panel("Who decides", _policy(typed, mistakes)),
        _more(typed, mistakes),
        f'<div class="send">{button("Check", name="step", value="check", look="primary")}'
        '<p class="help">You then see it in words, and can still go back.</p></div>',
    ]
    return form("/new", caller, "".join(parts), look="describe", more={"id": "by-form"})


def _panel(title: str, html: str, *, id_: str = "", mistakes: Mistakes | None = None) -> str:
    words = mistakes.by_field.get(id_) if mistakes is not None else None
    wrong = f'<p class="mistake" id="{id_}-mistake">{escape(words)}</p>' if words else ""
    given = attributes(
        {
            "id": id_ or None,
            "tabindex": "-1" if words else None,
            "aria-describedby": f"{id_}-mistake" if words else None,
            "autofocus": mistakes is not None and bool(id_) and mistakes.first == id_,
        }
    )
    return f'<fieldset class="panel"{given}><legend>{escape(title)}</legend>{wrong}{html}</fieldset>'


# --- arms and contexts ------------------------------------------------------------------------------------------------


def _arms(typed: Typed, mistakes: Mistakes, more_rows: int) -> str:
    rows = max(LEAST_ARM_ROWS, len(typed.arms) + more_rows)
    table = _rows(
        "arm",
        (("name", "Name", {}), ("cost", "Cost of one use", _DECIMAL)),
        [*typed.arms, *[("", "")] * (rows - len(typed.arms))],
        mistakes,
        placeholders=(("letter", "1"), ("phone call", "2")),
    )
    return (
        '<p class="help">What the budget can be spent on. Costs are in the unit of the budget; an empty cost is 1, '
        f"and rows without a name and a cost are passed over.</p>{table}"
    )


def _contexts(typed: Typed, mistakes: Mistakes, more_rows: int) -> str:
    rows = max(LEAST_CONTEXT_ROWS, len(typed.contexts) + more_rows)
    table = _rows(
        "context",
        (("name", "Name", {}), ("share", "Share of arrivals", _DECIMAL)),
        [*typed.contexts, *[("", "")] * (rows - len(typed.contexts))],
        mistakes,
        placeholders=(("younger", "60%"), ("older", "40%")),
    )
    return (
        '<p class="help">Who arrives. Give every share (0.6 or 60%), or none: they are then learned. Leave all empty '
        f"if everyone is alike.</p>{table}"
    )


def _rows(
    kind: str,
    columns: tuple[tuple[str, str, dict[str, str]], ...],
    rows: list[tuple[str, str]],
    mistakes: Mistakes,
    *,
    placeholders: tuple[tuple[str, str], ...],
) -> str:
    """A table with a field in each cell; the script adds and removes rows, without it there is a button for more."""
    heads = "".join(f'<th scope="col">{escape(words)}</th>' for _, words, _ in columns)
    body = []
    for place, row in enumerate(rows):
        examples = placeholders[place] if place < len(placeholders) else ("", "")
        cells = [
            _cell(kind, column, place, value, mistakes, example)
            for column, value, example in zip(columns, row, examples, strict=True)
        ]
        body.append(f"<tr>{''.join(cells)}</tr>")
    where = {"type": "submit", "name": "step", "value": "rows", "class": "quiet", "formaction": f"/new#{kind}s"}
    more = f"<button{attributes(where)}>More {kind}s</button>"
    return (
        f'<table class="rows" data-rows="{kind}"><thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table>'
        f'<p class="under">{more}</p>'
    )


def _cell(
    kind: str, column: tuple[str, str, dict[str, str]], place: int, value: str, mistakes: Mistakes, example: str
) -> str:
    name, words, more = column
    id_ = f"{kind}-{name}-{place}"
    wrong = mistakes.by_field.get(id_)
    given: dict[str, str | bool | None] = {
        "id": id_,
        "name": f"{kind}_{name}",
        "type": "text",
        "value": value,
        "aria-label": f"{kind.capitalize()} {place + 1}: {words.lower()}",
        "placeholder": example or None,
        "autocomplete": "off",
        "aria-describedby": f"{id_}-mistake" if wrong else None,
        "aria-invalid": "true" if wrong else None,
        "autofocus": mistakes.first == id_,
        **more,
    }
    told = f'<p class="mistake" id="{id_}-mistake">{escape(wrong)}</p>' if wrong else ""
    return f"<td><input{attributes(given)}>{told}</td>"


# --- the rest ---------------------------------------------------------------------------------------------------------


def _money_and_time(typed: Typed, mistakes: Mistakes) -> str:
    is_date = typed.one("end") == "date"
    budget = text_field(
        "budget",
        LABELS["budget"],
        value=typed.one("budget"),
        help_="What can be spent in all, in the unit of the costs.",
        mistakes=mistakes,
        is_required=True,
        more={**_DECIMAL, "placeholder": "3000"},
    )
    deadline = text_field(
        "deadline",
        LABELS["deadline"],
        value=typed.one("deadline"),
        help_="An answer counts within this time: 14d, 36h, 90min.",
        mistakes=mistakes,
        is_required=True,
        more={"placeholder": "14d"},
    )
    arrivals = text_field(
        "horizon",
        LABELS["horizon"],
        value=typed.one("horizon"),
        help_="How many are expected to arrive in all.",
        mistakes=mistakes,
        more={**_WHOLE, "placeholder": "4000"},
    )
    day = text_field(
        "until",
        LABELS["until"],
        value=typed.one("until"),
        help_="That day is included, in UTC.",
        mistakes=mistakes,
        kind="date",
    )
    expected = text_field(
        "expected_arrivals",
        LABELS["expected_arrivals"],
        value=typed.one("expected_arrivals"),
        help_="A first guess, if you have one; the pace is learned.",
        mistakes=mistakes,
        more=_WHOLE,
    )
    return (
        f'<div class="pair">{budget}{deadline}</div>'
        '<fieldset class="end"><legend>The campaign ends</legend>'
        f"{_radio('end', 'arrivals', 'after a number of arrivals', is_chosen=not is_date)}"
        f"{_radio('end', 'date', 'on a date', is_chosen=is_date)}"
        f'<div class="pair if-arrivals">{arrivals}</div><div class="pair if-date">{day}{expected}</div></fieldset>'
    )


def _radio(name: str, value: str, words: str, *, is_chosen: bool) -> str:
    id_ = f"{name}-{value}"
    given = attributes({"type": "radio", "id": id_, "name": name, "value": value, "checked": is_chosen})
    return f'<label class="choice" for="{id_}"><input{given}> {escape(words)}</label>'


def _policy(typed: Typed, mistakes: Mistakes) -> str:
    return select_field(
        "policy",
        LABELS["policy"],
        live_policies(),
        value=typed.one("policy"),
        help_="The first is right unless you know why not.",
        mistakes=mistakes,
        look="wide",
    )


def _more(typed: Typed, mistakes: Mistakes) -> str:
    def select(name: str, choices: tuple[Choice, ...], help_: str = "") -> str:
        value = typed.one(name)
        return select_field(name, LABELS[name], choices, value=value, help_=help_, mistakes=mistakes, look="wide")

    def text(name: str, help_: str, more: dict[str, str] | None = None) -> str:
        value = typed.one(name)
        return text_field(name, LABELS[name], value=value, help_=help_, mistakes=mistakes, more=dict(more or {}))

    is_open = any(name in mistakes.by_field or typed.one(name) not in _USUAL for name in _RARE)
    options = area_field(
        "options",
        LABELS["options"],
        value=typed.one("options"),
        help_="NAME=VALUE, one on each line, such as exploration=0.5; `doral policies NAME` lists them.",
        mistakes=mistakes,
    )
    reserve = text(
        "reserve", "Where costs are paid on answer: 1, or with which probability the budget holds.", _DECIMAL
    )
    least = text("return_at_least", "Reward that a unit of budget must bring; otherwise it is kept.", _DECIMAL)
    low = text("reward_low", "An answer below it is refused as a slip.", _DECIMAL)
    high = text("reward_high", "And one above this.", _DECIMAL)
    skipping = (
        "Empty: nothing. A number where it is known; observed, if it is to be learned from those who are skipped."
    )
    inner = (
        f"{select('feedback', _FEEDBACK)}{select('paid', _PAID)}{select('counted', _COUNTED)}"
        f'<div class="pair">{reserve}{least}</div>{text("baseline", skipping)}<div class="pair">{low}{high}</div>'
        f"{select('clock', _CLOCK, 'What deadlines and delays are measured in.')}{options}"
    )
    return (
        f'<details class="panel more"{" open" if is_open else ""}><summary>More options</summary>'
        '<p class="help">Each has a usual value; features of arms and of people, weights, tiers and costs by context '
        f"are for files.</p>{inner}</details>"
    )


def _by_file(caller: Caller, values: Typed, mistakes: Mistakes) -> str:
    file = text_field(
        "file",
        "File",
        help_="TOML or JSON as doral init writes it, or plan.json or problem.json of doral plan.",
        mistakes=mistakes,
        kind="file",
        is_required=True,
        look="wide",
        more={"accept": ".toml,.json,application/json"},
    )
    name = text_field(
        "file-name",
        "Name",
        name="name",
        value=values.one("name"),
        help_="Of the campaign; empty: as the file is called.",
        mistakes=mistakes,
        more={"maxlength": "200"},
    )
    policy = select_field(
        "file-policy",
        "Policy",
        [Choice(value="", words="as the plan advises; otherwise doral-otf"), *live_policies()],
        value=values.one("policy"),
        mistakes=mistakes,
        look="wide",
    ).replace('name="file-policy"', 'name="policy"')
    send = (
        f'<div class="send">{button("Read the file", look="primary")}'
        '<p class="help">You then see it in words, before anything is created.</p></div>'
    )
    plan = (
        '<p class="help">A plan gives its problem and the policy that it advises. What its log has taught is not in '
        "these files: <code>doral plan LOG --create NAME --storage URL</code> creates a campaign that knows it.</p>"
    )
    inner = f'<div class="panel">{file}{name}{policy}{plan}{send}</div>'
    return (
        '<section id="from-file" aria-labelledby="from-file-title"><h2 id="from-file-title">Or start from a file</h2>'
        f"{form('/new/file', caller, inner, look='describe', is_upload=True)}</section>"
    )
