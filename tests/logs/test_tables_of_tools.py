"""Tables as other tools write them: understood as they were meant, or refused with the right question."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest

import doral
from doral.errors import InvalidValue
from tests.logs.foreign import Expected, asked, check, csv, in_form, open_roles, pick, truth
from tests.logs.tables import written

MINUTE = "%Y-%m-%d %H:%M"


def _of_clock(wait: timedelta) -> str:
    return str(wait)  # 1 day, 4:05:00


def _of_iso(wait: timedelta) -> str:
    return f"P{wait.days}DT{wait.seconds // 3600}H{wait.seconds // 60 % 60}M"


def _of_words(wait: timedelta) -> str:
    return f"{wait.days} days {wait.seconds // 3600} h {wait.seconds // 60 % 60} min"


def _of_german(wait: timedelta) -> str:
    return f"{wait.days} Tage, {wait.seconds // 3600} Stunden, {wait.seconds // 60 % 60} Minuten"


@pytest.mark.parametrize("written_as", [_of_clock, _of_iso, _of_words, _of_german])
@pytest.mark.parametrize("name", ["delay", "response_time"])
def test_65_to_72_durations_in_words(written_as: Any, name: str, tmp_path: Path) -> None:
    made = truth(seed=65)
    waits = [None if a is None else written_as(a - t) for a, t in zip(made.answered, made.time, strict=True)]
    columns = {"sent": in_form(made.time, MINUTE), "arm": made.arm, "reward": pick(made.reward, "1", "0"), name: waits}
    check(doral.read_log(written(tmp_path, csv(columns))), made, Expected(rounding=60, has_costs=False))


def test_73_a_delay_that_cannot_be_read_is_asked_for(tmp_path: Path) -> None:
    made = truth(seed=73)
    columns = {
        "sent": in_form(made.time, MINUTE),
        "arm": made.arm,
        "reward": pick(made.reward, "1", "0"),
        "delay": ["soon" if i % 2 else "late" for i in range(len(made))],
    }
    assert "delay" in open_roles(asked(written(tmp_path, csv(columns))))


def test_74_durations_without_a_name_are_asked_for() -> None:
    made = truth(seed=74)
    elapsed = [None if a is None else a - t for a, t in zip(made.answered, made.time, strict=True)]
    frame = pl.DataFrame({"sent": made.time, "arm": made.arm, "reward": made.reward, "elapsed": elapsed})
    assert open_roles(asked(frame))["delay"] == ("elapsed",)
    check(doral.read_log(frame, delay="elapsed"), made, Expected(has_costs=False))


def test_75_japanese_dates_and_yen(tmp_path: Path) -> None:
    made = truth(seed=75)
    columns = {
        "日時": in_form(made.time, "%Y年%m月%d日 %H:%M"),
        "施策": made.arm,
        "費用": [f"¥{one:g}" for one in made.cost],
        "成約": pick(made.reward, "はい", "いいえ"),
    }
    path = written(tmp_path, csv(columns))
    assert set(open_roles(asked(path))) == {"arm", "reward"}
    log = doral.read_log(path, arm="施策", reward="成約", cost="費用")
    check(log, made, Expected(rounding=60, has_delays=False, currency="JPY"))


def test_76_a_date_that_cannot_be_read_is_asked_for(tmp_path: Path) -> None:
    made = truth(seed=76)
    form = "%d thermidor %Y %H:%M"
    columns = {"date": in_form(made.time, form), "arm": made.arm, "reward": pick(made.reward, "1", "0")}
    assert open_roles(asked(written(tmp_path, csv(columns))))["time"] == ("date",)


def test_77_days_of_weeks() -> None:
    made = truth(seed=77)
    days = in_form(made.time, "%G-W%V-%u")
    log = doral.read_log(pl.DataFrame({"date": days, "arm": made.arm, "reward": made.reward}))
    since = [(one.date() - made.time[0].date()).total_seconds() for one in made.time]
    np.testing.assert_array_equal(log.time, since)


def test_78_roubles(tmp_path: Path) -> None:
    made = truth(seed=78)
    columns = {
        "Дата": in_form(made.time, "%d.%m.%Y %H:%M"),
        "Канал": made.arm,
        "Стоимость": [f"{one:.2f} ₽".replace(".", ",") for one in made.cost],
        "Покупка": pick(made.reward, "да", "нет"),
    }
    path = written(tmp_path, csv(columns, separator=";"))
    log = doral.read_log(path, arm="Канал", reward="Покупка", cost="Стоимость")
    check(log, made, Expected(rounding=60, has_delays=False, currency="RUB"))


def test_79_turkish_yes_and_no(tmp_path: Path) -> None:
    made = truth(seed=79)
    columns = {
        "tarih": in_form(made.time, "%d/%m/%Y %H:%M"),
        "teklif": made.arm,
        "sonuç": pick(made.reward, "evet", "hay\u0131r"),
    }
    log = doral.read_log(written(tmp_path, csv(columns)), arm="teklif", reward="sonuç")
    check(log, made, Expected(rounding=60, has_delays=False, has_costs=False))


def test_80_errors_of_a_spreadsheet_are_no_amounts(tmp_path: Path) -> None:
    made = truth(seed=80)
    revenue = ["#VALUE!" if one is None else f"{one:.2f}" for one in made.reward]
    columns = {"sent": in_form(made.time, MINUTE), "offer": made.arm, "revenue": revenue}
    log = doral.read_log(written(tmp_path, csv(columns)))
    check(log, made, Expected(rounding=60, has_delays=False, has_costs=False))


def test_81_names_of_columns_in_windows_1252(tmp_path: Path) -> None:
    """The rows are plain ASCII."""
    made = truth(seed=81)
    columns = {
        "Datum": in_form(made.time, "%d.%m.%Y %H:%M"),
        "Maßnahme": made.arm,
        "Ergebnis": pick(made.reward, "positiv", "negativ"),
    }
    log = doral.read_log(written(tmp_path, csv(columns, separator=";").decode().encode("cp1252")))
    check(log, made, Expected(rounding=60, has_delays=False, has_costs=False))
    assert ("arm", "Maßnahme") in log.reading.columns


def test_82_answers_before_their_decisions_are_refused() -> None:
    made = truth(seed=82)
    frame = pl.DataFrame({"answered_at": made.time, "sent_at": made.answered, "arm": made.arm, "reward": made.reward})
    with pytest.raises(InvalidValue) as caught:
        doral.read_log(frame, time="sent_at", answered="answered_at")
    assert caught.value.field in ("answered", "source")


def test_83_doses_are_asked_for_and_the_outcome_is_not_the_arm() -> None:
    made = truth(seed=83)
    dose = [{"letter": 2.5, "call": 5.0, "visit": 10.0}[one] for one in made.arm]
    error = asked(pl.DataFrame({"time": made.time, "dose_mg": dose, "recovered": made.reward}))
    assert open_roles(error)["arm"] == ("dose_mg",)
    assert error.suggested["reward"] == "recovered"


def test_84_times_in_the_index_of_pandas() -> None:
    made = truth(seed=84)
    index = pd.DatetimeIndex(list[datetime](made.time), name="sent_at")
    frame = pd.DataFrame({"arm": made.arm, "reward": made.reward, "cost": made.cost}, index=index)
    check(doral.read_log(frame), made, Expected(has_delays=False))


def test_85_periods_and_timedeltas_of_pandas() -> None:
    made = truth(seed=85)
    days = pd.PeriodIndex([one.strftime("%Y-%m-%d") for one in made.time], freq="D")
    waits = [None if a is None else a - t for a, t in zip(made.answered, made.time, strict=True)]
    frame = pd.DataFrame({"day": days, "arm": made.arm, "reward": made.reward, "delay": pd.to_timedelta(waits)})
    log = doral.read_log(frame)
    heard = log.is_answered
    np.testing.assert_allclose(log.delay[heard], [one.total_seconds() for one in waits if one is not None])


def test_86_records_and_lists_beside_the_columns_that_matter() -> None:
    made = truth(seed=86)
    frame = pl.DataFrame(
        {
            "time": made.time,
            "arm": made.arm,
            "features": [{"region": one, "age": 3} for one in made.region],
            "items": [[1, 2]] * len(made),
            "reward": made.reward,
        }
    )
    log = doral.read_log(frame)
    check(log, made, Expected(has_delays=False, has_costs=False))
    assert set(log.reading.unused) == {"features", "items"}


def test_87_three_thousand_columns() -> None:
    made = truth(seed=87)
    rng = np.random.default_rng(0)
    noise = {f"x{one}": rng.normal(size=len(made)) for one in range(3_000)}
    log = doral.read_log(pl.DataFrame({"time": made.time, "arm": made.arm, "reward": made.reward, **noise}))
    check(log, made, Expected(has_delays=False, has_costs=False))
