"""The commands of `ghost`, each with examples in its help."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from ghost import __version__
from ghost.cli.shell_completion import investigations, scenarios
from ghost.cli.typer_captures import capture_app
from ghost.cli.typer_lab import lab_app
from ghost.cli.typer_mind import mind_app
from ghost.cli.typer_options import (
    ApproveEachOption,
    BrainOption,
    CaptureFilterOption,
    CaptureSecondsOption,
    JsonOption,
    KeepCaptureOption,
    LabOption,
    MaxCostOption,
    ModelOption,
    PrivateOption,
    ReadOnlyOption,
    SessionArgument,
    StorageAccountOption,
    StorageAuthOption,
    StorageContainerOption,
    WorkspaceOption,
    capture_options,
    examples,
)
from ghost.cli.typer_records import audit_app, shell_app
from ghost.cli.typer_watches import watch_app
from ghost.errors import UsageError

PANELS = {
    "Investigate": ("investigate", "reach", "watch", "capture", "pcap", "report", "apply", "ask", "doctor", "mcp"),
    "Shell and records": ("shell", "sessions", "audit"),
    "Memory and background loop": (
        *("serve", "run", "tasks", "interrupts", "answer"),
        *("ingest", "scrape", "search", "export", "import"),
    ),
    "Lab and evaluation": ("lab", "eval"),
}
"""The commands by panel of `ghost --help`, in the order shown; those that do not exist are left out."""


class Panels(TyperGroup):
    """A group whose help lists the commands in panels, without boxes."""

    def get_params(self, ctx: Any) -> list[Any]:
        options = super().get_params(ctx)
        for option in options:
            if option.name == "show_completion":  # Typer's own help takes two lines, and is set behind a constructor
                option.help = "Show the completion script of the current shell."  # type: ignore[attr-defined]
        return options

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return [name for names in PANELS.values() for name in names if name in self.commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        width = max(map(len, self.commands))
        for panel, names in PANELS.items():
            with formatter.section(panel):
                limit = formatter.width - 6 - width
                found = [(name, self.commands[name]) for name in names if name in self.commands]
                formatter.write_dl([(name.ljust(width), command.get_short_help_str(limit)) for name, command in found])


app = typer.Typer(
    name="ghost",
    cls=Panels,
    epilog=examples(
        "ghost investigate --lab blocked-port     # a simulated network, no account",
        heading="Example (others are in the help of each command):",
    ),
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(shell_app, name="shell")
app.add_typer(audit_app, name="audit")
app.add_typer(lab_app, name="lab")
app.add_typer(capture_app, name="capture")
app.add_typer(watch_app, name="watch")
app.add_typer(mind_app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ghost {__version__}")
        raise typer.Exit


def _no_audit_dir(given: str | None) -> None:
    if given is not None:
        raise UsageError(
            "there is no --audit-dir (GHOST_AUDIT_DIR): --workspace DIR (GHOST_WORKSPACE) keeps the audit in "
            "DIR/audit, beside its session, lock and captures"
        )


@app.callback()
def ghost(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback reads it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find the cause of a network failure; each statement cites a record."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(
    epilog=examples(
        'ghost investigate "web-vm-01 cannot reach redis on 6379" --lab blocked-port',
        "ghost investigate --source web-vm-01 --dest 10.20.2.5 --port 6379",
        "ghost investigate --resume last",
        'ghost investigate "vm-a cannot reach vm-b on 443" --brain gemini',
    )
)
def investigate(
    symptom: Annotated[str | None, typer.Argument(help="What fails, in your words; asked for if omitted.")] = None,
    source: Annotated[
        str, typer.Option("--source", help="The sender, a name or an address; wins over the symptom.")
    ] = "",
    dest: Annotated[str, typer.Option("--dest", help="The destination; with it the symptom may be left out.")] = "",
    port: Annotated[int | None, typer.Option("--port", min=1, max=65535, help="The destination port.")] = None,
    protocol: Annotated[
        Literal["tcp", "udp", "icmp"] | None,
        typer.Option("--protocol", case_sensitive=False, help="The protocol that fails."),
    ] = None,
    lab: LabOption = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="SESSION",
            help="Continue a session: its id, a unique beginning or end of it, or `last`.",
            autocompletion=investigations,
        ),
    ] = None,
    brain: BrainOption = None,
    model: ModelOption = None,
    max_cost: MaxCostOption = None,
    workspace: WorkspaceOption = None,
    max_turns: Annotated[
        int | None,
        typer.Option("--max-turns", min=1, help="Turns before it asks to continue (default: GHOST_MAX_TURNS or 50)."),
    ] = None,
    private: PrivateOption = False,
    read_only: ReadOnlyOption = False,
    approve_each: ApproveEachOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show each command whole, with its reason, class and audit id.")
    ] = False,
    html: Annotated[bool, typer.Option("--html", help="Write the report as one HTML file, too.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask no memory: read everything anew.")] = False,
    storage_account: StorageAccountOption = None,
    storage_container: StorageContainerOption = None,
    storage_auth: StorageAuthOption = None,
    capture_seconds: CaptureSecondsOption = None,
    capture_filter: CaptureFilterOption = None,
    keep_capture: KeepCaptureOption = None,
    json_events: Annotated[
        bool, typer.Option("--json-events", help="Print a line of JSON for each event, as it happens.")
    ] = False,
    audit_dir: Annotated[  # noqa: ARG001 - its callback reads it
        str | None,
        typer.Option("--audit-dir", envvar="GHOST_AUDIT_DIR", hidden=True, callback=_no_audit_dir),
    ] = None,
) -> None:
    """Find the cause of a failure, in Azure or in the lab.

    Exit status: 0 concluded (a cause found, or healthy), 3 inconclusive, 1 failed, 2 usage error, 130 interrupted.
    """
    from ghost.agent import without_secrets
    from ghost.brain import StatedEnds
    from ghost.cli.brain_choice import Wish
    from ghost.cli.investigation_command import investigate
    from ghost.cli.investigation_request import Request
    from ghost.cli.session_records import session_named
    from ghost.config import Settings

    if resume:
        settings = Settings(workspace=workspace) if workspace else Settings()
        _, resume = session_named(resume, workspace, settings, investigations=True)
    wish = Wish(brain, model, max_cost, resume)
    source, dest = (" ".join(without_secrets(end).split()) for end in (source, dest))
    request = Request(
        symptom=symptom,
        lab=lab,
        resume=resume,
        wish=wish,
        max_turns=max_turns,
        private=private,
        fresh=fresh,
        read_only=read_only,
        approve_each=approve_each,
        as_json=json_,
        verbose=verbose,
        html=html,
        as_events=json_events,
        stated=StatedEnds(source, dest, port, protocol or ""),
        capture_options=capture_options(
            storage_account=storage_account,
            storage_container=storage_container,
            storage_auth=storage_auth,
            capture_seconds=capture_seconds,
            capture_filter=capture_filter,
            keep_capture=keep_capture,
        ),
    )
    raise typer.Exit(investigate(request, workspace))


@app.command(epilog=examples("ghost report last", "ghost report last --format html --output report.html"))
def report(
    session: SessionArgument = "last",
    form: Annotated[
        Literal["md", "html", "json", "text"],
        typer.Option("--format", "-f", help="The form: text for a ticket, md, html (one file, printable) or json."),
    ] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write (default: print it).")
    ] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Print the root-cause report of a session.

    It is written again from the records. Exit status 1 where they do not hold.
    """
    from ghost.cli.report_command import report

    raise typer.Exit(report(session, form, output, workspace))


@app.command(
    epilog=examples(
        "ghost apply last",
        "ghost apply last --read-only     # shows the commands, runs none",
        "ghost apply last --check",
    )
)
def apply(
    session: SessionArgument,
    approve_each: ApproveEachOption = False,
    read_only: ReadOnlyOption = False,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing: was it mended? Put the answer on record.")
    ] = False,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Run the fix that a session recommends.

    Only commands with which a walk of the network passes, after one approval at the terminal. Reads the facts again
    before and after, and prints what undoes each command.

    Exit status: 0 mended, 3 not known, 4 not mended, 1 not applied or failed, 2 usage error.
    """
    from ghost.cli.apply_command import Request
    from ghost.cli.apply_command import apply as applied

    raise typer.Exit(applied(Request(session, approve_each, read_only, json_, check), workspace))


@app.command(
    epilog=examples(
        "ghost reach web-vm-01 10.20.2.5 6379 --lab blocked-port",
        "ghost reach web-vm-01 redis-cache-01 --lab blocked-port             # every port",
        "ghost reach any redis-cache-01 6379 --all --lab blocked-port        # every source",
        "ghost reach web-vm-01 redis-cache-01 6379 --lab blocked-port \\",
        '  --assume "no-rule cache-nsg close-legacy-ports" \\',
        '  --assume "route prod-routes to-cache 10.20.2.0/24 VirtualAppliance 10.20.3.10"',
    )
)
def reach(
    source: Annotated[str, typer.Argument(help="A machine, an interface or a private address; `any` with --all.")],
    destination: Annotated[str, typer.Argument(help="A machine, an interface, an address or a DNS name.")],
    port: Annotated[
        int | None, typer.Argument(min=1, max=65535, help="The destination port; every port if omitted.")
    ] = None,
    protocol: Annotated[str, typer.Option("--protocol", help="The protocol: tcp, udp or icmp.")] = "tcp",
    lab: LabOption = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            "--assume",
            metavar="CHANGE",
            help="Walk as if this were changed; may be repeated; `--assume help` lists the forms.",
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Walk from every source: interfaces, sites, the internet.")
    ] = False,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Show whether configuration lets a packet pass.

    Walks both directions, and names what blocks the traffic first.

    Changes nothing and needs no approval: reads your tenant, through your az login, with SAFE commands.
    Exit status: 0 passes, 3 unknown, 4 blocked, 2 usage error, 1 failed; of several ports or sources the highest.
    """
    from ghost.cli.reach_command import Question
    from ghost.cli.reach_command import reach as reached

    question = Question(source, destination, port, protocol, lab, assume or [], all_, json_)
    raise typer.Exit(reached(question, workspace))


@app.command(epilog=examples("ghost mcp --workspace prod", "ghost mcp --lab blocked-port     # to try it"))
def mcp(
    workspace: WorkspaceOption = None,
    lab: LabOption = None,
    allow_captures: Annotated[
        list[Path] | None,
        typer.Option(
            "--allow-captures", metavar="PATH", help="A capture, or a directory, that may be read; may be repeated."
        ),
    ] = None,
) -> None:
    """Offer Ghost's read-only tools to an AI assistant.

    Serves the Model Context Protocol on standard input and output, until the assistant ends it. Nothing is asked or
    changed: what is not SAFE is refused.
    """
    from ghost.cli.session_records import open_workspace
    from ghost.config import Settings
    from ghost.mcp import serve

    given = {"workspace": workspace} if workspace else {}
    settings = Settings(**given)
    root = open_workspace(workspace, settings).root
    serve(replace(settings, workspace=root), lab=lab, captures=allow_captures or [])


@app.command(epilog=examples("ghost doctor", "ghost doctor --json"))
def doctor(workspace: WorkspaceOption = None, json_: JsonOption = False) -> None:
    """Check what this machine lacks for an investigation.

    Asks az, with SAFE reads only. Exit status: 0 all is there, 1 something is missing.
    """
    from ghost.cli.doctor_command import doctor as examined

    raise typer.Exit(examined(workspace, as_json=json_))


@app.command("eval", epilog=examples('ghost eval --scenarios "blocked-*" --brain offline --json score.json'))
def evaluate(
    more: Annotated[
        list[str] | None, typer.Argument(metavar="SCENARIO", help="More scenarios.", autocompletion=scenarios)
    ] = None,
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenarios", metavar="GLOB|FILE", help="Names or files of scenarios; may be repeated (default: all)."
        ),
    ] = None,
    brain: BrainOption = None,
    model: ModelOption = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", min=0.001, help="US dollars that the model may cost in each investigation."),
    ] = None,
    wordings: Annotated[
        Literal["first", "all"], typer.Option("--wordings", help="Use the first symptom of a scenario, or all.")
    ] = "first",
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Number of investigations of each wording.")] = 1,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Number of investigations at once.")] = 2,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds that an investigation may take.")
    ] = 600.0,
    json_: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write rows and summary to a file, or to standard output (-)."),
    ] = None,
    fail_under: Annotated[
        float | None,
        typer.Option("--fail-under", min=0, max=100, help="Exit with 1 below this percentage of right causes."),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Run each twice in one memory, and once in one that misleads.")
    ] = False,
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", "-w", help="Keep sessions and reports in this directory (default: delete them)."),
    ] = None,
) -> None:
    """Measure a brain on networks with known faults.

    Exit status: 0 when it ran, whatever the score; see --fail-under.
    """
    from ghost.cli.brain_choice import Wish
    from ghost.cli.evaluation_command import Evaluation
    from ghost.cli.evaluation_command import evaluate as evaluated

    wish = Wish(brain, model, max_cost)
    patterns = [*(scenarios or []), *(more or [])]
    raise typer.Exit(
        evaluated(
            Evaluation(wish, patterns, wordings == "all", repeat, jobs, timeout, json_, fail_under, workspace, memory)
        )
    )


@app.command("sessions", epilog=examples("ghost sessions", "ghost sessions --workspace demo"))
def list_sessions(workspace: WorkspaceOption = None, json_: JsonOption = False) -> None:
    """List the sessions of a workspace and their outcome.

    Investigations, then connections of `ghost mcp`, walks of `ghost reach` and commands of `ghost shell run`.
    """
    from ghost.cli.session_list import list_sessions as listed

    listed(workspace, as_json=json_)


@app.command(
    epilog=examples(
        'ghost ask last "why not the route?"',
        'ghost ask last "which rule allows port 443?" --brain gemini',
    )
)
def ask(
    session: SessionArgument,
    question: Annotated[str, typer.Argument(help="What you want to know of its records, quoted.")],
    brain: BrainOption = None,
    model: ModelOption = None,
    max_cost: MaxCostOption = None,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Answer a question about a session from its records.

    Each sentence cites its records. Runs nothing.

    Offline it looks the question up in the report; a model is sent the report and a part of the records.
    Exit status: 0 answered, 3 the records do not say, 2 usage error, 1 failed.
    """
    from ghost.cli.ask_command import ask as asked
    from ghost.cli.brain_choice import Wish

    raise typer.Exit(asked(session, question, Wish(brain, model, max_cost), workspace, as_json=json_))


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    epilog=examples("ghost pcap capture.pcap"),
)
def pcap(context: typer.Context) -> None:
    """Analyse a packet capture, a folder, or two to compare.

    Reports each fault, which side owns it, and the first step.
    """
    from ghost.cli.browser import open_page
    from ghost.pcap import main as forensics

    raise typer.Exit(forensics(list(context.args) or ["--help"], program="ghost pcap", open_page=open_page))
