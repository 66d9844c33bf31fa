"""An expert for each scenario of the lab: from a conversation to the next turn, by what the tools answered.

An expert is a plain function that consults tools. It is run from its beginning for each turn: what the conversation
holds is answered from there, and the first consultation that it does not hold is the turn.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ghost.agent.loop import RESUMED
from ghost.brain import Message, ResumeNote, ToolCall, ToolResults, Turn, UserMessage


class _NextTurn(Exception):  # noqa: N818 - not an error: ends the run of an expert
    def __init__(self, turn: Turn) -> None:
        self.turn = turn


Call = tuple[str, dict[str, Any]]
Result = dict[str, Any]


def command(line: str) -> Call:
    return "run_shell_cmd", {"command": line, "reasoning": "It tests the hypotheses."}


def hypothesis(action: str, identity: str, **more: Any) -> Call:
    return "manage_hypotheses", {"action": action, "id": identity, **more}


@dataclass(frozen=True)
class Consultation:
    conversation: Sequence[Message]

    def ask(
        self, text: str, *calls: Call, critical: bool = False, until: Callable[[Result], bool] = lambda _: True
    ) -> list[Result]:
        """Return the calls' results. `critical`: made again after an interruption; `until`: as often as that takes."""
        found = [self._latest(call, critical) for call in calls]
        if not all(result is not None and until(result) for result in found):
            number = 1 + sum(isinstance(message, Turn) for message in self.conversation)
            made = (ToolCall(f"t{number}.{place}", *call) for place, call in enumerate(calls, 1))
            raise _NextTurn(Turn(text, tuple(made)))
        return [result for result in found if result is not None]

    def _latest(self, call: Call, after_resumption: bool) -> Result | None:
        latest, asked = None, dict[str, Call]()
        for message in self.conversation:
            if isinstance(message, Turn):
                asked = {made.id: (made.name, made.arguments) for made in message.tool_calls}
            elif isinstance(message, ToolResults):
                for result in message.results:
                    if asked.get(result.call_id) == call:
                        latest = result.result
            elif after_resumption and _is_resumption(message):
                latest = None
        return latest


def _is_resumption(message: Message) -> bool:
    return isinstance(message, ResumeNote) or (isinstance(message, UserMessage) and RESUMED in message.text)


def _read(result: Result) -> Any:
    """The output as JSON: a model may be sent it as such, or as text."""
    output = result["output"]
    return json.loads(output) if isinstance(output, str) else output


def _rows(result: Result) -> list[Any]:
    rows: list[Any] = _read(result)
    return rows


def _covers(ranges: Sequence[str], port: int) -> bool:
    bounds = [(part.partition("-")[0], part.rpartition("-")[2]) for part in ranges]
    return any(low == "*" or int(low) <= port <= int(high) for low, high in bounds)


RULES = (
    "[].{name:name,priority:priority,access:access,direction:direction,ports:destinationPortRanges,"
    "port:destinationPortRange}"
)


def blocked_port(consult: Consultation) -> None:
    consult.ask(
        "Two explanations: a rule denies the port, or a route leads elsewhere.",
        hypothesis("register", "h1", description="cache-nsg denies TCP 6379", refuted_by="an allow rule comes first"),
        hypothesis("register", "h2", description="a route diverts 10.20.2.0/24", refuted_by="it stays in the network"),
    )
    (vms,) = consult.ask("Which machines are there?", command("az vm list -d --query '[].[name,privateIps]' -o json"))
    assert ["redis-cache-01", "10.20.2.5"] in _rows(vms)
    rules, routes = consult.ask(
        "The rules at the cache, and the routes of the web server.",
        command(f"az network nsg rule list -g prod-rg --nsg-name cache-nsg --query {shlex.quote(RULES)} -o json"),
        command(
            "az network nic show-effective-route-table -g prod-rg -n web-vm-01-nic "
            "--query 'value[].[addressPrefix[0],nextHopType]' -o json"
        ),
        critical=True,
    )
    matching = [r for r in _rows(rules) if _covers([*(r["ports"] or []), *([r["port"]] if r["port"] else [])], 6379)]
    first = min(matching, key=lambda rule: rule["priority"])
    assert (first["access"], ["10.20.0.0/16", "VnetLocal"] in _rows(routes)) == ("Deny", True)
    consult.ask(
        f"{first['name']} comes before any rule that allows 6379; the route stays in the network.",
        hypothesis("confirm", "h1", audit_ids=[rules["audit_id"]]),
        hypothesis("refute", "h2", audit_ids=[routes["audit_id"]]),
    )
    fault = f"The inbound rule {first['name']} of cache-nsg denies TCP 6379 from prod-subnet."
    cause = {"kind": "security_rule", "resource": "cache-nsg", "rule": first["name"], "direction": "Inbound"}
    cleared = [("routes", routes, "10.20.0.0/16 is routed within the network.")]
    _complete(consult, fault, cause, "nsg_inbound", rules, cleared)


def wire_loss(consult: Consultation) -> None:
    consult.ask(
        "Two explanations: a rule denies the port, or packets are lost on their way.",
        hypothesis("register", "h1", description="db-nsg denies TCP 5432", refuted_by="an allow rule comes first"),
        hypothesis("register", "h2", description="segments are lost", refuted_by="a capture without loss"),
    )
    (rules,) = consult.ask(
        "The rules at the database.",
        command(f"az network nsg rule list -g data-rg --nsg-name db-nsg --query {shlex.quote(RULES)} -o json"),
        critical=True,
    )
    assert min(_rows(rules), key=lambda rule: rule["priority"])["access"] == "Allow"
    consult.ask("Port 5432 is allowed.", hypothesis("refute", "h1", audit_ids=[rules["audit_id"]]))
    (accounts,) = consult.ask(
        "Where can a capture be stored?", command("az storage account list --query '[].[name,resourceGroup]' -o json")
    )
    ((account, group),) = _rows(accounts)
    where = {"target": "app-vm-01", "resource_group": group, "storage_account": account}
    (task,) = consult.ask("I capture at app-vm-01.", ("capture_traffic", {**where, "duration_seconds": 60}))
    task_id = {"task_id": task["task_id"]}
    (done,) = consult.ask("Is it done?", ("check_task", task_id), until=lambda r: r["status"] != "task_pending")
    pcap = done["result"]["local_pcap_path"]
    (findings,) = consult.ask("What does the capture show?", command(f"pcap-forensics {shlex.quote(pcap)} --findings"))
    loss = next(finding for finding in _read(findings)["findings"] if finding["kind"] in {"loss", "rto_loss"})
    sender, receiver = (loss["who"][end] for end in ("src", "dst"))
    assert (sender, receiver) == ("10.30.1.4", "10.40.1.10")
    consult.ask(
        "Segments are lost; I remove the capture.",
        hypothesis("confirm", "h2", audit_ids=[findings["audit_id"]]),
        ("cleanup_task", task_id),
    )
    fault = f"Segments from app-vm-01 to db-vm-01 are lost: {loss['title']}."
    cause = {"kind": "packet_loss", "resource": "app-vm-01"}
    _complete(consult, fault, cause, "wire", findings, [("nsg_inbound", rules, "db-nsg allows TCP 5432.")])


def _complete(
    consult: Consultation,
    fault: str,
    cause: dict[str, Any],
    layer: str,
    by: Result,
    cleared: Sequence[tuple[str, Result, str]],
) -> None:
    consult.ask(
        fault,
        (
            "complete_investigation",
            {
                "outcome": "cause_found",
                "causes": [{**cause, "confidence": "medium", "audit_ids": [by["audit_id"]]}],
                "confidence": "medium",
                "root_cause_summary": f"{fault} ({by['audit_id']})",
                "confirmed_hypotheses": ["h1" if layer.startswith("nsg") else "h2"],
                "refuted_hypotheses": ["h2" if layer.startswith("nsg") else "h1"],
                "statements": [
                    {"text": fault, "audit_ids": [by["audit_id"]]},
                    *({"text": text, "audit_ids": [result["audit_id"]]} for _, result, text in cleared),
                ],
                "coverage": [
                    {"layer": layer, "status": "at_fault", "audit_ids": [by["audit_id"]]},
                    *(
                        {"layer": name, "status": "cleared", "audit_ids": [result["audit_id"]]}
                        for name, result, _ in cleared
                    ),
                ],
                "recommended_actions": ["Correct it with its owners, then repeat the investigation."],
            },
        ),
    )


EXPERTS = {"blocked-port": blocked_port, "wire-loss": wire_loss}


def expert(scenario: str) -> Callable[[Sequence[Message]], Turn]:
    def next_turn(conversation: Sequence[Message]) -> Turn:
        try:
            EXPERTS[scenario](Consultation(conversation))
        except _NextTurn as next_turn:
            return next_turn.turn
        return Turn("The investigation is complete.")

    return next_turn
