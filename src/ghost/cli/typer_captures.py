"""The commands of `ghost capture`."""

from __future__ import annotations

from typing import Annotated

import typer

from ghost.cli.typer_options import (
    ApproveEachOption,
    CaptureFilterOption,
    CaptureSecondsOption,
    JsonOption,
    KeepCaptureOption,
    LabOption,
    StorageAccountOption,
    StorageAuthOption,
    StorageContainerOption,
    WorkspaceOption,
    capture_options,
    examples,
)

capture_app = typer.Typer(
    rich_markup_mode=None,
    help="Capture packets in Azure, fetch, analyse and delete them.",
    epilog=examples("ghost capture start app-vm-01 --lab wire-loss", "ghost capture fetch last"),
)
TaskArgument = Annotated[str, typer.Argument(help="The id of a capture (see: ghost capture list), or `last`.")]


@capture_app.command(
    "start",
    epilog=examples(
        "ghost capture start app-vm-01 --lab wire-loss",
        "ghost capture start app-vm-01 --pair db-vm-01 --capture-filter 'tcp * * * 5432' --lab wire-loss",
    ),
)
def capture_start(
    target: Annotated[str, typer.Argument(help="A machine: its name, or its full resource id.")],
    pair: Annotated[
        str | None, typer.Option("--pair", metavar="MACHINE", help="The other end, to compare both captures.")
    ] = None,
    resource_group: Annotated[
        str | None, typer.Option("--resource-group", "-g", help="Which, where a name is in several groups.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Why, for prompts and audit.")] = "Asked for by the engineer.",
    lab: LabOption = None,
    storage_account: StorageAccountOption = None,
    storage_container: StorageContainerOption = None,
    storage_auth: StorageAuthOption = None,
    capture_seconds: CaptureSecondsOption = None,
    capture_filter: CaptureFilterOption = None,
    keep_capture: KeepCaptureOption = None,
    approve_each: ApproveEachOption = False,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Start a capture at a machine, or at both ends of a path."""
    from ghost.cli.capture_command import Asked, start

    options = capture_options(
        storage_account=storage_account,
        storage_container=storage_container,
        storage_auth=storage_auth,
        capture_seconds=capture_seconds,
        capture_filter=capture_filter,
        keep_capture=keep_capture,
    )
    asked = Asked(workspace, json_, approve_each)
    raise typer.Exit(start(target, pair, resource_group, lab, reason, options, asked))


@capture_app.command("check", epilog=examples("ghost capture check last"))
def capture_check(task: TaskArgument, workspace: WorkspaceOption = None, json_: JsonOption = False) -> None:
    """Look at a capture once; take in one that has stopped."""
    from ghost.cli.capture_command import Asked, check

    raise typer.Exit(check(task, Asked(workspace, json_)))


@capture_app.command("list", epilog=examples("ghost capture list"))
def capture_list(
    azure: Annotated[bool, typer.Option("--azure", help="Look for captures in Azure without a record here.")] = False,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """List the captures of a workspace, and what they left."""
    from ghost.cli.capture_command import Asked, list_captures

    raise typer.Exit(list_captures(Asked(workspace, json_), in_azure=azure))


@capture_app.command("fetch", epilog=examples("ghost capture fetch last"))
def capture_fetch(task: TaskArgument, workspace: WorkspaceOption = None, json_: JsonOption = False) -> None:
    """Wait for a capture, download and analyse it.

    Of a pair, both ends are compared. Exit status 3 where it ended without a result.
    """
    from ghost.cli.capture_command import Asked, fetch

    raise typer.Exit(fetch(task, Asked(workspace, json_)))


@capture_app.command("cancel", epilog=examples("ghost capture cancel last"))
def capture_cancel(
    task: TaskArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")] = "Cancelled by the engineer.",
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """End a capture early and delete it in Azure."""
    from ghost.cli.capture_command import Asked, cancel

    raise typer.Exit(cancel(task, reason, Asked(workspace, json_)))


@capture_app.command("cleanup", epilog=examples("ghost capture cleanup last"))
def capture_cleanup(
    task: TaskArgument,
    reports: Annotated[bool, typer.Option("--reports", help="Delete its reports on this machine, too.")] = False,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Delete a finished capture and its blob in Azure."""
    from ghost.cli.capture_command import Asked, cleanup

    raise typer.Exit(cleanup(task, reports, Asked(workspace, json_)))
