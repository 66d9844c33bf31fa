"""Options and arguments that several commands of `ghost` take, and the examples in their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ghost.cli.shell_completion import scenarios, sessions


def examples(*lines: str, heading: str = "Examples:") -> str:
    """The epilog of a command; `\\b` keeps its lines apart. tests/cli/test_examples.py runs each."""
    return "\n".join(["\b", heading, *(f"  {line}" for line in lines)])


def capture_options(**options: Any) -> dict[str, Any]:
    """The settings of captures that options give."""
    return {name: value for name, value in options.items() if value is not None}


WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="Directory of session, audit and captures (default: this one)."),
]
ReadOnlyOption = Annotated[
    bool,
    typer.Option("--read-only", help="Refuse what would ask for an approval (also: GHOST_READ_ONLY=1)."),
]
PrivateOption = Annotated[
    bool,
    typer.Option(
        "--private",
        help="Record placeholders for private addresses, subnets and ids of resources (also: GHOST_PRIVATE=1).",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

SESSION_HELP = "A session id (see: ghost sessions), its unique beginning or end, or `last` for the newest."
SessionArgument = Annotated[str, typer.Argument(help=SESSION_HELP, autocompletion=sessions)]
LabOption = Annotated[
    str | None,
    typer.Option("--lab", help="Use a simulated network (see: ghost lab list).", autocompletion=scenarios),
]
ScenarioArgument = Annotated[str, typer.Argument(help="A scenario (see: ghost lab list).", autocompletion=scenarios)]
BrainOption = Annotated[
    str | None,
    typer.Option(
        "--brain",
        help="Who investigates: offline, gemini, openai, anthropic, ollama, or auto, which is gemini with "
        "GEMINI_API_KEY, else offline (also: GHOST_BRAIN).",
    ),
]
ModelOption = Annotated[
    str | None, typer.Option("--model", help="Name the model of that provider (also: GHOST_LLM_MODEL).")
]
MaxCostOption = Annotated[
    float | None,
    typer.Option("--max-cost", min=0.001, help="US dollars that the model may cost (also: GHOST_MAX_COST)."),
]

StorageAccountOption = Annotated[
    str | None,
    typer.Option(
        "--storage-account",
        help="Where captures go (default: the accounts of the region; also: GHOST_STORAGE_ACCOUNT).",
    ),
]
StorageContainerOption = Annotated[
    str | None,
    typer.Option("--storage-container", help="Its container (default: GHOST_STORAGE_CONTAINER or captures)."),
]
StorageAuthOption = Annotated[
    Literal["login", "key"] | None,
    typer.Option("--storage-auth", help="Read it with your login or with its key (default: login)."),
]
CaptureSecondsOption = Annotated[
    int | None, typer.Option("--capture-seconds", min=1, max=300, help="Seconds of each capture.")
]
CaptureFilterOption = Annotated[
    str | None,
    typer.Option(
        "--capture-filter",
        metavar="FILTER",
        help="PROTOCOL LOCAL PORT REMOTE PORT, with * for any: 'tcp * * 10.20.2.5 6379'; or az's JSON.",
    ),
]
KeepCaptureOption = Annotated[
    bool | None,
    typer.Option("--keep-capture/--no-keep-capture", help="Keep the capture on this machine (the default)."),
]
ApproveEachOption = Annotated[bool, typer.Option("--approve-each", help="Ask about each command, not once about all.")]
