"""`ghost serve`, and the commands of its mind: memory, questions, tasks and the background loop."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from ghost.cli.typer_options import JsonOption, WorkspaceOption, examples

mind_app = typer.Typer(rich_markup_mode=None)
"""Its commands stand beside the others of `ghost`."""


@mind_app.command(epilog=examples("ghost serve --workspace prod"))
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


@mind_app.command(epilog=examples("ghost run --cycles 3"))
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


@mind_app.command(epilog=examples('ghost ingest "the firewall change at 14:00 is done"'))
def ingest(
    text: Annotated[str, typer.Argument(help="The observation.")],
    source: Annotated[str, typer.Option("--source", help="Where the observation comes from.")] = "cli",
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """Add an observation for the next cycle of the background loop."""
    from ghost.cli.mind_commands import ingest

    ingest(text, workspace, source=source, as_json=json_)


@mind_app.command(epilog=examples('ghost search "redis 6379 denied" --tag nsg_inbound'))
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


@mind_app.command(epilog=examples("ghost interrupts --json"))
def interrupts(
    all_: Annotated[bool, typer.Option("--all", help="Include answered and expired questions.")] = False,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """List open questions and approvals, and how to answer them."""
    from ghost.cli.mind_commands import interrupts

    interrupts(workspace, all_=all_, as_json=json_)


@mind_app.command(epilog=examples('ghost answer q:1732264000000 "port: 6379"'))
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


@mind_app.command(epilog=examples("ghost export memories.jsonl"))
def export(
    file: Annotated[Path, typer.Argument(help="The file to write: one memory a line (JSONL).")],
    workspace: WorkspaceOption = None,
) -> None:
    """Write all memories to a file for `ghost import`."""
    from ghost.cli.mind_commands import export

    export(file, workspace)


@mind_app.command("import", epilog=examples("ghost import memories.jsonl --workspace prod"))
def import_(
    file: Annotated[Path, typer.Argument(help="A file of `ghost export`.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Read memories from a file, all of them or none.

    A memory with the same id is replaced.
    """
    from ghost.cli.mind_commands import import_

    import_(file, workspace)


@mind_app.command(epilog=examples('ghost scrape "what an NSG evaluates first" --seed https://example.com/nsg'))
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


@mind_app.command(epilog=examples("ghost tasks --count 3"))
def tasks(
    count: Annotated[int, typer.Option("--count", "-k", min=1, max=1000, help="Maximum number of results.")] = 10,
    workspace: WorkspaceOption = None,
    json_: JsonOption = False,
) -> None:
    """List open tasks, most urgent first."""
    from ghost.cli.mind_commands import tasks

    tasks(workspace, count=count, as_json=json_)
