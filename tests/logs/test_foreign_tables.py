"""Thirty tables as people have them: each is understood as it was meant, or refused with the right question.

Thirty more are in `test_more_foreign_tables.py`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import doral
from doral.errors import InvalidValue
from tests.logs.foreign import Expected, Truth, asked, check, csv, in_form, naive, open_roles, pick, truth
from tests.logs.tables import written

# --- The first half: written before columns were understood from their data. ---


def test_01_german_semicolons_decimal_commas_and_euro_signs(tmp_path: Path) -> None:
    made = truth(seed=1)
    columns = {
        "Kontaktiert am": in_form(made.time, "%d.%m.%Y %H:%M"),
        "Kanal": [{"letter": "Brief", "call": "Anruf", "visit": "Besuch"}[one] for one in made.arm],
        "Region": made.region,
        "Gebucht": pick(made.reward, "ja", "nein"),
        "Rückmeldung am": in_form(made.answered, "%d.%m.%Y %H:%M"),
        "Kosten": [f"{one:.2f} €".replace(".", ",") for one in made.cost],
    }
    log = doral.read_log(written(tmp_path, csv(columns, separator=";")))
    names: dict[str, str | None] = {"letter": "Brief", "call": "Anruf", "visit": "Besuch"}
    check(log, made, Expected(arm=names, rounding=60, currency="EUR", contexts=2))


def test_02_french_names_and_words(tmp_path: Path) -> None:
    made = truth(seed=2)
    columns = {
        "date_envoi": in_form(made.time, "%Y-%m-%d %H:%M:%S"),
        "canal": made.arm,
        "réponse": pick(made.reward, "oui", "non"),
        "date_réponse": in_form(made.answered, "%Y-%m-%d %H:%M:%S"),
        "coût": made.cost,
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected())


def test_03_spanish_silence_and_thousands(tmp_path: Path) -> None:
    made = truth(seed=3, silent=True)
    columns = {
        "fecha_envío": in_form(made.time, "%d/%m/%Y %H:%M"),
        "oferta": made.arm,
        "comprado": pick(made.reward, "sí", "no", "no"),
        "fecha_compra": in_form(made.answered, "%d/%m/%Y %H:%M"),
        "precio": [f"{one:.2f}".replace(".", ",") for one in made.cost],
    }
    log = doral.read_log(written(tmp_path, csv(columns, separator=";")))
    check(log, made, Expected(feedback="silent", rounding=60))


def test_04_group_is_not_the_arm_where_costs_follow_the_channel() -> None:
    made = truth(seed=4)
    columns = {
        "contacted_at": made.time,
        "channel": made.arm,
        "booked": [int(one or 0) for one in made.reward],
        "cost_eur": made.cost,
        "group": made.region,
    }
    log = doral.read_log(columns)
    zeros = Truth(**{**made.__dict__, "reward": [one or 0.0 for one in made.reward]})
    check(log, zeros, Expected(has_delays=False, contexts=2, currency="EUR"))


def test_05_completed_at_is_the_answer() -> None:
    made = truth(seed=5)
    columns = {
        "sent": made.time,
        "offer": made.arm,
        "age": np.random.default_rng(5).integers(18, 80, len(made)).tolist(),
        "completed": pick(made.reward, "yes", "no"),
        "completed_at": made.answered,
        "paid": [0.0 if one is None else cost for one, cost in zip(made.reward, made.cost, strict=True)],
        "cost": made.cost,
    }
    log = doral.read_log(columns)
    check(log, made, Expected())
    assert log.paid_when == "on_answer"


def test_06_an_index_a_constant_and_identifiers(tmp_path: Path) -> None:
    made = truth(seed=6)
    n = len(made)
    columns = {
        "": list(range(n)),
        "version": ["v3"] * n,
        "case_uuid": [f"{one:08x}-{one * 7919:012x}" for one in range(n)],
        "customer_no": np.random.default_rng(6).permutation(n * 10)[:n].tolist(),
        "assigned_at": in_form(made.time, "%Y-%m-%dT%H:%M:%SZ"),
        "variant": made.arm,
        "converted": pick(made.reward, "1", "0"),
        "converted_at": in_form(made.answered, "%Y-%m-%dT%H:%M:%SZ"),
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected(has_costs=False))


def test_07_arms_that_have_a_column_each() -> None:
    made = truth(seed=7)
    columns: dict[str, Any] = {"sent_at": made.time}
    for name in ("letter", "call", "visit"):
        columns[f"offer_{name}"] = [int(one == name) for one in made.arm]
    columns |= {"reward": made.reward, "answered_at": made.answered}
    log = doral.read_log(columns)
    check(log, made, Expected(has_costs=False))
    named = doral.read_log(columns, arm=["offer_letter", "offer_call", "offer_visit"])
    assert named.arms == log.arms


def test_08_a_wide_table_is_refused() -> None:
    made = truth(seed=8)
    rng = np.random.default_rng(8)
    columns: dict[str, Any] = {"customer": [f"c{one}" for one in range(len(made))]}
    for name in ("letter", "call", "visit"):
        columns[f"{name}_sent_at"] = made.time
        columns[f"{name}_answered"] = rng.integers(0, 2, len(made)).tolist()
    error = asked(columns)
    assert "arm" in open_roles(error)
    assert "one row per decision" in str(error)


def test_09_milliseconds_since_1970() -> None:
    made = truth(seed=9)
    columns = {
        "ts": [int(one.timestamp() * 1000) for one in made.time],
        "variant": made.arm,
        "converted": [one is not None and bool(one) for one in made.reward],
        "conversion_ts": [None if one is None else int(one.timestamp() * 1000) for one in made.answered],
    }
    zeros = {**columns, "converted": made.reward}
    check(doral.read_log(zeros), made, Expected(has_costs=False))


def test_10_names_that_say_nothing() -> None:
    made = truth(seed=10)
    columns = {
        "c1": made.time,
        "c2": made.arm,
        "c3": made.reward,
        "c4": made.answered,
        "c5": made.cost,
        "c6": np.random.default_rng(10).normal(size=len(made)).tolist(),
    }
    error = asked(columns)  # whether c5 is the cost, only the caller knows
    assert set(open_roles(error)) == {"cost"}
    check(doral.read_log(columns, cost="c5"), made, Expected())


def test_11_a_campaign_with_several_outcomes_and_two_possible_arms(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    n = 600
    visit = rng.random(n) < 0.3
    columns = {
        "recency": rng.integers(1, 13, n).tolist(),
        "spent_before": np.round(rng.exponential(200, n), 2).tolist(),
        "zip_code": rng.choice(["Urban", "Rural"], n).tolist(),
        "channel": rng.choice(["Phone", "Web"], n).tolist(),
        "segment": rng.choice(["Mens E-Mail", "Womens E-Mail", "No E-Mail"], n).tolist(),
        "visit": visit.astype(int).tolist(),
        "conversion": (visit & (rng.random(n) < 0.2)).astype(int).tolist(),
        "spend": np.where(visit, np.round(rng.exponential(20, n), 2), 0.0).tolist(),
    }
    error = asked(written(tmp_path, csv(columns)))
    roles = open_roles(error)
    assert {"channel", "segment"} <= set(roles["arm"])
    assert {"visit", "conversion", "spend"} <= set(roles["reward"])
    log = doral.read_log(columns, arm="segment", reward="visit")
    assert set(log.arms) == {"Mens E-Mail", "Womens E-Mail", "No E-Mail"}
    assert float(np.nansum(log.reward)) == float(visit.sum())


def test_12_two_times_that_are_always_there() -> None:
    made = truth(seed=12)
    later = [one.replace(year=2027) for one in made.time]
    columns = {"stamp_a": made.time, "stamp_b": later, "arm": made.arm, "reward": [one or 0 for one in made.reward]}
    error = asked(columns)
    assert set(open_roles(error)["time"]) == {"stamp_a", "stamp_b"}


def test_13_a_group_with_a_control_is_the_arm() -> None:
    made = truth(seed=13)
    names: dict[str, str | None] = {"letter": "control", "call": "A", "visit": "B"}
    columns = {
        "Datum": naive(made.time),
        "Gruppe": [names[one] for one in made.arm],
        "Alter": np.random.default_rng(13).integers(18, 80, len(made)).tolist(),
        "Umsatz": [one or 0.0 for one in made.reward],
    }
    zeros = Truth(**{**made.__dict__, "reward": [one or 0.0 for one in made.reward]})
    check(doral.read_log(columns), zeros, Expected(arm=names, has_delays=False, has_costs=False))


def test_14_zones_and_nat(tmp_path: Path) -> None:
    made = truth(seed=14)

    def local(one: datetime | None) -> str:
        if one is None:
            return "NaT"
        hours = 1 if one.month < 3 else 2
        return f"{one.replace(tzinfo=None) + (datetime(2026, 1, 1, hours) - datetime(2026, 1, 1))}+0{hours}:00"

    columns = {
        "created": [local(one) for one in made.time],
        "treatment": made.arm,
        "outcome": made.reward,
        "resolved_at": [local(one) for one in made.answered],
        "unit_cost": made.cost,
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected())


@pytest.mark.parametrize("n", [40, 400])
def test_15_one_value_among_the_answered_is_silence(n: int) -> None:
    made = truth(n, seed=15, silent=True)
    columns = {
        "offered": made.time,
        "campaign": made.arm,
        "purchased": made.reward,
        "purchased_at": made.answered,
    }
    log = doral.read_log(pl.DataFrame(columns, strict=False))
    check(log, made, Expected(feedback="silent", has_costs=False))


# --- The second half: written after columns were understood from their data, before anything was mended for them. ---


def test_16_american_dates_with_am_and_pm_and_dollars(tmp_path: Path) -> None:
    made = truth(seed=16)
    columns = {
        "Order ID": [f"A-{one}" for one in range(len(made))],
        "Contact Date": in_form(made.time, "%m/%d/%Y %I:%M %p"),
        "Offer": made.arm,
        "Responded": pick(made.reward, "Yes", "No"),
        "Response Date": in_form(made.answered, "%m/%d/%Y %I:%M %p"),
        "Cost": [f"${one:.2f}" for one in made.cost],
    }
    log = doral.read_log(written(tmp_path, csv(columns)))
    check(log, made, Expected(rounding=60, currency="USD"))


def test_17_states_in_words_of_which_one_is_still_open(tmp_path: Path) -> None:
    made = truth(seed=17)
    columns = {
        "opened": in_form(made.time, "%Y-%m-%d %H:%M:%S"),
        "channel": made.arm,
        "status": pick(made.reward, "won", "lost", "open"),
        "closed": in_form(made.answered, "%Y-%m-%d %H:%M:%S"),
        "expense": made.cost,
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected())


def test_18_italian_and_month_names(tmp_path: Path) -> None:
    made = truth(seed=18)
    columns = {
        "data_invio": in_form(made.time, "%d %b %Y %H:%M"),
        "trattamento": made.arm,
        "esito": pick(made.reward, "1", "0"),
        "data_risposta": in_form(made.answered, "%d %b %Y %H:%M"),
        "costo": made.cost,
    }
    check(doral.read_log(written(tmp_path, csv(columns, separator="\t"))), made, Expected(rounding=60))


def test_19_arms_as_numbers_beside_their_names() -> None:
    made = truth(seed=19)
    numbers = {"letter": 1, "call": 2, "visit": 3}
    columns = {
        "timestamp": [one.timestamp() for one in made.time],
        "arm_id": [numbers[one] for one in made.arm],
        "arm_label": made.arm,
        "result": made.reward,
        "result_time": [None if one is None else one.timestamp() for one in made.answered],
        "unit_price_usd": made.cost,
    }
    check(doral.read_log(columns), made, Expected(currency="USD"))


def test_20_days_until_the_reply() -> None:
    made = truth(seed=20)
    pairs = zip(made.answered, made.time, strict=True)
    days = [None if a is None else (a - t).total_seconds() / 86_400 for a, t in pairs]
    columns = {
        "mailed_on": naive(made.time),
        "letter_type": made.arm,
        "days_to_reply": days,
        "replied": made.reward,
    }
    check(doral.read_log(columns), made, Expected(has_costs=False))


def test_21_never_is_the_year_9999() -> None:
    made = truth(seed=21)
    columns = {
        "assigned_at": naive(made.time),
        "treatment": made.arm,
        "outcome": made.reward,
        "outcome_at": [datetime(9999, 12, 31) if one is None else one for one in naive(made.answered)],
    }
    log = doral.read_log(columns)
    check(log, made, Expected(has_costs=False))
    assert log.end < 30 * 86_400.0


def test_22_probabilities_in_per_cent_and_database_nulls(tmp_path: Path) -> None:
    made = truth(seed=22)
    share = {"letter": "50%", "call": "30%", "visit": "20%"}
    columns = {
        "id": list(range(10_000, 10_000 + len(made))),
        "created_at": in_form(made.time, "%Y-%m-%d %H:%M:%S.000"),
        "action": made.arm,
        "propensity": [share[one] for one in made.arm],
        "success": pick(made.reward, "t", "f", "\\N"),
        "resolved_at": [one or "\\N" for one in in_form(made.answered, "%Y-%m-%d %H:%M:%S.000")],
    }
    log = doral.read_log(written(tmp_path, csv(columns)))
    check(log, made, Expected(has_costs=False))
    assert set(np.unique(log.probability)) == {0.5, 0.3, 0.2}


def test_23_ids_that_look_like_seconds_since_1970() -> None:
    made = truth(seed=23)
    columns = {
        "account": np.random.default_rng(23).permutation(1_700_000_000 + np.arange(len(made)) * 977).tolist(),
        "when": made.time,
        "message": made.arm,
        "clicked": [int(one or 0) for one in made.reward],
    }
    zeros = Truth(**{**made.__dict__, "reward": [one or 0.0 for one in made.reward]})
    check(doral.read_log(columns), zeros, Expected(has_delays=False, has_costs=False))


def test_24_one_row_per_event_is_refused() -> None:
    made = truth(seed=24)
    rows: list[tuple[str, str | None, datetime]] = [("sent", a, t) for a, t in zip(made.arm, made.time, strict=True)]
    rows += [("answered", None, t) for t in made.answered if t is not None]
    columns = {
        "customer": [f"c{one % len(made)}" for one in range(len(rows))],
        "event": [one[0] for one in rows],
        "offer": [one[1] for one in rows],
        "timestamp": [one[2] for one in rows],
    }
    error = asked(columns)
    assert set(open_roles(error)) == {"reward"}


def test_25_sums_per_group_are_refused() -> None:
    rng = np.random.default_rng(25)
    columns = {
        "week": list(range(1, 53)) * 3,
        "channel": ["mail"] * 52 + ["phone"] * 52 + ["web"] * 52,
        "num_sent": rng.integers(100, 500, 156).tolist(),
        "num_bought": rng.integers(0, 30, 156).tolist(),
        "total_cost": rng.integers(100, 900, 156).tolist(),
    }
    error = asked(columns)
    assert "one row per decision" in str(error)


def test_26_days_and_months_that_cannot_be_told_apart(tmp_path: Path) -> None:
    made = truth(120, seed=26)
    days = [one.replace(day=1 + place % 12, month=1 + place // 12) for place, one in enumerate(made.time)]
    columns = {"date": in_form(days, "%d/%m/%Y"), "arm": made.arm, "reward": [int(one or 0) for one in made.reward]}
    path = written(tmp_path, csv(columns))
    with pytest.raises(InvalidValue, match="date_order="):
        doral.read_log(path)
    log = doral.read_log(path, date_order="day-first")
    assert log.time.max() == (max(days).date() - min(days).date()).days * 86_400.0


def test_27_offers_given_as_flags_in_portuguese(tmp_path: Path) -> None:
    made = truth(seed=27)
    columns: dict[str, list[Any]] = {"data": in_form(made.time, "%Y-%m-%d %H:%M:%S")}
    for name in ("letter", "call", "visit"):
        columns[f"tratamento_{name}"] = ["sim" if one == name else "não" for one in made.arm]
    columns["resultado"] = pick(made.reward, "sim", "não", "não")
    log = doral.read_log(written(tmp_path, csv(columns)))
    zeros = Truth(**{**made.__dict__, "reward": [one or 0.0 for one in made.reward]})
    check(log, zeros, Expected(has_delays=False, has_costs=False))


def test_28_swiss_amounts_and_a_revenue() -> None:
    made = truth(seed=28)
    amounts = {"letter": "CHF 1.50", "call": "CHF 4.00", "visit": "CHF 12.25"}
    columns = {
        "Versanddatum": in_form(made.time, "%d.%m.%y %H:%M"),
        "Kampagne": made.arm,
        "Umsatz": [None if one is None else f"{1234.5 * one:,.2f}".replace(",", "'") for one in made.reward],
        "Bestelldatum": in_form(made.answered, "%d.%m.%y %H:%M"),
        "Stückkosten": [amounts[one] for one in made.arm],
    }
    thousands = Truth(**{**made.__dict__, "reward": [None if one is None else 1234.5 * one for one in made.reward]})
    check(doral.read_log(columns), thousands, Expected(rounding=60, currency="CHF"))


def test_29_a_flag_says_whether_there_is_an_answer() -> None:
    made = truth(seed=29)
    columns = {
        "time": made.time,
        "arm": made.arm,
        "answered": [one is not None for one in made.reward],
        "reward": [one or 0.0 for one in made.reward],
    }
    check(doral.read_log(columns), made, Expected(has_delays=False, has_costs=False))


def test_30_two_categories_and_nothing_that_tells_them_apart() -> None:
    made = truth(seed=30)
    columns = {
        "date": made.time,
        "colour": made.arm,
        "shape": made.region,
        "points": np.random.default_rng(30).exponential(size=len(made)).tolist(),
    }
    roles = open_roles(asked(columns))
    assert set(roles["arm"]) == {"colour", "shape"}
    assert "reward" in roles
