"""The commands of `ghost`, each with examples in its help."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from ghost import __version__
from ghost.cli.shell_completion import investigations, scenarios
from ghost.cli.typer_captures import capture_app
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
    ScenarioArgument,
    SessionArgument,
    StorageAccountOption,
    StorageAuthOption,
    StorageContainerOption,
    WorkspaceOption,
    capture_options,
    examples,
)
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
lab_app = typer.Typer(
    rich_markup_mode=None,
    help="List, show and start simulated networks for practice.",
    epilog=examples("ghost lab list", "ghost lab show blocked-port"),
)
app.add_typer(shell_app, name="shell")
app.add_typer(audit_app, name="audit")
app.add_typer(lab_app, name="lab")
app.add_typer(capture_app, name="capture")
app.add_typer(watch_app, name="watch")


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
    from ghost.cli.investigation_command import Request, investigate
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


# --- the mind ---


@app.command(epilog=examples("ghost serve --workspace prod"))
def serve(
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on (default: GHOST_API_HOST or 127.0.0.1).")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="The port to listen on (default: GHOST_API_PORT or 8000)."),
    ] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Run the background loop, its API and dashboard until Ctrl-C."""
    from ghost.cli.mind_commands import serve

    raise typer.Exit(serve(workspace, host=host, port=port))


@app.command(epilog=examples("ghost run --cycles 3"))
def run(
    cycles: Annotated[
        int | None, typer.Option("--cycles", min=1, help="Exit after so many cycles (default: at Ctrl-C).")
    ] = None,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Run the background loop without a server; print its output.

    Ends after --cycles or at Ctrl-C.
    """
    from ghost.cli.mind_commands import run

    raise typer.Exit(run(workspace, cycles=cycles, as_json=json_))


@app.command(epilog=examples('ghost ingest "the firewall change at 14:00 is done"'))
def ingest(
    text: Annotated[str, typer.Argument(help="The observation.")],
    source: Annotated[str, typer.Option("--source", help="Where the observation comes from.")] = "cli",
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Add an observation for the next cycle of the background loop."""
    from ghost.cli.mind_commands import ingest

    ingest(text, workspace, source=source, as_json=json_)


@app.command(epilog=examples('ghost search "redis 6379 denied" --tag nsg_inbound'))
def search(
    query: Annotated[str, typer.Argument(help="Words, names, addresses or a symptom.")],
    count: Annotated[int, typer.Option("--count", "-k", min=1, max=100, help="Maximum number of results.")] = 5,
    type_: Annotated[
        list[str] | None,
        typer.Option("--type", help="A memory type: episodic, semantic or procedural; may be repeated."),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A required tag; may be repeated.")] = None,
    since: Annotated[datetime | None, typer.Option("--since", help="The earliest time of creation (UTC).")] = None,
    until: Annotated[datetime | None, typer.Option("--until", help="The end of the times of creation (UTC).")] = None,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Search memories by words and by similarity."""
    from ghost.cli.mind_commands import search

    search(query, workspace, count=count, types=type_ or [], tags=tag or [], since=since, until=until, as_json=json_)


@app.command(epilog=examples("ghost interrupts --json"))
def interrupts(
    all_: Annotated[bool, typer.Option("--all", help="Include answered and expired questions.")] = False,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """List open questions and approvals, and how to answer them."""
    from ghost.cli.mind_commands import interrupts

    interrupts(workspace, all_=all_, as_json=json_)


@app.command(epilog=examples('ghost answer q:1732264000000 "port: 6379"'))
def answer(
    question: Annotated[str, typer.Argument(help="The id of an open question (see: ghost interrupts).")],
    text: Annotated[
        str,
        typer.Argument(
            help="The answer, but to an approval; `field: value` for each field it requires, on lines or after `;`."
        ),
    ] = "",
    workspace: WorkspaceOption = None,
) -> None:
    """Answer a question, or what an investigation asks."""
    from ghost.cli.mind_commands import answer

    answer(question, text, workspace)


@app.command(epilog=examples("ghost export memories.jsonl"))
def export(
    file: Annotated[Path, typer.Argument(help="The file to write: one memory a line (JSONL).")],
    workspace: WorkspaceOption = None,
) -> None:
    """Write all memories to a file for `ghost import`."""
    from ghost.cli.mind_commands import export

    export(file, workspace)


@app.command("import", epilog=examples("ghost import memories.jsonl --workspace prod"))
def import_(
    file: Annotated[Path, typer.Argument(help="A file of `ghost export`.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Read memories from a file, all of them or none.

    A memory with the same id is replaced.
    """
    from ghost.cli.mind_commands import import_

    import_(file, workspace)


@app.command(epilog=examples('ghost scrape "what an NSG evaluates first" --seed https://example.com/nsg'))
def scrape(
    question: Annotated[str, typer.Argument(help="The question to answer; it is not sent anywhere.")],
    seed: Annotated[list[str], typer.Option("--seed", help="A start URL; may be repeated.")],
    pages: Annotated[
        int | None,
        typer.Option("--pages", min=1, max=1000, help="Maximum pages (default: SCRAPER_MAX_PAGES)."),
    ] = None,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Read web pages and remember their text.

    ALLOWLIST_DOMAINS and each site's robots.txt must permit it.
    """
    from ghost.cli.mind_commands import scrape

    raise typer.Exit(scrape(question, seed, workspace, pages=pages, as_json=json_))


@app.command(epilog=examples("ghost tasks --count 3"))
def tasks(
    count: Annotated[int, typer.Option("--count", "-k", min=1, max=1000, help="Maximum number of results.")] = 10,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """List open tasks, most urgent first."""
    from ghost.cli.mind_commands import tasks

    tasks(workspace, count=count, as_json=json_)
