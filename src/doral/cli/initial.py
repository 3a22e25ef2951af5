"""`doral init`: a problem to start from, with comments, that can be simulated and run at once."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from doral.cli.exits import exit_codes, say

DEFAULT_FILE = "problem.toml"
KINDS = (".toml", ".json")

_PROBLEM = """\
budget = 3000

# The end: a time such as "56d", or a number of arrivals, horizon = 4000, in
# place of both lines.
until = "56d"
expected_arrivals = 4000

# An answer counts if it comes within this time (s, min, h, d, w). A bare
# number is in seconds; where horizon ends the problem, a simulation counts in
# rounds, one for each arrival.
deadline = "14d"

# "explicit": answers come also when they are 0.
# "silent": no answer and a reward of 0 look the same, as with conversions.
feedback = "explicit"

# What the budget can be spent on. cost is for one use, in the unit of the
# budget; by context: cost = {near = 8, far = 20}. Without costs, names are
# enough: arms = ["letter", "phone call", "home visit"]
arms = [
  {name = "letter", cost = 1},
  {name = "phone call", cost = 2},
  {name = "home visit", cost = 5},
]

# Contexts: kinds of arrivals, and their share of all arrivals. Where shares
# are to be learned, names alone: contexts = ["younger", "older"]
contexts = {younger = 0.6, older = 0.4}
"""

_SCENARIO = """\
# A problem, and what is true of it, to try policies on.
#   doral simulate {file}
#   doral campaign create my-campaign -f {file}

name = {name}

# For simulations, as you guess it: how many arrive, on average, until the end.
arrivals = 4000

# "bernoulli": a reward is 1 with its mean as probability, otherwise 0. Or
# "gaussian" (with noise_sd), "poisson", "none".
noise = "bernoulli"

# What you know. A live campaign takes this part alone.
[problem]
{problem}
# For simulations: how late answers come, one law for all or one for each arm.
# exponential, geometric, lognormal, weibull, pareto, fixed, empirical; and
# {{never = {{law = ..., p = 0.3}}}}: three of ten never answer.
[delays]
letter = {{exponential = {{mean = "10d"}}}}
"phone call" = {{exponential = {{mean = "3d"}}}}
"home visit" = {{never = {{law = {{exponential = {{mean = "2d"}}}}, p = 0.1}}}}

# For simulations: mean rewards by context and arm.
[means]
younger = {{letter = 0.10, "phone call" = 0.30, "home visit" = 0.40}}
older = {{letter = 0.25, "phone call" = 0.35, "home visit" = 0.80}}
"""

_ALONE = """\
# A problem, for a live campaign.
#   doral campaign create my-campaign -f {file}

{problem}"""

_FILE_HELP = "File to write, .toml (with comments) or .json; an existing file is not touched."
_ALONE_HELP = "Without the guesses that a simulation needs: for a live campaign alone."


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help=_FILE_HELP)] = Path(DEFAULT_FILE),
    problem_only: Annotated[bool, typer.Option("--problem-only", help=_ALONE_HELP)] = False,
) -> None:
    """Write a problem file with comments, to change as you need it."""
    with exit_codes(if_interrupted="nothing was written"):
        write(file, content(file, problem_only=problem_only))
        typer.echo(f"wrote {file}")
        shown = shlex.quote(str(file))
        if not problem_only:
            say(f"simulate it:     doral simulate {shown}")
        say(f"run a campaign:  doral campaign create my-campaign -f {shown}")


def content(file: Path, *, problem_only: bool = False) -> str:
    """Return the text of the file: TOML with comments, or the same values as JSON."""
    import json
    import tomllib

    shown = shlex.quote(str(file)).replace("\n", " ")
    shown = "".join(sign for sign in shown if sign.isprintable())  # a comment of TOML holds nothing else
    name = "".join(sign for sign in file.stem if sign.isprintable()).strip() or "problem"
    text = _ALONE.format(file=shown, problem=_PROBLEM)
    if not problem_only:
        text = _SCENARIO.format(file=shown, name=json.dumps(name[:100], ensure_ascii=False), problem=_PROBLEM)
    if file.suffix.lower() == ".json":
        return json.dumps(tomllib.loads(text), indent=2, ensure_ascii=False) + "\n"
    return text


def write(file: Path, text: str) -> None:
    """Write a new file; an existing one stays, also when another process makes it at the same moment."""
    from doral.errors import InvalidValue

    if file.is_dir():
        raise InvalidValue("file", str(file), f"is a folder; name a file in it, such as {file / DEFAULT_FILE}")
    if file.suffix.lower() not in KINDS:
        raise InvalidValue("file", str(file), f"must end in .toml or .json, such as {file.with_suffix('.toml').name}")
    if not file.parent.is_dir():
        raise InvalidValue("file", str(file), "names a folder that does not exist; make it first")
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise InvalidValue("file", str(file), "is there already, and is not overwritten; choose another name") from None
