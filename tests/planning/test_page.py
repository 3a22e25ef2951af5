"""The page of a plan: it is whole, quiet and harmless, whatever the log says."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pytest

from doral.pages.names import columns, printable, short
from doral.planning.plan import Plan
from doral.planning.report.figures import drawings, markup_of
from doral.planning.report.page import page
from doral.planning.report.tables import tables
from doral.planning.report.text import WIDTH, text
from tests.experiments.pages import Page
from tests.planning.plans import HOSTILE_ARMS, HOSTILE_CONTEXTS, a_plan, hostile_plan, minimal_plan, wide_plan

SECTIONS = ("chart", "recommendation", "assumed", "details")
FOLDS = ("policies", "budget", "waiting", "arms", "contexts", "feedback", "reading", "made")


def html_of(plan: Plan, *, has_figures: bool = False) -> str:
    """Pictures take most of the time, and few tests look at them."""
    drawn = drawings(plan) if has_figures else ()
    return page(plan, drawn=drawn, pictures=markup_of(drawn), tables=tables(plan))


@pytest.fixture(scope="module")
def shown() -> str:
    return html_of(a_plan(), has_figures=True)


def test_the_page_begins_with_the_answer(shown: str) -> None:
    plan = a_plan()
    start = shown.index("<h1>")
    places = [shown.index(sentence, start) for sentence in plan.answer]
    assert places == sorted(places)
    assert places[-1] < shown.index("<nav") < shown.index('id="chart"') < shown.index('id="recommendation"')


def test_every_section_is_there_and_reached_from_the_contents(shown: str) -> None:
    found = Page(shown)
    ids = found.attributes("id")
    assert len(ids) == len(set(ids))
    links = {link.removeprefix("#") for link in found.attributes("href")}
    assert set(SECTIONS) <= links <= set(ids)


def test_the_page_asks_for_nothing_outside_itself_and_runs_nothing_inline(shown: str) -> None:
    found = Page(shown)
    for address in [*found.attributes("src"), *found.attributes("srcset"), *found.attributes("href")]:
        assert address.startswith(("#", "data:image/png;base64,"))
    assert not re.search(r"url\((?!#)|@import|https?://", shown)
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]


def test_every_picture_says_what_it_shows_and_has_the_colours_of_the_page(shown: str) -> None:
    found = Page(shown)
    pictures = [attributes for tag, attributes in found.tags if tag == "svg"]
    assert len(pictures) == 8
    assert all(len(one["aria-label"] or "") > 20 for one in pictures)
    drawn = "".join(re.findall(r"<svg.*?</svg>", shown, flags=re.DOTALL))
    assert "var(--ink)" in drawn
    assert "var(--colour-1)" in drawn
    assert not re.search("#(000000|ffffff)", drawn)  # neither is seen on all papers


def test_the_chart_marks_today_and_what_is_recommended(shown: str) -> None:
    chart = shown[shown.index('id="chart"') : shown.index('id="recommendation"')]
    assert "today, 200" in chart
    assert "recommended: doral-otf, 231" in chart


def test_details_are_in_folds(shown: str) -> None:
    folds = [attributes["id"] for tag, attributes in Page(shown).tags if tag == "details" and "id" in attributes]
    assert [f"{one}-details" for one in FOLDS] == folds


def test_numbers_in_the_page_are_those_of_the_plan(shown: str) -> None:
    rows = dict(re.findall(r"<tr><th scope=\"row\"[^>]*>([\w/-]+)</th><td class=\"number\"[^>]*>([\d,.]+)", shown))
    earnings = a_plan().earnings
    assert earnings is not None
    assert {one.policy: f"{one.worth.value:.3g}" for one in earnings.policies}.items() <= rows.items()


def test_hostile_names_are_words_and_nothing_else() -> None:
    made = html_of(hostile_plan())
    found = Page(made)
    assert found.count("script") == 1  # that of sorting
    assert "<img" not in made
    told = unescape(made)
    for name in (*HOSTILE_ARMS, *HOSTILE_CONTEXTS):
        assert printable(name) in told
    assert "\u202e" not in made


def test_a_plan_of_which_nothing_is_known_has_a_page() -> None:
    found = Page(html_of(minimal_plan(), has_figures=True))
    assert found.count("img") == 0
    assert {"recommendation", "assumed", "reading-details", "made-details"} <= set(found.attributes("id"))


def test_long_tables_are_cut_and_say_where_the_rest_is() -> None:
    made = html_of(wide_plan())
    assert len(re.findall("<tr>", made)) < 400
    assert re.search(r"The first 50 of [\d,]+ rows; all are in values.csv", made)


@pytest.mark.parametrize("make", [a_plan, hostile_plan, minimal_plan, wide_plan])
def test_the_answer_fits_a_terminal(make: Callable[[], Plan]) -> None:
    plan = make()
    lines = text(plan).splitlines()
    assert len(lines) < 60
    assert max(columns(line) for line in lines) <= WIDTH
    assert lines[0] == printable(plan.answer[0])
    assert all(line.isprintable() for line in lines)


def test_the_answer_for_a_terminal_names_the_advised_policy_and_what_was_lost() -> None:
    said = text(a_plan())
    assert re.search(r"\* doral-otf +231 +\(207 to 256\) +\+31 +\(14 to 49\)", said)
    assert "14 of 1,214 rows of the file were left out" in said
    assert "12 the answer came before the decision" in said


def test_names_that_steer_a_terminal_are_shown_and_do_nothing() -> None:
    assert printable("a\x1b[2Jb\u202ec\nd") == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}c d"
    assert columns(short("検査" * 40, 21)) <= 21
    assert short("x" * 100 + "end", 20).endswith("end")
