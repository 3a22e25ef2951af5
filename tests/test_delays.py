from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from doral import delays
from doral.delays import (
    ByOutcome,
    Empirical,
    Exponential,
    Fixed,
    Geometric,
    Law,
    LawCode,
    Lognormal,
    Never,
    Pareto,
    Weibull,
    laws,
)
from doral.delays.kernels import delay_quantile, unit_delay, whole_delay
from doral.errors import InvalidValue, UnknownName
from doral.numerics.kernels import (
    QUICK_ERROR,
    QUICK_UPTO,
    make_normal,
    normal_quantile,
    quick_exp,
    quick_log,
    rounded_up,
)

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # words of 64 bits wrap around

CONTINUOUS: list[tuple[Law, Any]] = [
    (Pareto(400, 2), stats.pareto(b=2, scale=400)),
    (Pareto(3, 0.7), stats.pareto(b=0.7, scale=3)),
    (Lognormal(120, 1.5), stats.lognorm(s=1.5, scale=120)),
    (Lognormal(5, 0.1), stats.lognorm(s=0.1, scale=5)),
    (Weibull(50, 0.6), stats.weibull_min(c=0.6, scale=50)),
    (Weibull(50, 3), stats.weibull_min(c=3, scale=50)),
    (Exponential(300), stats.expon(scale=300)),
]
DISCRETE: list[tuple[Law, Any]] = [(Geometric(mean), stats.geom(1 / mean)) for mean in (1.5, 300, 1e6)]

UNIFORMS = np.concatenate([[0.0, 5e-324, 1e-300, 1e-17, 1e-9], np.linspace(0.001, 0.999, 333), [1 - 1e-9, 1 - 2**-53]])
AGES = np.concatenate([[0.0, 1e-9, 0.5, 0.999, 1.0, 2.0, 2.5], np.geomspace(3, 1e7, 200)])

LAWS = st.one_of(
    st.builds(Geometric, st.floats(1, 1e6)),
    st.builds(Pareto, st.floats(1e-3, 1e4), st.floats(0.3, 10)),
    st.builds(Lognormal, st.floats(1e-3, 1e4), st.floats(0.01, 5)),
    st.builds(Weibull, st.floats(1e-3, 1e4), st.floats(0.2, 10)),
    st.builds(Exponential, st.floats(1e-3, 1e6)),
    st.builds(Fixed, st.floats(0, 1e6)),
    st.builds(Empirical, st.lists(st.floats(0, 1e6) | st.just(math.inf), min_size=1, max_size=20)),
)
LAWS = LAWS | st.builds(Never, LAWS, st.floats(0, 1))
ANY_LAWS = LAWS | st.builds(ByOutcome, above=LAWS, below=LAWS, threshold=st.floats(-10, 10))


def law_id(value: object) -> str:
    return repr(value) if isinstance(value, Law) else ""


@pytest.mark.parametrize(("law", "oracle"), CONTINUOUS, ids=law_id)
def test_continuous_laws_against_scipy(law: Law, oracle: Any) -> None:
    np.testing.assert_allclose(law.sample(UNIFORMS), oracle.ppf(UNIFORMS), rtol=1e-9)
    np.testing.assert_allclose(law.return_probability(AGES), oracle.cdf(AGES), rtol=1e-12, atol=1e-15)
    assert law.mean == pytest.approx(oracle.mean(), rel=1e-12)


@pytest.mark.parametrize(("law", "oracle"), DISCRETE, ids=law_id)
def test_the_geometric_law_against_scipy(law: Law, oracle: Any) -> None:
    inner = np.linspace(0.0013, 0.9987, 333)  # away from the steps, where rounding decides
    np.testing.assert_array_equal(law.sample(inner), oracle.ppf(inner))
    np.testing.assert_allclose(law.return_probability(AGES), oracle.cdf(AGES), rtol=1e-12)
    assert law.mean == pytest.approx(oracle.mean(), rel=1e-12)
    assert law.sample(UNIFORMS).min() == 1.0  # nothing returns in the round of the decision itself


def test_a_geometric_law_without_a_chance_to_miss() -> None:
    assert Geometric(1).sample(UNIFORMS).tolist() == [1.0] * UNIFORMS.size
    assert [Geometric(1).return_probability(age) for age in (0, 0.5, 1, math.inf)] == [0.0, 0.0, 1.0, 1.0]


def test_the_return_probabilities_that_the_paper_needs() -> None:
    assert Geometric(mean=300).return_probability(500) == pytest.approx(0.81, abs=0.005)
    assert Pareto(400, 2).return_probability(500) == pytest.approx(0.36, abs=1e-12)


def test_the_lower_tail_keeps_its_digits() -> None:
    assert Exponential(300).sample(1e-20) == pytest.approx(3e-18, rel=1e-14)
    assert Exponential(300).return_probability(3e-18) == pytest.approx(1e-20, rel=1e-14)
    assert Weibull(1, 0.5).sample(1e-20) == pytest.approx(1e-40, rel=1e-13)


@pytest.mark.parametrize(
    "law",
    [Pareto(4, 2.5), Lognormal(12, 0.8), Weibull(50, 0.6), Weibull(50, 3), Exponential(300), Geometric(2.5), Fixed(7)],
    ids=law_id,
)
def test_means_against_numerical_integration(law: Law) -> None:
    def missing(log_age: float) -> float:  # the mean is the integral of P(D > x), here over log x
        return (1 - law.return_probability(math.exp(log_age))) * math.exp(log_age)

    if isinstance(law, Geometric | Fixed):  # steps: sum instead
        numerical = math.fsum(1 - law.return_probability(age) for age in range(2_000))
    else:
        numerical, _ = integrate.quad(missing, -30, math.log(1e7), limit=2_000, epsabs=1e-9, epsrel=1e-9)
    assert law.mean == pytest.approx(numerical, rel=1e-6)


@pytest.mark.parametrize(
    "law",
    [
        Pareto(4, 1),
        Pareto(4, 0.5),
        Never(Fixed(1), 0.01),
        Empirical([1, math.inf]),
        Lognormal(1, 100),
        Weibull(1, 0.001),
    ],
    ids=law_id,
)
def test_infinite_means(law: Law) -> None:
    assert law.mean == math.inf


@given(LAWS, st.floats(0, 1, exclude_max=True))
def test_a_delay_is_the_smallest_age_that_reaches_its_probability(law: Law, uniform: float) -> None:
    delay = float(law.sample(uniform))
    assert delay >= 0
    slack = 1e-9
    if math.isinf(delay):
        assert uniform >= law.return_probability(1e300) - slack
        return
    assert law.return_probability(delay * (1 + slack)) >= uniform - slack
    just_before = delay - 1e-6 if isinstance(law, Geometric) else delay * (1 - slack) - 1e-300
    assert law.return_probability(just_before) <= uniform + slack


@given(LAWS, st.lists(st.floats(0, 1, exclude_max=True), min_size=2, max_size=20))
def test_samples_grow_with_the_uniform(law: Law, uniforms: list[float]) -> None:
    samples = law.sample(np.sort(uniforms))
    # Two infinities have no difference, hence pairs. The normal quantile's pieces meet to about one last digit.
    assert np.all(samples[1:] >= samples[:-1] * (1 - 1e-14))


@given(LAWS, st.lists(st.floats(0, 1e9), min_size=2, max_size=20))
def test_return_probabilities_are_a_distribution_function(law: Law, ages: list[float]) -> None:
    chances = law.return_probability(np.sort(ages))
    assert np.all(np.diff(chances) >= 0)
    assert np.all((chances >= 0) & (chances <= law.return_probability(math.inf)))
    assert law.return_probability(-1.0) == 0.0
    assert not np.any(np.signbit(chances))


def test_shapes_and_types() -> None:
    law = Geometric(300)
    grid = np.linspace(0, 0.9, 6).reshape(2, 3)
    np.testing.assert_array_equal(law.sample(grid.T), law.sample(grid).T)
    assert law.sample(0.5).shape == ()
    assert law.sample([]).shape == (0,)
    assert type(law.return_probability(3)) is float
    assert law.return_probability(grid).shape == (2, 3)
    assert law.return_probability(np.array(3.0)).shape == ()
    uniforms = np.array([0.25, 0.5])
    uniforms.flags.writeable = False
    law.sample(uniforms)
    assert uniforms.tolist() == [0.25, 0.5]


def test_fixed() -> None:
    assert Fixed(7).sample([0.0, 0.999]).tolist() == [7.0, 7.0]
    assert [Fixed(7).return_probability(age) for age in (6.999, 7, 8)] == [0.0, 1.0, 1.0]
    assert Fixed(0).return_probability(0) == 1.0
    assert Fixed(7).mean == 7.0


def test_empirical() -> None:
    law = Empirical([30, 10, math.inf, 20])
    assert law.values == (10.0, 20.0, 30.0, math.inf)
    assert law.sample([0.0, 0.24, 0.25, 0.5, 0.74, 0.75, 1 - 2**-53]).tolist() == [
        10,
        10,
        20,
        30,
        30,
        math.inf,
        math.inf,
    ]
    assert law.return_probability(20) == 0.5
    assert law.return_probability(math.inf) == 0.75
    assert Empirical(np.array([1, 2, 6])).mean == 3.0


@pytest.mark.parametrize("n", [1, 3, 7, 49, 1_000])
def test_empirical_values_are_equally_likely_and_the_last_uniform_stays_inside(n: int) -> None:
    values = np.arange(float(n))
    law = Empirical(values)
    np.testing.assert_array_equal(law.sample((values + 0.5) / n), values)
    assert law.sample(1 - 2**-53) == n - 1


def test_never_takes_its_mass_and_leaves_the_rest_alone() -> None:
    inner = Pareto(400, 2)
    law = Never(inner, 0.25)
    samples = law.sample((np.arange(1_000) + 0.5) / 1_000)
    assert np.isinf(samples).sum() == 250
    np.testing.assert_allclose(samples[:750], inner.sample((np.arange(750) + 0.5) / 750), rtol=1e-12)
    assert law.return_probability(500) == pytest.approx(0.75 * 0.36, rel=1e-12)
    assert law.return_probability(math.inf) == 0.75
    assert math.isfinite(law.sample(np.nextafter(0.75, 0)))
    assert law.sample(0.75) == math.inf


def test_never_at_its_ends() -> None:
    assert Never(Fixed(3), 1).sample([0.0, 0.5]).tolist() == [math.inf, math.inf]
    assert Never(Fixed(3), 1).return_probability(math.inf) == 0.0
    nearly = Never(Pareto(400, 2), 0)
    assert nearly.mean == 800.0
    np.testing.assert_array_equal(nearly.sample(UNIFORMS), nearly.law.sample(UNIFORMS))


@given(LAWS, st.floats(0, 1), st.floats(0, 1))
def test_nested_never_is_folded(law: Law, inner_p: float, outer_p: float) -> None:
    folded = Never(Never(law, inner_p), outer_p)
    assert not isinstance(folded.law, Never)
    expected = (1 - outer_p) * (1 - inner_p) * law.return_probability(1_000)
    assert folded.return_probability(1_000) == pytest.approx(expected, abs=1e-12)


def test_by_outcome_gives_a_law_for_a_reward() -> None:
    law = ByOutcome(above=Geometric(10), below=Never(Geometric(10), 0.5), threshold=0.5)
    assert law.given(0.6) == Geometric(10)
    assert law.given(0.5) == law.given(0.4) == Never(Geometric(10), 0.5)
    with pytest.raises(InvalidValue, match="^reward = nan: must be a finite number"):
        law.given(math.nan)
    assert not hasattr(law, "return_probability")
    assert not hasattr(law, "encode")


@given(LAWS, st.lists(st.floats(0, 1, exclude_max=True), max_size=5))
def test_one_table_serves_many_empirical_laws(law: Law, uniforms: list[float]) -> None:
    code = law.encode()
    assert isinstance(code, LawCode)
    table = np.concatenate([[-1.0, -2.0], code.values, [-3.0]])
    start, stop = 2, 2 + code.values.size
    found = [delay_quantile(code.kind, code.a, code.b, code.never, table, start, stop, u) for u in uniforms]
    assert found == law.sample(uniforms).tolist()


@given(LAWS, st.lists(st.integers(0, 2**53 - 1), max_size=20))
def test_whole_delays_are_those_that_the_law_says_rounded_up(law: Law, drawn: list[int]) -> None:
    code = law.encode()
    for u in [0.0, 1 - 2.0**-53, *(n * 2.0**-53 for n in drawn)]:
        given = (code.kind, code.a, code.b, code.never, code.values, 0, code.values.size, u)
        expected = max(1.0, rounded_up(delay_quantile(*given)))
        unit = unit_delay(code.kind, code.b, quick_log(1.0 - u))
        assert whole_delay(*given, unit) == whole_delay(*given, math.nan) == expected


def test_near_a_whole_number_the_law_itself_is_asked() -> None:
    code = Pareto(1, 1).encode()
    for n in range(2, 2_000):  # 1 / (1 - u) is about n, and the draws beside it are the next below and above
        near = round((1.0 - 1.0 / n) * 2.0**53)
        for u in (np.arange(near - 3, near + 4) * 2.0**-53).tolist():
            given = (code.kind, code.a, code.b, 0.0, code.values, 0, 0, u)
            unit = unit_delay(code.kind, code.b, quick_log(1.0 - u))
            assert whole_delay(*given, unit) == rounded_up(delay_quantile(*given))


@given(st.integers(1, 2**53), st.floats(0.1, 10))
def test_what_is_quick_is_nearly_right(n: int, power: float) -> None:
    x = n * 2.0**-53
    assert quick_log(x) == pytest.approx(math.log(x), rel=1e-11, abs=0.0)
    if abs(power * math.log(x)) < QUICK_UPTO:
        for found in (power * quick_log(x), -power * quick_log(x)):
            assert quick_exp(found) == pytest.approx(math.exp(found), rel=QUICK_ERROR, abs=0.0)
            assert quick_exp(found) == pytest.approx(math.pow(x, math.copysign(power, -found)), rel=QUICK_ERROR)


def test_an_unknown_kind_is_no_delay() -> None:
    assert math.isnan(delay_quantile(99, 1.0, 1.0, 0.0, np.empty(0), 0, 0, 0.5))


def test_huge_delays_become_never_and_stay_quiet() -> None:
    assert Pareto(1, 1e-3).sample(0.9) == math.inf
    assert Geometric(1e300).sample(0.5) == pytest.approx(1e300 * math.log(2))
    assert Lognormal(1, 1e3).sample(1 - 1e-9) == math.inf


def test_the_normal_quantile_against_scipy() -> None:
    tail = np.geomspace(5e-324, 0.5, 2_000)
    uniforms = np.concatenate([tail, 1 - tail[tail > 2**-53], np.linspace(1e-6, 1 - 1e-6, 2_001), [0.075, 0.925]])
    found = np.array([normal_quantile(u) for u in uniforms])
    np.testing.assert_allclose(found, special.ndtri(uniforms), rtol=1e-14, atol=0)
    assert normal_quantile(0.0) == -math.inf
    assert normal_quantile(1.0) == math.inf
    assert normal_quantile(0.5) == 0.0


def test_many_normal_draws_are_the_quantiles_of_each() -> None:
    uniforms = np.concatenate([[0.0, 0.075, 0.925, 1 - 2**-53], np.random.default_rng(1).random(1000)])
    draws = uniforms.copy()
    make_normal(draws)
    assert draws.tolist() == [normal_quantile(max(u, 2**-54)) for u in uniforms.tolist()]


@given(ANY_LAWS)
def test_dictionaries_round_trip_through_json_exactly(law: delays.AnyLaw) -> None:
    text = json.dumps(law.to_dict(), allow_nan=False)
    assert delays.from_dict(json.loads(text)) == law


def test_every_law_has_a_name_in_dictionaries() -> None:
    own = [law for law in Law.__subclasses__() if law.__module__.startswith("doral.delays")]  # not what rows make of it
    names = {law.__name__ for law in own} | {"ByOutcome"}
    assert set(laws.LAWS) == names


def test_bad_dictionaries() -> None:
    with pytest.raises(UnknownName, match="^unknown delay law 'Paretto'; did you mean 'Pareto'"):
        delays.from_dict({"type": "Paretto"})
    with pytest.raises(InvalidValue, match="^Pareto = .*: lacks the key 'shape'$"):
        delays.from_dict({"type": "Pareto", "minimum": 3})
    with pytest.raises(InvalidValue, match="^Fixed = .*: has the unknown key 'mean'"):
        delays.from_dict({"type": "Fixed", "delay": 3, "mean": 4})
    with pytest.raises(InvalidValue, match="^shape of Pareto = -1: "):
        delays.from_dict({"type": "Pareto", "minimum": 3, "shape": -1})
    with pytest.raises(InvalidValue, match="^delay law = 'Pareto': must be a mapping with a \"type\"$"):
        delays.from_dict("Pareto")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="^law of Never = 7: must be a delay law"):
        delays.from_dict({"type": "Never", "law": 7, "p": 0.5})
    endless: dict[str, Any] = {"type": "Fixed", "delay": 1}
    for _ in range(100):
        endless = {"type": "Never", "law": endless, "p": 0.5}
    with pytest.raises(InvalidValue, match="must not be nested deeper than 8 levels$"):
        delays.from_dict(endless)


NOT_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, True, "7", None, [7]]


@pytest.mark.parametrize(
    ("make", "field", "bad", "remedy"),
    [
        (Geometric, "mean of Geometric", [0.99, 0, -1], "must be a finite number of at least 1"),
        (lambda v: Pareto(v, 2), "minimum of Pareto", [0, -1], "must be a finite number above 0"),
        (lambda v: Pareto(400, v), "shape of Pareto", [0, -1], "must be a finite number above 0"),
        (lambda v: Lognormal(v, 1), "median of Lognormal", [0, -1], "must be a finite number above 0"),
        (lambda v: Lognormal(5, v), "sigma of Lognormal", [0, -1], "must be a finite number above 0; without spread"),
        (lambda v: Weibull(v, 1), "scale of Weibull", [0, -1], "must be a finite number above 0"),
        (lambda v: Weibull(5, v), "shape of Weibull", [0, -1], "must be a finite number above 0"),
        (Exponential, "mean of Exponential", [0, -1], "must be a finite number above 0"),
        (Fixed, "delay of Fixed", [-1], "must be a finite number of at least 0; an answer that never comes"),
        (
            lambda v: Never(Fixed(1), v),
            "p of Never",
            [-0.1, 1.1],
            "must be a finite number of at least 0 and at most 1",
        ),
        (
            lambda v: ByOutcome(above=Fixed(1), below=Fixed(2), threshold=v),
            "threshold of ByOutcome",
            [],
            "must be a finite number",
        ),
    ],
)
def test_bad_parameters(make: Any, field: str, bad: list[float], remedy: str) -> None:
    for value in [*NOT_NUMBERS, *bad]:
        with pytest.raises(InvalidValue, match=f"^{field} = .*: {remedy}") as caught:
            make(value)
        assert caught.value.field == field


def test_bad_empirical_values() -> None:
    for value in [math.nan, -math.inf, -1.0, True, "7", None]:
        with pytest.raises(
            InvalidValue, match="^values of Empirical = .*: must be a finite number of at least 0; math.inf"
        ):
            Empirical([1.0, value])  # type: ignore[list-item]
    with pytest.raises(InvalidValue, match="^number of values of Empirical = 0: must be from 1 to "):
        Empirical([])
    with pytest.raises(InvalidValue, match="^values of Empirical = 7: must be a list of delays"):
        Empirical(7)  # type: ignore[arg-type]


def test_laws_only_inside_laws() -> None:
    by_outcome = ByOutcome(above=Fixed(1), below=Fixed(2))
    with pytest.raises(
        InvalidValue, match="^law of Never = ByOutcome.*: must be a delay law with a return probability"
    ):
        Never(by_outcome, 0.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="^above of ByOutcome = 3: must be a delay law"):
        ByOutcome(above=3, below=Fixed(1))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="^below of ByOutcome = ByOutcome"):
        ByOutcome(above=Fixed(1), below=by_outcome)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1.0, -1e-9, math.nan, [0.5, 1.0], "half", [[0.5], [0.5, 0.5]]])
def test_bad_uniforms(value: Any) -> None:
    with pytest.raises(InvalidValue, match="^uniforms = .*: must all be numbers from 0 to below 1$"):
        Fixed(1).sample(value)


@pytest.mark.parametrize("value", [math.nan, "old", [1.0, math.nan]])
def test_bad_ages(value: Any) -> None:
    with pytest.raises(InvalidValue, match="^age = .*: must be a number of rounds$"):
        Fixed(1).return_probability(value)
