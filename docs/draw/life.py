"""The states of a decision, and what each step does to the budget."""

from __future__ import annotations

from sheet import BLUE, GREEN, INK, ORANGE, PURPLE, RED, SOFT, Sheet


def _state(sheet: Sheet, x: float, y: float, name: str, said: str, money: str, colour: str) -> None:
    sheet.box(x, y, 186, 84, edge=colour, thick=2)
    sheet.text(x + 93, y + 26, name, size=17, colour=colour, bold=True)
    sheet.text(x + 93, y + 48, said, size=13, colour=INK)
    sheet.text(x + 93, y + 69, money, size=13, colour=SOFT)


def life() -> Sheet:
    """From an arrival to what became of it."""
    sheet = Sheet(860, 510, "A decision's life: skipped, pending, returned, cancelled, expired, late")
    sheet.text(30, 36, "A decision's life", size=19, at="start", bold=True)
    sheet.text(30, 58, "what happens, and what it does to the budget", size=14, colour=SOFT, at="start")
    sheet.box(30, 190, 130, 60, fill="#eef2f6", edge=SOFT)
    sheet.text(95, 216, "somebody", size=14)
    sheet.text(95, 235, "arrives", size=14)

    _state(sheet, 250, 178, "pending", "an arm was given", "its cost is reserved", BLUE)
    _state(sheet, 250, 404, "skipped", "nothing was given", "nothing is reserved", SOFT)
    _state(sheet, 645, 72, "returned", "answered in time", "its cost is spent", GREEN)
    _state(sheet, 645, 178, "cancelled", "taken back", "its cost is free again", RED)
    _state(sheet, 645, 284, "expired", "silent for too long", "spent, or released", ORANGE)
    _state(sheet, 645, 404, "late", "answered after all", "teaches; does not count", PURPLE)

    sheet.line(160, 220, 246, 220, INK, arrow=True)
    sheet.text(203, 211, "decide", size=13)
    sheet.path("M95 250V446H246", INK, arrow=True)
    sheet.text(172, 437, "decide", size=13)

    sheet.path("M343 178V114H641", GREEN, width=2, arrow=True)
    sheet.text(352, 104, "feedback(): came within the deadline", size=13, colour=GREEN, at="start")
    sheet.line(436, 220, 641, 220, RED, width=2, arrow=True)
    sheet.text(538, 210, "cancel()", size=13, colour=RED)
    sheet.path("M343 262V326H641", ORANGE, width=2, arrow=True)
    sheet.text(352, 316, "expire(): older than the deadline", size=13, colour=ORANGE, at="start")
    sheet.line(738, 368, 738, 400, PURPLE, width=2, arrow=True)
    sheet.text(728, 390, "feedback(): came after the deadline", size=13, colour=PURPLE, at="end")
    return sheet


def ledger() -> Sheet:
    """Four moments of a budget of 10: what is spent, reserved and left always adds up."""
    moments = [
        ("the budget is 10", 0.0, 0.0),
        ("decide: a kit for 2.5 is reserved", 0.0, 2.5),
        ("decide: another one", 0.0, 5.0),
        ("feedback(actual_cost=2): 2 is paid, 0.5 comes back", 2.0, 2.5),
        ("cancel: the other kit was not handed out", 2.0, 0.0),
    ]
    sheet = Sheet(860, 330, "A ledger: spent, reserved and left add up to the budget after every event")
    sheet.text(30, 36, "Spent + reserved + left = budget, after every event", size=19, at="start", bold=True)
    unit = 38.0
    for i, (said, spent, reserved) in enumerate(moments):
        y = 62 + 46 * i
        left = 10 - spent - reserved
        sheet.text(430, y + 20, said, size=13, at="start")
        x = 30.0
        for amount, fill, colour in ((spent, GREEN, "#ffffff"), (reserved, BLUE, "#ffffff"), (left, "#e4e7eb", INK)):
            if amount:
                sheet.box(x, y, unit * amount, 30, fill=fill, edge="#ffffff", round_=3, thick=1)
                sheet.text(x + unit * amount / 2, y + 20, f"{amount:g}", size=13, colour=colour)
                x += unit * amount
    for x, fill, word in ((30, GREEN, "spent"), (120, BLUE, "reserved"), (236, "#e4e7eb", "left")):
        sheet.box(x, 297, 14, 14, fill=fill, edge=SOFT, round_=3, thick=0.5)
        sheet.text(x + 22, 309, word, size=13, at="start")
    return sheet
