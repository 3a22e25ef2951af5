"""More tables as people have them, written after the first thirty were read well: other languages, formats, fields.

Each is understood as it was meant, or refused with the right question.
"""

from __future__ import annotations

import decimal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import doral
from doral.errors import InvalidValue
from tests.logs.foreign import (
    START,
    Expected,
    Truth,
    asked,
    check,
    csv,
    in_form,
    naive,
    open_roles,
    pick,
    truth,
    with_zeros,
)
from tests.logs.tables import written

ISO = "%Y-%m-%d %H:%M:%S"
N = 400


def _comma(amounts: list[float], unit: str = "") -> list[str]:
    return [f"{one:.2f}{unit}".replace(".", ",") for one in amounts]


# --- Languages ---


@pytest.mark.parametrize(
    ("names", "form", "yes", "no", "unit", "currency"),
    [
        ("Verzonden op;Aanbod;Gereageerd;Reactiedatum;Kosten", "%d-%m-%Y %H:%M", "ja", "nee", "", None),
        ("data wysłania;oferta;kupiono;data zakupu;cost", "%Y-%m-%d %H:%M", "tak", "nie", " zł", "PLN"),
        ("Дата;Канал;Куплено;Дата покупки;", "%d.%m.%Y %H:%M", "да", "нет", "", None),
        ("时间;渠道;结果;回复时间;", "%Y/%m/%d %H:%M", "是", "否", "", None),
        ("Datum;Erbjudande;Köpt;Köpdatum;", "%Y-%m-%d %H:%M", "ja", "nej", "", None),
        ("Angelegt;Angebot;Angenommen;Antwort;Kosten", "%d.%m.%Y %H:%M", "Ja", "Nein", " EUR", "EUR"),
    ],
)
def test_31_to_36_languages(
    names: str, form: str, yes: str, no: str, unit: str, currency: str | None, tmp_path: Path
) -> None:
    made = truth(seed=31)
    arrival, arm, outcome, answer, cost = names.split(";")
    columns: dict[str, Any] = {
        arrival: in_form(made.time, form),
        arm: made.arm,
        outcome: pick(made.reward, yes, no),
        answer: in_form(made.answered, form),
    }
    if cost:
        columns[cost] = _comma(made.cost, unit)
    log = doral.read_log(written(tmp_path, csv(columns, separator=";")))
    check(log, made, Expected(rounding=60, has_costs=bool(cost), currency=currency))


# --- Files ---


def _plain(made: Truth) -> dict[str, Any]:
    return {
        "sent_at": in_form(made.time, ISO),
        "offer": made.arm,
        "booked": pick(made.reward, "yes", "no"),
        "booked_at": in_form(made.answered, ISO),
        "cost": made.cost,
    }


def test_37_unicode_text_of_a_spreadsheet(tmp_path: Path) -> None:
    made = truth(seed=37)
    path = written(tmp_path, csv(_plain(made), separator="\t").decode().encode("utf-16"))
    check(doral.read_log(path), made, Expected())


def test_38_a_byte_order_mark_and_semicolons(tmp_path: Path) -> None:
    made = truth(seed=38)
    columns = {
        "Datum": in_form(made.time, "%d.%m.%Y %H:%M:%S"),
        "Maßnahme": made.arm,
        "Erfolg": pick(made.reward, "1", "0"),
        "Antwort am": in_form(made.answered, "%d.%m.%Y %H:%M:%S"),
        "Kosten": _comma(made.cost),
    }
    path = written(tmp_path, b"\xef\xbb\xbf" + csv(columns, separator=";"))
    check(doral.read_log(path), made, Expected())


def test_39_a_first_line_that_names_the_separator(tmp_path: Path) -> None:
    made = truth(seed=39)
    path = written(tmp_path, b"sep=;\r\n" + csv(_plain(made), separator=";"))
    check(doral.read_log(path), made, Expected())


def test_40_files_put_one_below_the_other(tmp_path: Path) -> None:
    """Their line of names is there several times: no column may lose its numbers because of it."""
    made = truth(seed=40)
    lines = csv(_plain(made)).split(b"\n")
    for place in (300, 150):
        lines.insert(place, lines[0])
    log = doral.read_log(written(tmp_path, b"\n".join(lines)))
    check(log, made, Expected())
    assert any("repeat the names" in one for one in log.reading.notes)


def test_41_no_line_of_names_is_refused(tmp_path: Path) -> None:
    content = csv(_plain(truth(seed=41))).split(b"\n", 1)[1]
    with pytest.raises(InvalidValue, match="seems to hold data"):
        doral.read_log(written(tmp_path, content))


def test_42_names_that_are_numbers_are_names(tmp_path: Path) -> None:
    """As pandas writes a frame that was made of an array."""
    made = truth(seed=42)
    columns = dict(zip("01234", _plain(made).values(), strict=True))
    path = written(tmp_path, csv(columns))
    check(doral.read_log(path, time="0", arm="1", reward="2", answered="3", cost="4"), made, Expected())


# --- Frames ---


def test_43_parquet_with_dictionaries_decimals_and_zones(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    made = truth(seed=43)
    table = arrow.table(
        {
            "sent_at": arrow.array(made.time, arrow.timestamp("ns", "Europe/Berlin")),
            "channel": arrow.array(made.arm).dictionary_encode(),
            "responded": arrow.array([None if one is None else bool(one) for one in made.reward]),
            "responded_at": arrow.array(made.answered, arrow.timestamp("ms", "UTC")),
            "cost_eur": arrow.array([decimal.Decimal(f"{one:.2f}") for one in made.cost], arrow.decimal128(10, 2)),
            "region": arrow.array(made.region).dictionary_encode(),
        }
    )
    parquet.write_table(table, tmp_path / "log.parquet")
    check(doral.read_log(tmp_path / "log.parquet"), made, Expected(currency="EUR", contexts=2))


def test_44_a_lazy_frame_with_an_enum_a_decimal_and_durations() -> None:
    made = truth(seed=44)
    pairs = zip(made.answered, made.time, strict=True)
    frame = pl.LazyFrame(
        {
            "sent": made.time,
            "action": pl.Series(made.arm, dtype=pl.Enum(["letter", "call", "visit"])),
            "outcome": made.reward,
            "delay": [None if answer is None else answer - sent for answer, sent in pairs],
            "cost": pl.Series([f"{one:.2f}" for one in made.cost]).cast(pl.Decimal(10, 2)),
        }
    )
    check(doral.read_log(frame), made, Expected())


def test_45_extension_arrays_of_pandas_with_gaps() -> None:
    pandas = pytest.importorskip("pandas")
    made = truth(seed=45)
    frame = pandas.DataFrame(
        {
            "sent_at": pandas.to_datetime(made.time),
            "campaign": pandas.Categorical(made.arm, categories=["letter", "call", "visit", "fax"]),
            "bought": pandas.array([None if one is None else bool(one) for one in made.reward], dtype="boolean"),
            "bought_at": pandas.to_datetime(pandas.Series(made.answered)),
            "cost": pandas.array(made.cost, dtype="Float64"),
            "age": pandas.array([None if i % 7 == 0 else 20 + i % 50 for i in range(N)], dtype="Int64"),
            "note": pandas.array([None] * N, dtype="string"),
        }
    )
    log = doral.read_log(frame)
    check(log, made, Expected())
    assert "fax" not in log.arms


# --- Times ---


def test_46_days_as_spreadsheets_count_them(tmp_path: Path) -> None:
    made = truth(seed=46)

    def serial(one: datetime | None) -> float | None:
        return None if one is None else (one - datetime(1899, 12, 30, tzinfo=UTC)).total_seconds() / 86_400.0

    columns = {
        "Date": [serial(one) for one in made.time],
        "Offer": made.arm,
        "Sold": pick(made.reward, "yes", "no"),
        "Answer date": [serial(one) for one in made.answered],
        "Cost": made.cost,
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected())


def test_47_zones_from_row_to_row(tmp_path: Path) -> None:
    made = truth(seed=47)

    def local(row: int, one: datetime | None) -> str | None:
        if one is None:
            return None
        hours, zone = ((0, "Z"), (2, "+02:00"), (-5, "-0500"))[row % 3]
        return f"{one + timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}{zone}"

    columns = {
        "created_at": [local(row, one) for row, one in enumerate(made.time)],
        "variant": made.arm,
        "outcome": made.reward,
        "outcome_at": [local(row + 1, one) for row, one in enumerate(made.answered)],
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected(has_costs=False))


def test_48_seconds_in_one_column_and_milliseconds_in_the_other(tmp_path: Path) -> None:
    made = truth(seed=48)
    columns = {
        "created": [int(one.timestamp()) for one in made.time],
        "treatment": made.arm,
        "clicked": made.reward,
        "clicked_at": [None if one is None else int(one.timestamp() * 1000) for one in made.answered],
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected(has_costs=False))


def test_49_hours_on_a_clock_and_minutes_of_delay(tmp_path: Path) -> None:
    made = truth(seed=49)
    pairs = zip(made.answered, made.time, strict=True)
    columns = {
        "t_hours": [(one - START).total_seconds() / 3_600.0 for one in made.time],
        "arm": made.arm,
        "reward": made.reward,
        "delay_min": [None if a is None else (a - t).total_seconds() / 60.0 for a, t in pairs],
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected(has_costs=False))


# --- Arms and rewards ---


def test_50_arms_by_number_beside_a_number_for_each_person(tmp_path: Path) -> None:
    made = truth(seed=50)
    codes: dict[str, str | None] = {"letter": "07", "call": "08", "visit": "12"}
    columns = {
        "patient": np.random.default_rng(50).permutation(N).tolist(),
        "visit_date": in_form(made.time, ISO),
        "trt": [codes[one] for one in made.arm],
        "y": made.reward,
        "y_date": in_form(made.answered, ISO),
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected(arm=codes, has_costs=False))


def test_51_a_store_is_no_arm_unless_the_caller_says_so() -> None:
    made = truth(seed=51)
    columns = {
        "store_id": np.random.default_rng(51).choice([101, 102, 103, 104], N).tolist(),
        "timestamp": made.time,
        "promo": made.arm,
        "sold": [None if one is None else bool(one) for one in made.reward],
        "sold_at": made.answered,
    }
    assert set(open_roles(asked(columns))["arm"]) == {"promo", "store_id"}
    check(doral.read_log(columns, arm="promo"), made, Expected(has_costs=False))


def test_52_one_column_for_each_treatment_and_none_for_the_control(tmp_path: Path) -> None:
    made = truth(seed=52)
    columns = {
        "date": in_form(made.time, ISO),
        "treat_call": [int(one == "call") for one in made.arm],
        "treat_visit": [int(one == "visit") for one in made.arm],
        "outcome": [int(one or 0) for one in made.reward],
    }
    path = written(tmp_path, csv(columns))
    error = asked(path)
    assert set(open_roles(error)) == {"arm"}
    assert error.suggested["arm"] == ["treat_call", "treat_visit"]
    log = doral.read_log(path, arm=["treat_call", "treat_visit"])
    check(log, with_zeros(made), Expected(arm={"letter": None}, has_delays=False, has_costs=False))


def test_53_a_wide_table_is_asked_for_its_arm_first(tmp_path: Path) -> None:
    made, rng = truth(seed=53), np.random.default_rng(53)
    columns: dict[str, Any] = {"person": list(range(N))}
    for name in ("mail", "phone", "visit"):
        columns[f"{name}_date"] = in_form(made.time, "%Y-%m-%d")
        columns[f"{name}_result"] = rng.integers(0, 2, N).tolist()
    error = asked(written(tmp_path, csv(columns)))
    assert error.questions[0].role == "arm"
    assert "one row per decision" in str(error)


def test_54_rewards_with_words_behind_their_numbers() -> None:
    made = truth(seed=54)
    columns = {"sent": made.time, "offer": made.arm, "result": pick(made.reward, "3 points", "0 points")}
    assert set(open_roles(asked(columns))) == {"positive"}


def test_55_losses_in_brackets(tmp_path: Path) -> None:
    made = truth(seed=55)
    columns = {
        "date": in_form(made.time, ISO),
        "action": made.arm,
        "profit": ["$30.00" if one else "($12.50)" for one in made.reward],
    }
    amounts = Truth(**{**made.__dict__, "reward": [30.0 if one else -12.5 for one in made.reward]})
    check(doral.read_log(written(tmp_path, csv(columns))), amounts, Expected(has_delays=False, has_costs=False))


def test_56_columns_that_say_the_same_in_every_row() -> None:
    made = truth(seed=56)
    columns = {
        "channel": ["email"] * N,
        "campaign": ["spring"] * N,
        "country": ["PR"] * N,
        "sent_at": made.time,
        "subject_line": made.arm,
        "opened": made.reward,
        "opened_at": made.answered,
        "cost": [0.01] * N,
    }
    log = doral.read_log(columns)
    check(log, Truth(**{**made.__dict__, "cost": [0.01] * N}), Expected())


# --- Fields ---


def test_57_a_call_centre(tmp_path: Path) -> None:
    """The script, the agent or the queue may have been chosen; what came of the call was not."""
    made, rng = truth(seed=57), np.random.default_rng(57)
    seconds = rng.integers(30, 900, N).tolist()
    ends = [start + timedelta(seconds=one) for start, one in zip(made.time, seconds, strict=True)]
    columns = {
        "call_id": [f"C{row:06d}" for row in range(N)],
        "call_start": in_form(made.time, ISO),
        "call_end": in_form(ends, ISO),
        "agent": rng.choice(["Anna", "Ben", "Cem"], N).tolist(),
        "queue": made.region,
        "script": made.arm,
        "disposition": pick(made.reward, "sale", "no sale", "no sale"),
        "handling_seconds": seconds,
    }
    path = written(tmp_path, csv(columns))
    error = asked(path)
    assert {"agent", "queue", "script"} <= set(open_roles(error)["arm"])
    assert error.suggested["arm"] != "disposition"
    told = {"arm": "script", "reward": "disposition", "answered": "call_end", "positive": "sale"}
    log = doral.read_log(path, **told)  # type: ignore[arg-type]
    at_end = Truth(**{**with_zeros(made).__dict__, "answered": ends})
    check(log, at_end, Expected(has_costs=False))


def test_58_advertisements_with_conversions_weeks_later(tmp_path: Path) -> None:
    rng, made = np.random.default_rng(58), truth(seed=58)
    clicks = [
        start + timedelta(seconds=int(one)) if is_clicked else None
        for start, one, is_clicked in zip(made.time, rng.integers(1, 300, N), rng.random(N) < 0.5, strict=True)
    ]
    bought = [
        None if click is None or is_lost else click + timedelta(days=int(one))
        for click, one, is_lost in zip(clicks, rng.integers(1, 40, N), rng.random(N) < 0.5, strict=True)
    ]
    columns = {
        "impression_time": in_form(made.time, f"{ISO} UTC"),
        "campaign": made.arm,
        "creative": rng.choice(["a", "b"], N).tolist(),
        "cost_usd": made.cost,
        "click_time": in_form(clicks, f"{ISO} UTC"),
        "conversion_time": in_form(bought, f"{ISO} UTC"),
        "conversion_value": [0 if one is None else 25 for one in bought],
    }
    sold = Truth(**{**made.__dict__, "reward": [25.0 if one else 0.0 for one in bought], "answered": bought})
    log = doral.read_log(written(tmp_path, csv(columns)))
    check(log, sold, Expected(feedback="silent", currency="USD"))


def test_59_laboratory_tests_of_which_some_are_pending(tmp_path: Path) -> None:
    made = truth(seed=59)
    columns = {
        "Specimen ID": [f"S-{row}" for row in range(N)],
        "Collected": in_form(made.time, "%m/%d/%y %H:%M"),
        "Test": made.arm,
        "Result": pick(made.reward, "Positive", "Negative", "Pending"),
        "Verified": in_form(made.answered, "%m/%d/%y %H:%M"),
        "Age group": made.region,
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected(has_costs=False, rounding=60))


def test_60_requests_to_language_models(tmp_path: Path) -> None:
    """Costs differ from request to request, and answers come within seconds."""
    rng = np.random.default_rng(60)
    times = [START + timedelta(seconds=1.7 * row) for row in range(N)]
    models = rng.choice(["small", "medium", "large"], N)
    tokens = rng.integers(50, 4_000, N)
    price = {"small": 1e-6, "medium": 5e-6, "large": 3e-5}
    latency = rng.integers(200, 9_000, N)
    columns = {
        "request_id": [f"{row:032x}" for row in range(N)],
        "ts": in_form(times, "%Y-%m-%dT%H:%M:%S.%fZ"),
        "model": models.tolist(),
        "task": rng.choice(["code", "chat"], N).tolist(),
        "prompt_tokens": tokens.tolist(),
        "cost_usd": [float(price[model] * count) for model, count in zip(models, tokens, strict=True)],
        "latency_ms": latency.tolist(),
        "score": np.round(rng.random(N), 2).tolist(),
    }
    path = written(tmp_path, csv(columns))
    assert set(open_roles(asked(path))["arm"]) == {"model", "task"}
    log = doral.read_log(path, arm="model", reward="score", context="task")
    assert set(log.arms) == {"small", "medium", "large"}
    assert log.currency == "USD"
    np.testing.assert_allclose(log.delay, latency / 1_000.0)
    np.testing.assert_allclose(log.cost, columns["cost_usd"])
    np.testing.assert_allclose(log.reward, columns["score"])
    assert log.clock.told == "seconds"


def test_61_an_experiment_with_mails_and_a_control_group(tmp_path: Path) -> None:
    """Nothing was sent to the control: what it bought is what doing nothing brings."""
    made, rng = truth(seed=61), np.random.default_rng(61)
    names: dict[str, str | None] = {"letter": "control", "call": "A", "visit": "B"}
    groups = [names[one] for one in made.arm]
    sent = in_form([one + timedelta(hours=1) for one in made.time], ISO)
    columns = {
        "customer_id": list(range(1_000, 1_000 + N)),
        "group": groups,
        "assigned_at": in_form(made.time, ISO),
        "sent_at": [None if group == "control" else one for group, one in zip(groups, sent, strict=True)],
        "opened": [0 if one == "control" else int(rng.random() < 0.4) for one in groups],
        "purchased": [int(one or 0) for one in made.reward],
        "revenue": [(one or 0.0) * 19.9 for one in made.reward],
    }
    path = written(tmp_path, csv(columns))
    assert set(open_roles(asked(path))["reward"]) == {"opened", "purchased", "revenue"}
    log = doral.read_log(path, reward="purchased", nothing="control")
    quiet = {**names, "letter": None}
    check(log, with_zeros(made), Expected(arm=quiet, has_delays=False, has_costs=False))
    assert log.skips_are_answered


def test_62_a_commission_is_no_price_until_the_caller_says_so() -> None:
    made = truth(seed=62)
    columns = {
        "timestamp": made.time,
        "partner": made.arm,
        "lead_sold": made.reward,
        "sold_at": made.answered,
        "commission": [price if one else 0.0 for one, price in zip(made.reward, made.cost, strict=True)],
    }
    assert set(open_roles(asked(columns))) == {"cost"}
    log = doral.read_log(columns, paid="commission", cost=False)
    assert log.paid_when == "on_answer"
    check(log, made, Expected())


def test_64_sums_are_said_before_anything_else(tmp_path: Path) -> None:
    """As public tables of tests at borders are: a row is a day, a place and a country."""
    rng = np.random.default_rng(64)
    columns = {
        "epoch": np.repeat(np.arange(40), 30).tolist(),
        "point_entry": [f"Entry_{one}" for one in rng.integers(1, 30, 1_200)],
        "country": [f"C{one}" for one in rng.integers(1, 60, 1_200)],
        "numArrivals": rng.integers(20, 9_000, 1_200).tolist(),
        "numTestsPerformed": rng.integers(0, 500, 1_200).tolist(),
        "numPositivesFound": rng.integers(0, 14, 1_200).tolist(),
    }
    error = asked(written(tmp_path, csv(columns)))
    assert error.questions[0].role == "reward"
    assert "one row per decision" in str(error)
    assert not {one for one in open_roles(error).get("arm", ()) if one.startswith("num")}


def test_63_hand_kept_states_and_days(tmp_path: Path) -> None:
    made = truth(seed=63)
    columns = {
        "date": in_form(naive(made.time), "%Y-%m-%d"),
        "treatment": made.arm,
        "status": pick(made.reward, "converted", "not converted", "pending"),
        "status_date": in_form(made.answered, "%Y-%m-%d"),
    }
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected(has_costs=False, rounding=86_400))
