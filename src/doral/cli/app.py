"""The commands of `doral`, in the order in which its help lists them. What they need is imported when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from doral import __version__
from doral.cli import campaign, catalogue, experiment, keys, log, plan, serve, simulate
from doral.cli.command import Group, command

_START, _SIMULATE, _OWN_DATA, _LIVE = "Start", "Simulate", "Your own data", "Live campaigns"


class _Doral(Group):
    renamed = {"reproduce": "experiment reproduce", "compare": "experiment compare"}  # noqa: RUF012


app = typer.Typer(
    name="doral",
    help="Spend a limited budget well when answers come back late, or never.",
    epilog="Exit codes: 0 done, 1 a store or a file failed, 2 a wrong name or value, 130 Ctrl-C.",
    cls=_Doral,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help and messages are plain text, on a terminal and in a pipe
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"doral {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


command(app, panel=_START, example="doral init kits.toml")(simulate.init)
command(app, panel=_START, example="doral policies doral-otf")(catalogue.policies)
command(app, panel=_START, example="doral scenarios paper/diverse-pareto")(catalogue.scenarios)
command(app, panel=_SIMULATE, example="doral simulate kits.toml -p doral-otf -p random --runs 20")(simulate.simulate)
app.add_typer(experiment.app, rich_help_panel=_SIMULATE)
command(
    app,
    panel=_OWN_DATA,
    example="doral plan log.csv --budget 5000 --deadline 14d",
    renamed={"--out": "--out-dir", "-o": "--out-dir"},
)(plan.plan)
command(app, panel=_OWN_DATA, example="doral evaluate log.csv --policy lp --policy always:letter")(log.evaluate)
app.add_typer(log.app, rich_help_panel=_OWN_DATA)
app.add_typer(campaign.app, rich_help_panel=_LIVE)
command(app, panel=_LIVE, example="doral serve --demo")(serve.serve)
app.add_typer(keys.app, rich_help_panel=_LIVE)
