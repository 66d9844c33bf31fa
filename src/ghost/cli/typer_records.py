"""`ghost shell` and `ghost audit`: one command, and the records of all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ghost.cli.typer_options import (
    JsonOption,
    PrivateOption,
    ReadOnlyOption,
    SessionArgument,
    WorkspaceOption,
    examples,
)

shell_app = typer.Typer(
    rich_markup_mode=None,
    help="Run or explain one command in the safe shell.",
    epilog=examples('ghost shell run "ss -tln"', 'ghost shell explain "dig example.com"'),
)
audit_app = typer.Typer(
    rich_markup_mode=None,
    help="Show, verify and export the records of a session.",
    epilog=examples("ghost audit show last", "ghost audit verify last"),
)


@shell_app.command("run", epilog=examples('ghost shell run "ss -tln"'))
def shell_run(
    command: Annotated[str, typer.Argument(help="One command, quoted.")],
    reason: Annotated[str, typer.Option("--reason", help="Why it is run, for the audit.")] = "Typed by the engineer.",
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", min=0.1, max=1800, help="Seconds that it may take (default: GHOST_COMMAND_TIMEOUT or 120)."
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    private: PrivateOption = False,
    read_only: ReadOnlyOption = False,
    json_: JsonOption = False,
) -> None:
    """Run one command: SAFE at once, RISKY if you approve.

    FORBIDDEN commands never run.
    """
    from ghost.cli.shell_commands import run

    ended = run(
        command, reason, workspace, as_json=json_, timeout_seconds=timeout, private=private, read_only=read_only
    )
    raise typer.Exit(ended)


@shell_app.command("explain", epilog=examples('ghost shell explain "dig example.com"'))
def shell_explain(
    command: Annotated[str, typer.Argument(help="One command, quoted; it is not run.")],
    json_: JsonOption = False,
) -> None:
    """Show how a command is classified and why. Runs nothing."""
    from ghost.cli.shell_commands import explain

    explain(command, as_json=json_)


@audit_app.command("show", epilog=examples("ghost audit show last", "ghost audit show last 1"))
def audit_show(
    session: SessionArgument,
    record: Annotated[str | None, typer.Argument(help="One record: its number (18) or audit id.")] = None,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """List the commands of a session, or show one with all that it printed."""
    from ghost.cli.audit_commands import show

    show(session, workspace, record=record, as_json=json_)


@audit_app.command("verify", epilog=examples("ghost audit verify last"))
def audit_verify(
    session: SessionArgument,
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="HASH", help="A head that `ghost shell run` printed: COUNT:HASH, or the last HASH."
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Check the hash chains and every citation of a session.

    Exit status 1 where a check fails.
    """
    from ghost.cli.audit_commands import check

    raise typer.Exit(check(session, workspace, as_json=json_, head=head))


@audit_app.command("export", epilog=examples("ghost audit export last --output case-4711.zip"))
def audit_export(
    session: SessionArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write (default: ghost_export_SESSION.zip).")
    ] = None,
    local: Annotated[
        bool,
        typer.Option(
            "--local", help="Keep tokens that look like secrets, the hash chain and captures: for this machine only."
        ),
    ] = False,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Write the records of a session into one zip.

    With a manifest of SHA-256 and the result of verify.
    """
    from ghost.cli.audit_commands import export

    raise typer.Exit(export(session, output, workspace, local=local, as_json=json_))
