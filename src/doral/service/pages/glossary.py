"""The words of a campaign's page, for people who keep it open and have read nothing else."""

from __future__ import annotations

from html import escape

_WORDS = (
    ("arm", "What the budget can be spent on for somebody: a letter, a visit, a coupon."),
    ("context", "The kind of person who arrives, as far as that is known. Its weight says how much its reward counts."),
    ("arrival", "Somebody came, and a decision was asked for: served with an arm, or skipped."),
    ("policy", "What decides. It learns from answers which arm is worth its cost for whom."),
    ("reward", "What an answer reports, such as 1 for yes and 0 for no."),
    ("reserved", "Budget set aside for open decisions. It is spent, or comes back, once they are settled."),
    ("pending", "Served, and not answered yet."),
    ("returned", "Answered within the deadline: the reward counts."),
    ("expired", "No answer came within the deadline."),
    ("late", "An answer came after the deadline: noted, and not counted."),
    (
        "deadline",
        "How old an answer may be to count. The policy waits until its cut-off, which may be sooner.",
    ),
    ("even pace", "What would be spent by now if the budget were spread evenly over all arrivals, or over the time."),
    ("a unit of budget", "What the next one is hoped to bring: the price. Whoever would bring less for it is skipped."),
    ("by lot", "Where it is nearly the same, chance decides, so that the budget lasts: such decisions are marginal."),
    ("paced", "Skipped, because the budget brings more elsewhere, or would not last."),
    ("first try", "Served to learn, because little is known of the arm yet."),
    ("ruled out", "Another arm is better for certain, in this context: the arm is not offered there any more."),
    ("95%", "The interval that holds what is true, in 95 of 100 such cases."),
)


def glossary() -> str:
    """As a list of terms, in the order in which a page speaks of them."""
    terms = "".join(f"<div><dt>{escape(word)}</dt><dd>{escape(told)}</dd></div>" for word, told in _WORDS)
    return f'<dl class="glossary">{terms}</dl>'
