"""`ghost lab`: simulated networks."""

from __future__ import annotations

from typing import Annotated

import typer

from ghost.cli.shell_completion import scenarios
from ghost.cli.typer_options import JsonOption, ScenarioArgument, examples

lab_app = typer.Typer(
    rich_markup_mode=None,
    help="List, show and start simulated networks for practice.",
    epilog=examples("ghost lab list", "ghost lab show blocked-port"),
)


@lab_app.command("list", epilog=examples("ghost lab list"))
def lab_list(json_: JsonOption = False) -> None:
    """List the scenarios."""
    from ghost.cli.lab_commands import list_scenarios

    list_scenarios(as_json=json_)


@lab_app.command("show", epilog=examples("ghost lab show blocked-port"))
def lab_show(
    scenario: ScenarioArgument,
    json_: JsonOption = False,
) -> None:
    """Show the network of a scenario, without its fault."""
    from ghost.cli.lab_commands import show_scenario

    show_scenario(scenario, as_json=json_)


@lab_app.command("check", epilog=examples("ghost lab check blocked-port", "ghost lab check ./my-scenario.toml"))
def lab_check(
    scenarios: Annotated[
        list[str] | None, typer.Argument(metavar="FILE|NAME", help="Scenarios to check; all if omitted.")
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Prove that faults of scenarios and their mends work.

    Exit status 1 where a check fails.
    """
    from ghost.cli.lab_commands import check_scenarios

    raise typer.Exit(check_scenarios(scenarios or [], as_json=json_))


@lab_app.command("schema", epilog=examples("ghost lab schema > scenario.schema.json"))
def lab_schema() -> None:
    """Print the JSON schema of scenario files, for an editor."""
    from ghost.cli.lab_commands import print_schema

    print_schema()


@lab_app.command("up", epilog=examples('eval "$(ghost lab up blocked-port)"'))
def lab_up(
    scenario: Annotated[
        str, typer.Argument(help="A scenario (see: ghost lab list), or ./mine.toml.", autocompletion=scenarios)
    ],
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay in the foreground until Ctrl-C.")] = False,
    speed: Annotated[
        float | None,
        typer.Option(
            "--speed", min=0.01, max=1000.0, help="Simulated seconds per real second (default: GHOST_LAB_SPEED or 20)."
        ),
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Start a simulated Azure for your own az.

    Prints the variables that point a shell at it, and at nothing else; az vm list -d -o table is a first look.
    """
    from ghost.cli.lab_commands import up
    from ghost.config import Settings

    up(scenario, speed or Settings().lab_speed, foreground=foreground, as_json=json_)


@lab_app.command("down", epilog=examples("ghost lab down blocked-port"))
def lab_down(
    scenario: Annotated[str, typer.Argument(help="A lab that is up (see: ghost lab list).", autocompletion=scenarios)],
    json_: JsonOption = False,
) -> None:
    """Stop a simulated Azure and remove its files."""
    from ghost.cli.lab_commands import down

    down(scenario, as_json=json_)
