"""`ghost watch`: its commands, with examples in their help."""

from __future__ import annotations

from typing import Annotated

import typer

from ghost.cli.shell_completion import investigations
from ghost.cli.typer_options import JsonOption, LabOption, WorkspaceOption, examples

watch_app = typer.Typer(
    rich_markup_mode=None,
    help="Read paths again at times, and ask about what changed.",
    epilog=examples("ghost watch add last", "ghost watch run"),
)


@watch_app.command(
    "add", epilog=examples("ghost watch add last --every 1h", "ghost watch add web-vm-01 redis-cache-01 6379")
)
def add(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SESSION|SOURCE",
            help="A finished investigation; or a machine, interface or address.",
            autocompletion=investigations,
        ),
    ],
    destination: Annotated[
        str | None, typer.Argument(help="A machine, an interface, an address or a DNS name.")
    ] = None,
    port: Annotated[int | None, typer.Argument(min=1, max=65535, help="The destination port.")] = None,
    protocol: Annotated[str, typer.Option("--protocol", help="The protocol: tcp, udp or icmp.")] = "tcp",
    every: Annotated[str, typer.Option("--every", help="How often: minutes, hours or days (15m, 6h, 1d).")] = "15m",
    lab: LabOption = None,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Watch the path of an investigation, or between two ends.

    Between two ends it is read at once. `ghost serve` and `ghost run` run the watches of their workspace.
    """
    from ghost.cli.watch_commands import add as added

    ends = [source, *([destination] if destination is not None else [])]
    added(ends, port, protocol, every, workspace, lab, as_json=json_)


@watch_app.command("list", epilog=examples("ghost watch list"))
def list_(workspace: WorkspaceOption = None, json_: JsonOption = False) -> None:
    """List the watches with their last outcome."""
    from ghost.cli.watch_commands import list_watches

    list_watches(workspace, as_json=json_)


@watch_app.command("run", epilog=examples("ghost watch run", "ghost watch run w1 --json"))
def run(
    watch: Annotated[str | None, typer.Argument(help="A watch (see: ghost watch list); all if omitted.")] = None,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Read the path again now, and compare it with the last one.

    Runs SAFE commands only and asks for no approval. A drift becomes a task and a question (see: ghost interrupts).
    Exit status: 0 no drift, 3 not known, 4 drift, 2 usage error, 1 failed; of several watches the highest.
    """
    from ghost.cli.watch_commands import run as ran

    raise typer.Exit(ran(watch, workspace, as_json=json_))


@watch_app.command("remove", epilog=examples("ghost watch remove w1"))
def remove(
    watch: Annotated[str, typer.Argument(help="A watch (see: ghost watch list).")],
    workspace: WorkspaceOption = None,
) -> None:
    """End a watch; the records of its runs stay."""
    from ghost.cli.watch_commands import remove as removed

    removed(watch, workspace)
