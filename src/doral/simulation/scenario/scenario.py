"""Scenario: a problem together with what is true of it, as pure data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral._arrays import Floats
from doral._input_types import Column, Columns, Duration, Frame, NumberArray, Numbers, NumberTable, NumberTables
from doral.delays import AnyLaw, ByOutcome, Law
from doral.errors import InvalidValue
from doral.numerics.elementary import product
from doral.problem import OBSERVED, SHARES_TOLERANCE, Problem
from doral.simulation.scenario.arrivals import Arrivals
from doral.simulation.scenario.calendar import Calendar
from doral.simulation.scenario.people import (
    STRATA,
    Crowd,
    Table,
    are_drawn,
    check_means,
    checked_people,
    draw_crowd,
    frequencies_of,
    generator,
    given_people,
)
from doral.simulation.scenario.people import Law as PeopleLaw
from doral.simulation.scenario.rows import Rows, checked_rows, delay_laws, mean_rewards
from doral.simulation.scenario.strata import MOST_STRATA, Strata, checked_bins, make_strata, strata_problem

if TYPE_CHECKING:
    from doral.logs.read import AnyLog, ColumnOptions

Noise = Literal["gaussian", "bernoulli", "poisson", "none"]
Features = Literal["given", "drawn"]
PaidWhen = Literal["always", "on_success", "by_row"]
Made = TypeVar("Made")

# Arguments of a scenario, for type checkers.
ArmLaws: TypeAlias = AnyLaw | Sequence[AnyLaw] | Mapping[str, AnyLaw]
DelaysLike: TypeAlias = ArmLaws | Mapping[str, ArmLaws] | tuple[tuple[AnyLaw, ...], ...]
MeansLike: TypeAlias = NumberTables | PeopleLaw | Table
BaselineLike: TypeAlias = float | Numbers | PeopleLaw | Table
AvailabilityLike: TypeAlias = float | Numbers | Mapping[str, float]
CellRows: TypeAlias = NumberTable  # (reward, delay), or (reward, delay, cost)
RowsLike: TypeAlias = Mapping[str, Mapping[str, CellRows]] | tuple[Sequence[CellRows], ...] | Rows
RowWeightsLike: TypeAlias = Mapping[str, Mapping[str, Numbers]] | tuple[Sequence[Numbers], ...]
PaidLike: TypeAlias = Literal["always", "on_success", "by_row"] | NumberTable | PeopleLaw | Table
PeopleLike: TypeAlias = (
    NDArray[Any]
    | Frame
    | Columns
    | Sequence[Mapping[str, Any]]
    | Sequence[list[Any]]
    | Sequence[tuple[Any, ...]]
    | PeopleLaw
    | Crowd
)
ClassesLike: TypeAlias = Column
SpeedLike: TypeAlias = Numbers | PeopleLaw | Table
FrequenciesLike: TypeAlias = Sequence[float | Sequence[float] | NumberArray] | NumberArray | PeopleLaw | Table


def _table(field: str, value: object, shape: tuple[int, int]) -> tuple[tuple[float, ...], ...]:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValue(field, value, f"must be numbers of shape {shape}") from None
    if array.shape != shape:
        raise InvalidValue(f"shape of {field}", array.shape, f"must be {shape}")
    if not np.isfinite(array).all():
        raise InvalidValue(field, value, "must hold finite numbers only")
    return tuple(tuple(row) for row in array.tolist())


def _by_arm(field: str, value: object, problem: Problem) -> tuple[Any, ...]:
    """One entry per arm, from one for all, a list in the order of the arms, or a mapping by name."""
    if isinstance(value, Mapping):
        return tuple(_check.by_name(field, value, problem.arm_names, kind="arm"))
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        entries = tuple(value)
        if len(entries) != problem.n_arms:
            raise InvalidValue(f"number of {field}", len(entries), f"must be one per arm, {problem.n_arms}")
        return entries
    return (value,) * problem.n_arms


def _laws(field: str, value: object, problem: Problem) -> tuple[AnyLaw, ...]:
    laws = _by_arm(field, value, problem)
    for law in laws:
        if not isinstance(law, Law | ByOutcome):
            raise InvalidValue(field, law, "must be delay laws, such as doral.delays.Geometric(mean=300)")
    return laws


def _laws_by_context(value: object, problem: Problem) -> tuple[tuple[AnyLaw, ...], ...]:
    """One row for all contexts, or one row per context where the laws depend on it."""
    if isinstance(value, Mapping) and set(value) <= set(problem.context_names) and value:
        rows = _check.by_name("delays", value, problem.context_names, kind="context")
        return tuple(
            _laws(f"delays of context {name!r}", row, problem)
            for name, row in zip(problem.context_names, rows, strict=True)
        )
    if isinstance(value, tuple) and value and all(isinstance(row, tuple) for row in value):  # as stored
        if len(value) not in (1, problem.n_contexts):
            raise InvalidValue("rows of delays", len(value), f"must be 1 or one per context, {problem.n_contexts}")
        return tuple(_laws("delays", row, problem) for row in value)
    return (_laws("delays", value, problem),)


@dataclass(frozen=True, init=False)
class Scenario:
    """A problem together with what is true of it: rewards, delays, who arrives. Runs draw from it.

    What arms bring is said by `means`, by `theta`, or by `rows`; without any of them theta is drawn from U(0, 1) anew
    for every run. Where the problem says what is known of a `person`, `people` and `means` say it person by person.
    A law is a function that draws: `means`, `paid`, `speed` and `frequencies` may be `law(people, features)`, called
    with the columns of the people and the features of the arms; with a parameter `rng` it may draw anew for each run.

    Args:
        name: What it is called in results.
        problem: What is asked: a `Problem`.
        delays: How long answers take, in rounds, or in units of the clock where the problem has `until`: a law of
            `doral.delays`, one for each arm (a list in their order, or a mapping by name), or a mapping from context
            to such a thing. Follow from `rows` where these are given.
        theta: (contexts, features): the expected reward of an arm is the product of theta with its features.
        means: (contexts, arms): the expected rewards themselves. Of people (people, arms), or (phases, people, arms),
            or a law.
        baseline_means: Where the baseline of the problem is "observed": what doing nothing brings, one number, or one
            per context or person; `theta` and `means` are then those of the other arms.
        features: "given": arms have the features of the problem; "drawn": they are drawn from U(0, 1) for every run,
            and those of the problem only say how many. Default: "given".
        noise: How rewards scatter: "gaussian" (by `noise_sd`), "bernoulli" (means are chances of a reward of 1),
            "poisson" (means are expected counts) or "none". Default: "gaussian".
        noise_sd: The standard deviation of gaussian noise, in units of reward. Default: 0.1.
        availability: The chance that an arm can be had, from 0 to 1: one for all, a list, or a mapping by name. None:
            always.
        shares: How often each context arrives: numbers above 0 that sum to 1. None: the shares of the problem; where
            that learns them, all contexts arrive equally often.
        phases: Into how many equal parts the horizon is cut; in each, contexts take other thetas. Default: 1, a world
            that does not change.
        rows: What was observed, {context: {arm: [(reward, delay), ...]}}: each decision draws one of the rows of its
            cell, reward and delay together; an infinite delay is an answer that never comes. A third number is what
            was paid, at most the cost of the arm.
        row_weights: {context: {arm: weights}}: how likely each row is, relative to the others of its cell. None: all
            alike.
        paid: "always": a decision costs what its arm costs; "on_success": that is paid only where an answer with a
            reward above 0 is heard within the deadline; "by_row": what the rows say; (contexts, arms) or
            (people, arms), or a law: the chance that it is paid where any answer is. Default: "always".
        arrivals: Where the problem ends with a date: how people arrive in time, `doral.Arrivals` or `doral.Calendar`.
        people: All who may come: an array (people, features), a data frame, a mapping from feature to column, a list of
            mappings; or a law `law(rng, n)` that returns one of these, anew for each run. A column "context" names
            each one's context where there are several.
        population: How many a law of people draws. None: 20,000.
        classes: The context of each by name, where people have no column "context".
        speed: (people,) or a law: multiplies the hazard of an answer: who is twice as fast has not answered by an age
            with the square of the usual probability. None: 1.
        frequencies: (people,) or (phases, people) or a law: how often each arrives, relative to the others. None:
            all alike.
        strata: What `stratified` has made; leave it out.

    >>> from doral import Arm, delays
    >>> problem = Problem(arms=[Arm("a"), Arm("b")], contexts=["young", "old"], budget=50, horizon=100, deadline=20)
    >>> Scenario(name="mine", problem=problem, means=[[0.2, 0.8], [0.5, 0.4]], delays=delays.Geometric(5))
    <Scenario 'mine': 2 arms, 2 contexts that come equally often, budget 50, horizon 100, deadline 20, means 0.2 to 0.8>
    """

    name: str
    problem: Problem
    delays: tuple[tuple[AnyLaw, ...], ...]  # one row for all contexts, or one per context
    theta: tuple[tuple[float, ...], ...] | None
    means: Any  # rows of numbers, one per context; a Table by person; a law; None
    features: Features
    noise: Noise
    noise_sd: float
    availability: tuple[float, ...] | None
    shares: tuple[float, ...]
    phases: int
    rows: Rows | None
    paid: Any  # PaidWhen; rows of chances, one per context; a Table by person; a law
    arrivals: Arrivals | Calendar | None
    people: Crowd | PeopleLaw | None
    population: int | None  # how many they are
    speed: Table | PeopleLaw | None
    frequencies: Table | PeopleLaw | None
    strata: Strata | None  # where classes are made of people

    def __init__(
        self,
        *,
        name: str,
        problem: Problem,
        delays: DelaysLike | None = None,
        theta: NumberTable | None = None,
        means: MeansLike | None = None,
        baseline_means: BaselineLike | None = None,
        features: Features = "given",
        noise: Noise = "gaussian",
        noise_sd: float = 0.1,
        availability: AvailabilityLike | None = None,
        shares: Numbers | None = None,
        phases: int = 1,
        rows: RowsLike | None = None,
        row_weights: RowWeightsLike | None = None,
        paid: PaidLike = "always",
        arrivals: Arrivals | Calendar | None = None,
        people: PeopleLike | None = None,
        population: int | None = None,
        classes: ClassesLike | None = None,
        speed: SpeedLike | None = None,
        frequencies: FrequenciesLike | None = None,
        strata: Strata | None = None,
    ) -> None:
        if not isinstance(problem, Problem):
            raise InvalidValue("problem", problem, "must be a doral.Problem")
        if features not in get_args(Features):
            raise InvalidValue("features", features, "must be given or drawn")
        if noise not in get_args(Noise):
            raise InvalidValue("noise", noise, "must be gaussian, bernoulli, poisson or none")
        of_people: dict[str, Any] = {}
        if people is None:
            _check_no_people(problem, population, classes=classes, speed=speed, frequencies=frequencies, strata=strata)
        else:
            _check_with_people(theta=theta, rows=rows, shares=shares)
            of_people = checked_people(
                problem=problem,
                people=people,
                population=population,
                classes=classes,
                means=means,
                baseline_means=baseline_means,
                speed=speed,
                frequencies=frequencies,
                paid=paid,
                strata=strata,
            )
            # What follows is about contexts, and learns nothing from people.
            nothing = np.zeros((problem.n_contexts, problem.n_arms))
            means, baseline_means, paid = nothing, None, paid if isinstance(paid, str) else nothing
            shares = np.full(problem.n_contexts, 1.0 / problem.n_contexts)
        if rows is None and row_weights is not None:
            raise InvalidValue("row_weights", row_weights, "are of rows: give those, too, or leave it out")
        observed = None if rows is None else checked_rows(rows, row_weights, problem)
        if observed is not None:
            delays, means = _of_rows(observed, delays, means)
            _check_alone(theta=theta, features=features, noise=noise, phases=phases)
        paid = _paid(paid, problem, observed)
        if theta is not None and means is not None:
            raise InvalidValue("means", means, "give theta or means, not both")
        if problem.n_features == 0 and (features == "drawn" or means is None):
            raise InvalidValue("means", means, "the arms have no features to draw or to multiply: give means")
        if baseline_means is None and _lack_nothing(means, problem):
            remedy = "the baseline is observed: say what doing nothing brings, one number or one per context"
            raise InvalidValue("baseline_means", None, remedy)
        if baseline_means is not None:
            theta, means = _with_baseline(baseline_means, theta, means, problem)
        _check_arrivals(arrivals, problem, phases)
        _check.set_fields(
            self,
            name=_check.name("name of a scenario", name),
            problem=problem,
            delays=_laws_by_context(delays, problem),
            theta=None if theta is None else _table("theta", theta, (problem.n_contexts, problem.n_features)),
            means=None if means is None else _table("means", means, (problem.n_contexts, problem.n_arms)),
            features=features,
            noise=noise,
            noise_sd=_check.finite_number("noise_sd", noise_sd, at_least=0),
            availability=None if availability is None else _availability(availability, problem),
            shares=_shares_of(arrivals, shares, problem),
            phases=_check.whole_number("phases", phases, at_least=1, at_most=min(problem.expected_rounds, 1_000)),
            rows=observed,
            paid=paid,
            arrivals=arrivals,
            people=None,
            population=None,
            speed=None,
            frequencies=None,
            strata=None,
        )
        if of_people:
            _check.set_fields(self, shares=(), **of_people)
            self._check_given_people()
            return
        if noise in ("bernoulli", "poisson"):
            self._check_means()
        self._check_reserves()

    def _check_reserves(self) -> None:
        if self.problem.reserves and self.availability is not None:
            remedy = "cannot be combined with reserves: the oracle to compare with is not known for both"
            raise InvalidValue("availability", self.availability, remedy)

    def _check_given_people(self) -> None:
        """Tables that are given are as wrong before the first run as in it."""
        self._check_reserves()
        if not are_drawn(self):
            self.once(given_people)

    def _check_means(self) -> None:
        """Chances are probabilities, and expected counts are not negative, drawn or given."""
        features, theta, is_drawn = self.problem.features, self.theta, self.features == "drawn"
        if self.means is None and (theta is None or is_drawn) and self.noise == "bernoulli":
            remedy = "needs known means between 0 and 1: give means, or theta with the features of the problem"
            raise InvalidValue("noise", self.noise, remedy)
        if self.means is not None:
            check_means(np.array(self.means), self.noise)
        elif theta is not None and not is_drawn:
            check_means(product(np.array(theta), features.T), self.noise)
        else:  # products of what is drawn from U(0, 1), and of what is given
            given = 0.0 if is_drawn else features.min()
            check_means(np.minimum(given, 0.0 if theta is None else np.array(theta)), self.noise)

    @classmethod
    def from_log(
        cls,
        log: AnyLog,
        *,
        budget: float | None = None,
        horizon: float | None = None,
        deadline: Duration | None = None,
        name: str | None = None,
        seed: int = 0,
        **columns: Unpack[ColumnOptions],
    ) -> Scenario:
        """The world that a log tells of: who came and when, and what became of what was done.

        Rows are drawn again within their cells, reward, delay and cost together; thin cells borrow from others of their
        arm.

        Args:
            log: One that `doral.read_log` has read, or anything that it reads.
            budget: What can be spent in all. None: as in the log.
            horizon: How many arrive. None: as many as in the log.
            deadline: How old an answer may be to count: "14d", or a number in the unit of the log's
                times. None: as long as its answers take.
            name: What the scenario is called. None: as the log.
            seed: Of the draws by which thin cells borrow. Default: 0.
            columns: Options of `doral.read_log`, where `log` is still to be read.
        """
        from doral.simulation.scenario.from_log import scenario_from_log

        return scenario_from_log(
            log, budget=budget, horizon=horizon, deadline=deadline, name=name, seed=seed, columns=dict(columns)
        )

    @classmethod
    def named(cls, name: str) -> Scenario:
        """What `doral.scenario` returns, for a name that a program reads and a type checker cannot know.

        Args:
            name: The name of a scenario that ships.
        """
        from doral.simulation.catalogue.lookup import named_scenario  # here: the catalogue is made of scenarios

        return named_scenario(name)

    @property
    def true_shares(self) -> Floats:
        """How often each context arrives."""
        return np.array(self.shares)

    def stratified(self, by: Sequence[str] | None = None, *, bins: int = 4, at_most: int = MOST_STRATA) -> Scenario:
        """The same people, draws and truth for policies that know classes alone: people are cut into strata.

        Numbers are cut into bins of equally many, words are as they are (those that fewer than one in 64 have go
        together), and each feature is crossed with those before it. Where people are drawn, cuts and shares are those
        of one sample of their law, the same for all runs.

        Args:
            by: Names of the features to cut by. None: all, in the order of the problem.
            bins: Into how many bins a number is cut. Default: 4.
            at_most: Features are crossed as long as at most this many strata are not empty.
        """
        if self.people is None or self.strata is not None:
            raise InvalidValue("scenario", self.name, "has no people to cut into strata: it has classes already")
        few, most = checked_bins(bins, at_most)
        crowd = draw_crowd(self, generator(0, 0, STRATA))
        come = frequencies_of(self, crowd, generator(0, 0, STRATA))
        strata, counts = make_strata(self.problem, crowd, come, by=by, bins=few, at_most=most)
        delays = self.delays
        if len(delays) > 1:
            delays = tuple(delays[cell[0]] for cell in strata.cells)
        return dataclasses.replace(
            self,
            name=f"{self.name}@strata",
            problem=strata_problem(self.problem, strata, counts),
            delays=delays,
            strata=strata,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold, if all of it is data; `from_dict` gives an equal scenario back."""
        from doral.simulation.scenario.files import scenario_to_dict  # here: files know scenarios

        return scenario_to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scenario:
        """Make the scenario that `to_dict` wrote, or that was written by hand, with every check made again.

        Args:
            data: A mapping of plain values, as JSON holds them; what is usual may be left out.
        """
        from doral.simulation.scenario.files import scenario_from_dict

        return scenario_from_dict(data)

    def once(self, make: Callable[[Scenario], Made]) -> Made:
        """What `make` makes of this scenario, made when first asked for. All runs share it: it must not be changed.

        Args:
            make: A function of the scenario.
        """
        kept: dict[Callable[[Scenario], Any], Any] = self.__dict__.setdefault("_kept", {})
        if make not in kept:
            kept.setdefault(make, make(self))  # threads that make it at the same time go on with the same one
        made: Made = kept[make]
        return made

    def __repr__(self) -> str:
        from doral.simulation.scenario.description import in_words

        return in_words(self)

    def _repr_html_(self) -> str:
        from doral.simulation.scenario.description import scenario_card

        return scenario_card(self)

    def __getstate__(self) -> dict[str, Any]:
        # Without what is made once: it can be large, and the other side makes its own.
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _check_no_people(problem: Problem, population: object, **given: object) -> None:
    if problem.person:
        remedy = "the problem says what is known of a person: say who may come, an array, a data frame or a law"
        raise InvalidValue("people", None, remedy)
    for field, value in {"population": population, **given}.items():
        if value is not None:
            raise InvalidValue(field, value, "is about people: give them, too, or leave it out")


def _check_with_people(*, theta: object, rows: object, shares: Any) -> None:
    """What people cannot be combined with."""
    if theta is not None:
        raise InvalidValue("theta", theta, "belongs to contexts; what people bring is said by means")
    if rows is not None:
        remedy = "are observed by context: where people have features, give means and delays"
        raise InvalidValue("rows", rows, remedy)
    if shares is not None and len(shares) > 0:
        raise InvalidValue("shares", shares, "are of contexts; how often each person comes is said by frequencies")


def _check_arrivals(arrivals: object, problem: Problem, phases: object) -> None:
    """Times of arrivals are for problems that end with a date, and those need them."""
    if arrivals is not None and not isinstance(arrivals, Arrivals | Calendar):
        raise InvalidValue("arrivals", arrivals, "must be doral.Arrivals(number=...), doral.Calendar(times), or None")
    if problem.until is None:
        if arrivals is not None:
            raise InvalidValue("arrivals", arrivals, "are for a problem with until=...; horizon says how many come")
        return
    if arrivals is None:
        raise InvalidValue("arrivals", None, "the problem ends with a date: say how people arrive, doral.Arrivals(...)")
    if phases != 1:
        raise InvalidValue("phases", phases, "are parts of a horizon: must be 1 where the problem ends with a date")
    if isinstance(arrivals, Arrivals):
        arrivals.check(problem.until)
        return
    if problem.person and arrivals.contexts is not None:
        remedy = "are of contexts alone: where people have features, their frequencies say who comes"
        raise InvalidValue("contexts of Calendar", arrivals, remedy)
    arrivals.check(problem.until, problem.n_contexts)


def _shares_of(arrivals: Arrivals | Calendar | None, value: object, problem: Problem) -> tuple[float, ...]:
    """Those of the contexts that came, where a calendar has them; shares that are given, too, must agree."""
    known = arrivals.shares(problem.n_contexts) if isinstance(arrivals, Calendar) else None
    if known is None:
        return _true_shares(value, problem)
    shares = tuple(known.tolist())
    if value is not None and value != shares:
        raise InvalidValue("shares", value, "follow from the contexts of the calendar: leave them out, or shares=None")
    return shares


def _of_rows(rows: Rows, delays: Any, means: Any) -> tuple[Any, Any]:
    """Return delays and means, which follow from the rows; those that are given, too, must agree."""
    theirs = delay_laws(rows), mean_rewards(rows)
    for field, given, follows in zip(("delays", "means"), (delays, means), theirs, strict=True):
        if given is not None and not (isinstance(given, tuple) and given == follows):
            raise InvalidValue(field, given, "follow from the rows; leave them out")
    return theirs


def _check_alone(*, theta: object, features: str, noise: str, phases: object) -> None:
    """What rows cannot be combined with."""
    if theta is not None or features == "drawn" or noise in ("bernoulli", "poisson") or phases != 1:
        given = {"theta": theta, "features": features, "noise": noise, "phases": phases}
        raise InvalidValue(
            "rows", given, "say all there is to say of rewards: leave theta, features, noise and phases out"
        )


def _lack_nothing(means: Any, problem: Problem) -> bool:
    """Whether means are those of all arms but that of doing nothing."""
    if problem.baseline != OBSERVED or not isinstance(means, Sequence | np.ndarray):
        return False
    return all(isinstance(row, Sequence | np.ndarray) and len(row) == problem.n_arms - 1 for row in means)


def _with_baseline(
    baseline_means: object, theta: object, means: object, problem: Problem
) -> tuple[Floats | None, Floats | None]:
    """Theta and means with those of doing nothing in their place: its feature is the last, its arm anywhere."""
    if problem.baseline != OBSERVED or problem.control is None:
        remedy = f"is for problems with baseline={OBSERVED!r}; a known one stands there, an arm has means of its own"
        raise InvalidValue("baseline_means", baseline_means, remedy)
    if theta is None and means is None:
        raise InvalidValue("baseline_means", baseline_means, "needs theta or means of the other arms, too")
    given = [baseline_means] * problem.n_contexts if isinstance(baseline_means, int | float) else baseline_means
    nothing = np.array(_table("baseline_means", [given], (1, problem.n_contexts))[0])
    if theta is not None:
        own = np.array(_table("theta", theta, (problem.n_contexts, problem.n_features - 1)))
        return np.column_stack([own, nothing]), None
    own = np.array(_table("means", means, (problem.n_contexts, problem.n_arms - 1)))
    return None, np.insert(own, problem.control, nothing, axis=1)


def _paid(value: object, problem: Problem, rows: Rows | None) -> PaidWhen | tuple[tuple[float, ...], ...]:
    if rows is not None and rows.cost is not None:
        if not _check.is_among(value, ("always", "by_row")):
            raise InvalidValue("paid", value, "rows say what is paid; leave it out, or the costs of the rows")
        return "by_row"
    if _check.is_among(value, ("by_row",)):
        raise InvalidValue("paid", value, "needs rows that say what was paid: (reward, delay, cost)")
    if isinstance(value, str):
        if value not in get_args(PaidWhen):
            raise InvalidValue("paid", value, "must be always, on_success, or a table of probabilities")
        if value == "always" and problem.paid == "on_answer":
            remedy = "the problem says on_answer: say on_success, give a table of chances, or rows with costs"
            raise InvalidValue("paid", value, remedy)
        return value  # type: ignore[return-value]
    table = _table("paid", value, (problem.n_contexts, problem.n_arms))
    if not all(0.0 <= chance <= 1.0 for row in table for chance in row):
        raise InvalidValue("paid", value, "must hold probabilities, from 0 to 1")
    return table


def _availability(value: object, problem: Problem) -> tuple[float, ...]:
    chances = _by_arm("availability", value, problem)
    return tuple(_check.finite_number("availability", chance, at_least=0, at_most=1) for chance in chances)


def _true_shares(value: object, problem: Problem) -> tuple[float, ...]:
    if value is None:
        if problem.shares is None:  # policies learn them, and a simulation needs some: all alike
            return (1.0 / problem.n_contexts,) * problem.n_contexts
        return tuple(problem.shares.tolist())
    shares = np.array(_table("shares", [value], (1, problem.n_contexts))[0])
    if (shares <= 0.0).any() or abs(shares.sum() - 1.0) > SHARES_TOLERANCE:
        raise InvalidValue("shares", value, "must be above 0 and sum to 1")
    return tuple(shares.tolist())
