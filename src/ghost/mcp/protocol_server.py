"""The server: what the protocol's messages become, and one client from its first message to its last."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.from_thread
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from ghost import __version__
from ghost.agent import without_secrets
from ghost.config import Settings
from ghost.errors import GhostError, UsageError
from ghost.mcp.connection import MAX_CHARACTERS, Connection
from ghost.mcp.investigation_process import Investigated, run_investigation
from ghost.mcp.tool_functions import (
    REFUSED,
    TOOLS,
    Call,
    InvestigateArguments,
    Tool,
    arguments_of,
    descriptions,
)
from ghost.mcp.workspace_records import TEMPLATES, document_text, documents
from ghost.records import is_locked, read_json
from ghost.text import one_line, sentence, visible
from mcp import types

MAX_LINE: Final = 4 * 1024 * 1024
"""Bytes of one message of the client."""
OF_A_REPORT: Final = (
    *("outcome", "confidence", "causes", "summary", "statements", "coverage", "recommended_actions", "advisories"),
)
Context = ServerRequestContext[Any, Any]


def serve_stdio(settings: Settings, lab: str | None, captures: Sequence[Path]) -> None:
    connection = Connection(settings, lab, captures)
    interrupted = False
    try:
        interrupted = anyio.run(_serve, Desk(connection).server())
    except* BrokenPipeError:  # the client does not read any more
        pass
    if interrupted:
        raise KeyboardInterrupt


async def _serve(server: Server[Any]) -> bool:
    """Serve until the client closes its end. Returns whether a signal came first."""
    interrupted = False

    async def end_at_a_signal() -> None:
        nonlocal interrupted
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for _ in signals:
                interrupted = True
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(end_at_a_signal)
        async with stdio_server(stdin=cast("anyio.AsyncFile[str]", lines_of(_own_input()))) as (messages, answers):
            await server.run(messages, answers, server.create_initialization_options())
        group.cancel_scope.cancel()
    return interrupted


def _own_input() -> int:
    """Return standard input as a descriptor of its own; what else reads standard input finds nothing there."""
    descriptor = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return descriptor


async def lines_of(descriptor: int) -> AsyncIterator[str]:
    """Yield the lines of a pipe. A wait for one can be cancelled; one that is too long ends the connection."""
    left = b""
    while len(left) <= MAX_LINE:
        try:
            await anyio.wait_readable(descriptor)
        except PermissionError:  # a file, which is always readable
            await anyio.lowlevel.checkpoint()
        part = os.read(descriptor, 1 << 16)
        if not part:
            return
        *whole, left = (left + part).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")


class Desk:
    """Answers the requests of one client."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._investigates = False

    def server(self) -> Server[Any]:
        return Server(
            "ghost",
            version=__version__,
            title="Ghost, investigator of network failures",
            instructions=descriptions().instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )

    async def _list_tools(self, _context: Context, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS.values()])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Every call is on record before it is made, and its end after it: also that of one which is cancelled."""
        client, given = _client(context), params.arguments or {}
        try:
            number = self._connection.calls.begin(client, params.name, given)
        except GhostError as unwritten:
            return _failed(unwritten)
        end: dict[str, Any] = {"status": "cancelled", "audit_ids": []}
        try:
            answer = await self._answered(context, client, params.name, given, end)
            end["status"] = answer["status"]
            return _result(self._connection.outside(answer))
        except GhostError as failure:
            end |= {"status": "error", "error": str(failure)}
            return _failed(failure, self._connection)
        except Exception as defect:  # noqa: BLE001 - the client gets an answer, and the record says which
            end |= {"status": "error", "error": f"{type(defect).__name__}: {defect}"}
            session = self._connection.session_id
            told = f"{params.name} failed ({type(defect).__name__}): ghost audit show {session} --json tells more"
            return _failed(GhostError(told), self._connection)
        finally:
            self._connection.calls.end(number, **end)

    async def _answered(
        self, context: Context, client: str, name: str, given: dict[str, Any], end: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what a tool tells. Puts into `end` what is on record of the call."""
        if (tool := TOOLS.get(name)) is None:
            raise UsageError(f"there is no tool {name[:80]!r}: there are {', '.join(TOOLS)}")
        arguments, steps = arguments_of(tool, given), 0

        async def tell(text: str) -> None:
            nonlocal steps
            steps += 1
            message = self._connection.outside(one_line(visible(text), 300))
            await context.session.report_progress(steps, message=message)

        if (work := tool.work) is None:
            assert isinstance(arguments, InvestigateArguments)
            return await self._investigated(arguments, tell, end)
        call = Call(self._connection, client, lambda text: anyio.from_thread.run(tell, text))
        return await self._connection.in_turn(lambda: work(call, arguments), end["audit_ids"])

    async def _investigated(self, asked: InvestigateArguments, tell: Any, end: dict[str, Any]) -> dict[str, Any]:
        workspace = self._connection.workspace
        busy = {"status": "busy", "reason": f"{workspace.root} is in use by another investigation: ask again later."}
        if self._investigates or is_locked(workspace.root):
            return busy
        given = {"--source": asked.source, "--dest": asked.destination, "--port": asked.port}
        given |= {"--protocol": asked.protocol, "--lab": self._connection.lab, "--workspace": str(workspace.root)}
        options = [f"{name}={value}" for name, value in given.items() if value]
        found = Investigated()
        self._investigates = True
        try:
            await run_investigation(options, asked.symptom, found, tell)
        finally:
            self._investigates = False
            end |= {"session_id": found.session_id} if found.session_id else {}
        if found.error:
            lost_the_race = found.session_id is None and is_locked(workspace.root)
            return busy if lost_the_race else {"status": "failed", "reason": found.error, "session": found.session_id}
        report = read_json(Path(str(found.report["json"])))
        told = {name: report[name] for name in OF_A_REPORT if report.get(name)}
        return {
            "status": "ok",
            "session": found.session_id,
            "report": f"ghost://reports/{found.session_id}",
            **({"asked": found.asked} if found.asked else {}),
            **told,
        }

    async def _list_resources(self, _context: Context, _params: Any) -> types.ListResourcesResult:
        found = documents(self._connection.workspace, self._connection.captures.own)
        resources = [
            types.Resource(uri=each.uri, name=each.name, description=each.description, mime_type=each.mime_type)
            for each in found
        ]
        return types.ListResourcesResult(resources=resources)

    async def _list_templates(self, _context: Context, _params: Any) -> types.ListResourceTemplatesResult:
        templates = [
            types.ResourceTemplate(
                uri_template=each.uri, name=each.name, description=each.description, mime_type=each.mime_type
            )
            for each in TEMPLATES
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri, connection = str(params.uri), self._connection
        status = "error"
        try:
            number = connection.calls.begin(_client(context), "resources/read", {"uri": uri})
            try:
                text, mime_type = document_text(connection.workspace, connection.captures.own, uri)
                status = "ok"
            finally:
                connection.calls.end(number, status)
        except GhostError as failure:
            raise MCPError(types.INVALID_PARAMS, _words_of(failure, connection)) from None
        text = connection.outside(text)
        if len(text) > MAX_CHARACTERS:
            text = f"{text[:MAX_CHARACTERS]}\n[truncated: {len(text)} characters in total]"
        content = types.TextResourceContents(uri=params.uri, mime_type=mime_type, text=text)
        return types.ReadResourceResult(contents=[content])


def _described(tool: Tool) -> types.Tool:
    reads_only = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=True)
    schema = tool.arguments.model_json_schema()
    return types.Tool(
        name=tool.name, description=descriptions().tools[tool.name], input_schema=schema, annotations=reads_only
    )


def _client(context: Context) -> str:
    """Return what the client calls itself: text from outside."""
    params = context.session.client_params
    named = f"{params.client_info.name} {params.client_info.version}" if params is not None else ""
    return one_line(without_secrets(named), 80) or "an unnamed client"


def _result(answer: dict[str, Any]) -> types.CallToolResult:
    text = json.dumps(answer, ensure_ascii=False)
    if len(text) > MAX_CHARACTERS:
        return _failed(UsageError(f"the answer has {len(text)} characters, of {MAX_CHARACTERS} at most: ask for less"))
    content = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=list(content), structured_content=answer, is_error=answer["status"] in REFUSED)


def _failed(failure: GhostError, connection: Connection | None = None) -> types.CallToolResult:
    content = [types.TextContent(type="text", text=_words_of(failure, connection))]
    return types.CallToolResult(content=list(content), is_error=True)


def _words_of(failure: GhostError, connection: Connection | None) -> str:
    words = sentence(visible(str(failure)))
    return str(connection.outside(words)) if connection is not None else words
