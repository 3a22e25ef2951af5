"""`doral campaign decide-many`, `feedback-many`, `record-many`: batches from files.

The whole file is checked before anything is stored. Each batch is stored whole or not at all, and by default a file is
one batch, unless it is larger than a batch can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doral.cli.campaign_options import DEFAULT_STORAGE, Json, Name, Storage, Tolerance, opened
from doral.cli.campaign_people import check_person, feature_cells, gathered
from doral.cli.campaign_words import counted, decision_line
from doral.errors import DoralError, InvalidValue
from doral.live.errors import CampaignError, OutcomeUnknown, StorageError

if TYPE_CHECKING:
    from doral.cli.campaign_tables import Row, Table
    from doral.live.views.decision import Decision
    from doral.person import Feature

_MOST = 100_000
_BATCH_HELP = "Rows that are stored together, all or none."
_INTERRUPTED = "batches that were finished are stored; rows with keys can be given again"

_FILE_HELP = "CSV with a header, in UTF-8 (- reads standard input); or .jsonl, an object per line; or .parquet."
File = Annotated[Path, typer.Argument(metavar="FILE", help=_FILE_HELP)]
Batch = Annotated[int, typer.Option("--batch", min=1, max=_MOST, help=_BATCH_HELP)]


def decide_many(
    name: Name,
    path: File,
    batch: Batch = _MOST,
    as_json: Json = False,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Decide for many arrivals.

    Columns: context (unless there is only one); available (a list in JSON), key, at; and where people have features,
    one for each, weight, deadline. Prints the decisions as CSV.
    """
    with opened(storage, clock_tolerance=clock_tolerance, if_interrupted=_INTERRUPTED) as store:
        from doral.cli.campaign_tables import Table, names, number, text, time
        from doral.live.kinds.decide import arrival_of

        campaign = store.campaign(name)
        problem = campaign.problem

        def check(content: dict[str, Any]) -> None:
            request = gathered(problem, content)
            arrival_of(request)
            check_person(problem, request)

        is_said = {"context": text} if problem.n_contexts > 1 else {}
        table = Table(
            required=is_said,
            optional={
                **({} if is_said else {"context": text}),
                "available": names,
                "key": text,
                "at": time,
                **({"weight": number, "deadline": number, **feature_cells(problem)} if problem.person else {}),
            },
            check=check,
        )

        def decide(rows: list[dict[str, Any]]) -> list[Decision]:
            return campaign.decide_many([gathered(problem, row) for row in rows])

        _store(path, table, batch, decide, _printer(as_json=as_json, person=problem.person))


def feedback_many(
    name: Name,
    path: File,
    batch: Batch = _MOST,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Answers to many decisions.

    Columns: decision_id (or id, as decide-many writes it), reward; actual_cost, key, at.
    """
    with opened(storage, clock_tolerance=clock_tolerance, if_interrupted=_INTERRUPTED) as store:
        from doral.cli.campaign_tables import Table, number, text, time
        from doral.live.kinds.answer import answer_of

        table = Table(
            required={"decision_id": text, "reward": number},
            optional={"actual_cost": number, "key": text, "at": time},
            check=answer_of,
            also={"id": "decision_id"},  # as decide-many writes it
        )
        states: Counter[str] = Counter()
        _store(path, table, batch, store.campaign(name).feedback_many, lambda made: states.update(_states(made)))
        typer.echo(_summary(states))


def record_many(
    name: Name,
    path: File,
    batch: Batch = _MOST,
    as_json: Json = False,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Many decisions that were made elsewhere.

    Columns: context (unless there is only one), arm (empty: got nothing), at; reward, answered_at, cost, probability,
    spend (true or false), key; and where people have features, one for each, weight, deadline. Prints the decisions as
    CSV.
    """
    with opened(storage, clock_tolerance=clock_tolerance, if_interrupted=_INTERRUPTED) as store:
        from doral.cli.campaign_tables import Table, flag, number, text, time

        campaign = store.campaign(name)
        problem = campaign.problem

        def check(content: dict[str, Any]) -> None:
            request = gathered(problem, content)
            _check_record(request)
            check_person(problem, request)

        is_said = {"context": text} if problem.n_contexts > 1 else {}
        table = Table(
            required={**is_said, "arm": text, "at": time},
            optional={
                **({} if is_said else {"context": text}),
                "reward": number,
                "answered_at": time,
                "cost": number,
                "probability": number,
                "spend": flag,
                "key": text,
                **({"weight": number, "deadline": number, **feature_cells(problem)} if problem.person else {}),
            },
            may_be_empty=frozenset(("arm",)),
            check=check,
        )

        def record(rows: list[dict[str, Any]]) -> list[Decision]:
            return campaign.record_many([gathered(problem, row) for row in rows])

        _store(path, table, batch, record, _printer(as_json=as_json, person=problem.person))


def _check_record(content: dict[str, Any]) -> None:
    from doral.live.kinds.record import record_of

    record_of(content)
    missing = {"reward", "answered_at"} - content.keys()
    if len(missing) == 1:
        raise InvalidValue(missing.pop(), None, "give reward and answered_at together, or neither")


def _store(
    path: Path,
    table: Table,
    size: int,
    step: Callable[[list[dict[str, Any]]], list[Decision]],
    tell: Callable[[list[Decision]], object],
) -> None:
    from doral.cli.campaign_files import readable
    from doral.cli.campaign_tables import in_batches

    with readable(path, table) as rows:
        for _ in rows():  # a mistake in the last row is found before the first is stored
            pass
        last = 0
        for batch in in_batches(rows(), size):
            try:
                made = step([row.content for row in batch])
            except DoralError as error:
                raise _refused(error, batch, last) from error
            last = batch[-1].number
            tell(made)
        if not last:
            tell([])


def _refused(error: DoralError, batch: Sequence[Row], last: int) -> DoralError:
    """The error with its place, and what is true now."""
    from doral.cli.campaign_tables import placed

    if isinstance(error, OutcomeUnknown):
        done = f"rows {batch[0].number} to {batch[-1].number} may be stored or not; those after them are not"
    elif last:
        done = f"the rows up to {last} are stored, those from {batch[0].number} on are not"
    else:
        done = "nothing was stored"
    told = f"{placed(error, batch)}; {done}"
    return StorageError(told) if isinstance(error, StorageError) else CampaignError(told)


def _printer(*, as_json: bool, person: Sequence[Feature] = ()) -> Callable[[list[Decision]], None]:
    """Prints each batch once it is stored."""
    is_first = True

    def tell(made: list[Decision]) -> None:
        nonlocal is_first
        if as_json:
            for one in made:
                typer.echo(decision_line(one, as_json=True))
        else:
            from doral.live.views.export import write_csv_rows

            part = BytesIO()
            write_csv_rows(part, made, has_header=is_first, person=person)
            typer.echo(part.getvalue(), nl=False)
        is_first = False

    return tell


def _states(made: Sequence[Decision]) -> list[str]:
    return [one.state for one in made]


def _summary(states: Counter[str]) -> str:
    count = states.total()
    if not count:
        return "there are no answers in it"
    return f"took {counted(count, 'answer')}: " + ", ".join(f"{n:,} {state}" for state, n in states.most_common())
