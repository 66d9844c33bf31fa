"""The arguments of the tools, and their public declarations for a model.

Every string and list is bounded: where a server decodes by grammar, an unbounded one never ends.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from ghost.brain import CHECKS, ToolDeclaration

Id = Annotated[str, Field(min_length=1, max_length=80)]
AuditIds = Annotated[
    list[Id],
    Field(
        default_factory=list,
        max_length=100,
        description="`audit_id` of the results it rests on.",
    ),
]
HypothesisIds = Annotated[
    list[Id],
    Field(
        default_factory=list,
        max_length=10,
        description="Hypotheses it tests: h1. Default: all active.",
    ),
]
TaskId = Annotated[str, Field(min_length=1, max_length=120, description="The task_id that capture_traffic returned.")]
Line = Annotated[str, Field(max_length=2000)]
Level = Literal["high", "medium", "low"]
Outcome = Literal["cause_found", "healthy", "inconclusive", "not_investigated"]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RunShellCmd(_Arguments):
    """Run one diagnostic or Azure read command through the safe shell, which classifies it: SAFE runs, RISKY asks the
    engineer, FORBIDDEN never runs (do not retry it). For ping, dig, traceroute, ss, curl (GET) and `az ... list/show`.
    Files are readable only in this session's audit and captures.
    """

    command: str = Field(
        min_length=1,
        max_length=8000,
        description="One complete command. No sudo, no &&, ; or |, no redirection. Example: az network nsg rule list "
        "--resource-group prod-rg --nsg-name prod-nsg -o json",
    )
    reasoning: str = Field(
        min_length=1,
        max_length=2000,
        description="One sentence: why the investigation needs this command. Shown to the engineer and put on record.",
    )
    hypothesis_ids: HypothesisIds


class CaptureTraffic(_Arguments):
    """Start a Network Watcher packet capture on a VM, or on both ends of a path. Returns a task_id at once; poll it
    with check_task. The engineer approves each step. For what configuration does not explain.
    """

    target: str = Field(
        min_length=1,
        max_length=1000,
        description='VM name, full Azure resource id, or "vm-a to vm-b" for a capture at both ends.',
    )
    resource_group: str = Field(min_length=1, max_length=90, description="Resource group of the VM(s): prod-rg")
    storage_account: str = Field(
        "*",
        min_length=1,
        max_length=300,
        description="Name of the storage account that receives the capture: prodlogs. Leave out for one of the region.",
    )
    duration_seconds: int = Field(60, ge=1, le=300, description="Seconds to capture, 1 to 300. Default 60.")
    size_limit_bytes: int | None = Field(
        None, description="Bytes after which the capture stops. Leave out for Azure's own limit."
    )
    investigation_context: str = Field(
        "", max_length=2000, description="One sentence: which network behaviour is captured, and why."
    )
    storage_auth_mode: Literal["login", "key"] | None = Field(
        None, description="login: Entra ID (default). key: storage access keys."
    )
    filters: str | None = Field(
        None,
        max_length=4000,
        description="What to capture: protocol, local address and port, remote address and port, * for any: "
        "tcp * * 10.20.2.5 6379. Of a pair as the first machine sees it. Leave out for everything.",
    )
    hypothesis_ids: HypothesisIds


class CheckTask(_Arguments):
    """Poll a capture until its status is task_completed, task_failed, task_cancelled or task_timed_out. Waits up to 45
    seconds. When complete, `result` names the report to read.
    """

    task_id: TaskId
    hypothesis_ids: HypothesisIds


class CancelTask(_Arguments):
    """End a capture early and delete its Azure resources; the engineer approves each deletion."""

    task_id: TaskId
    reason: str = Field("", max_length=1000, description="Why, in one sentence, for the record.")


class CleanupTask(_Arguments):
    """Delete a finished capture in Azure, its blob and the local copy, after its report was read; the engineer approves
    each deletion. Safe to repeat.
    """

    task_id: TaskId


class ManageHypotheses(_Arguments):
    """Register a hypothesis, activate it, or resolve it with the records that decide. At most three are active. Changes
    the session only.
    """

    action: Literal["register", "activate", "confirm", "refute", "contradict"] = Field(
        description="register needs description and refuted_by; confirm and refute need audit_ids; contradict needs "
        "the two audit_ids that disagree."
    )
    id: str = Field(min_length=1, max_length=40, description="Short id: h1")
    description: str = Field(
        "",
        max_length=1000,
        description="register: one falsifiable cause, for example: an NSG rule denies TCP 6379 from app-subnet. "
        "contradict: what disagrees.",
    )
    refuted_by: str = Field(
        "",
        max_length=1000,
        description="register: the observation that would refute it: an allow rule before any deny.",
    )
    audit_ids: AuditIds
    higher_fidelity_source: str | None = Field(
        None, max_length=500, description="contradict: which result is trusted, by its evidence tier."
    )
    resolution: str | None = Field(None, max_length=1000, description="contradict: how the conflict was resolved.")


class StatedFact(_Arguments):
    subject: str = Field(max_length=300, description="web-vm-01, cache-nsg/deny-redis, 10.0.0.4")
    property: str = Field(
        max_length=60, description="power, access, priority, next_hop, peering_state, linked_network, finding, ..."
    )
    value: str = Field(max_length=300, description="As the record has it: running, Deny, None, Connected")


class Statement(_Arguments):
    text: str = Field(max_length=4000, description="One finding, in one or two sentences.")
    audit_ids: AuditIds
    facts: list[StatedFact] = Field(
        default_factory=list, max_length=10, description="The values it rests on, compared with those records."
    )


class Coverage(_Arguments):
    layer: str = Field(
        max_length=100,
        description="local_probe, vm_state, nsg_outbound, nsg_inbound, routes, peering, dns, service_endpoints, "
        "load_balancer, guest_firewall or wire.",
    )
    status: Literal["cleared", "at_fault", "not_verified"] = Field(
        description="cleared and at_fault need the audit_ids that show it."
    )
    audit_ids: AuditIds
    note: str = Field("", max_length=2000, description="What was seen, or why it was not checked.")


class _Sparse(_Arguments):
    """Fields that a model fills with null or an empty text count as left out."""

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, given: Any) -> Any:
        return {k: v for k, v in given.items() if v not in (None, "")} if isinstance(given, dict) else given


class StatedFlow(_Sparse):
    """The traffic that fails."""

    source: str = Field("", max_length=300, description="Machine or address.")
    destination: str = Field("", max_length=300, description="Machine, address or name.")
    protocol: str = Field("", max_length=10, description="Tcp, Udp or Icmp")
    port: int | None = Field(None, ge=1, le=65535)


class Cause(_Sparse):
    """One fault that explains the symptom; a second, independent one is a cause of its own."""

    kind: str = Field(max_length=60, description="As a check names it: security_rule, packet_loss.")
    resource: str = Field(
        max_length=1000,
        description="Id or name of what to correct; on the wire the machine that suffers (of packet_loss: the sender).",
    )
    rule: str = Field("", max_length=300, description="Security rule, route, peering or record of it at fault.")
    direction: Literal["Inbound", "Outbound"] | None = Field(None, description="Of a security rule.")
    flow: StatedFlow | None = None
    confidence: Level = Field(description="In this cause. high needs a [CLOUD] record of a CONFIRMED hypothesis.")
    audit_ids: AuditIds


class CompleteInvestigation(_Arguments):
    """End the investigation: when the root cause is confirmed, when every hypothesis is settled, or when denials leave
    none to test. The report is written from the records; what they do not support is printed as unsupported.
    """

    confidence: Level = Field(description="high: confirmed by records; medium: probable; low: not verified.")
    root_cause_summary: str = Field(
        max_length=8000,
        description="One to three sentences: the cause, with its audit ids; or that it is not known.",
    )
    confirmed_hypotheses: list[Id] = Field(default_factory=list, max_length=50, description="Ids confirmed.")
    refuted_hypotheses: list[Id] = Field(default_factory=list, max_length=50, description="Ids refuted.")
    unverifiable_hypotheses: list[Id] = Field(
        default_factory=list, max_length=50, description="Ids that denials left untested."
    )
    contradicted_hypotheses: list[Id] = Field(
        default_factory=list, max_length=50, description="Ids with contradicting results that nothing resolved."
    )
    recommended_actions: list[Line] = Field(
        default_factory=list, max_length=50, description="Next steps for the engineer, each one sentence or command."
    )
    statements: list[Statement] = Field(
        default_factory=list, max_length=100, description="The findings, each with the records it rests on."
    )
    coverage: list[Coverage] = Field(
        default_factory=list, max_length=40, description="Layers of the path: cleared, at fault or not verified."
    )
    outcome: Outcome | None = Field(
        None,
        description="As the prompt says.",
    )
    causes: list[Cause] = Field(
        default_factory=list, max_length=20, description="Each fault found; empty unless outcome is cause_found."
    )
    traffic: list[StatedFlow] = Field(
        default_factory=list,
        max_length=3,
        description="The traffic examined, where no cause gives its flow.",
    )


class Check(_Sparse):
    again: bool = Field(False, description="Read anew.")


Source = Annotated[str, Field(max_length=300, description="Machine, address or internet.")]
Destination = Annotated[str, Field(max_length=300, description="Machine, address or name.")]
Protocol = Annotated[Literal["Tcp", "Udp", "Icmp"], Field(description="Tcp")]
Port = Annotated[int | None, Field(ge=1, le=65535, description="443")]


class FindEnds(Check):
    """Find the traffic that words mean: its ends in the tenant, with where each comes from. `sure` is false, and
    `open_question` told, where the words leave it open: ask the engineer, or choose a flow.
    """

    text: str = Field(min_length=1, max_length=4000, description="The symptom.")
    source: SkipJsonSchema[str] = Field("", max_length=300)
    destination: SkipJsonSchema[str] = Field("", max_length=300)
    protocol: SkipJsonSchema[str] = Field("", max_length=10)
    port: SkipJsonSchema[int | None] = Field(None, ge=1, le=65535)
    """What options state beside the text, which code passes on and a model is not told of."""


class CheckPath(Check):
    """Walk traffic through all that Azure decides, both ways, with the reads it needs. Tells causes (each with its
    correction, walked), coverage and statements with their records, as complete_investigation takes them.
    """

    source: Source
    destination: Destination
    protocol: Protocol = "Tcp"
    port: Port = None


class CheckName(Check):
    """Resolve a DNS name as a machine would: zones, links, records, private endpoints."""

    source: Source
    name: str = Field(min_length=1, max_length=253, description="db.internal.example")


class CheckLoadBalancer(Check):
    """Walk traffic through a load balancer to its members, with metrics of probes and translations."""

    name: str = Field(min_length=1, max_length=300, description="It, or its front end.")
    source: str = Field("", max_length=300, description="Machine or address.")
    protocol: Protocol = "Tcp"
    port: Port = None


class CheckGuest(CheckPath):
    """As check_path, with firewall, listeners and routes inside the Linux machines on the way; asks the engineer."""


class WhatChanged(CheckPath):
    """Tell what was changed on the way in the last 24 hours: a pointer, not a cause."""


class ReadCapture(CheckPath):
    """Judge a finished capture for the traffic: loss and where, resets, unanswered attempts, slow answers. Of a pair,
    both are compared: where packets are lost.
    """

    path: str = Field(min_length=1, max_length=1000, description="Its local_pcap_path.")
    machine: str = Field(min_length=1, max_length=300, description="Where it was captured.")


class UseEarlierRecords(_Arguments):
    """Let records of an earlier session stand for reads: for the offline brain, which has seen its fault again."""

    session_id: Id


ARGUMENTS: Final[dict[str, type[_Arguments]]] = {
    "find_ends": FindEnds,
    "check_path": CheckPath,
    "check_name": CheckName,
    "check_load_balancer": CheckLoadBalancer,
    "check_guest": CheckGuest,
    "what_changed": WhatChanged,
    "read_capture": ReadCapture,
    "run_shell_cmd": RunShellCmd,
    "capture_traffic": CaptureTraffic,
    "check_task": CheckTask,
    "cancel_task": CancelTask,
    "cleanup_task": CleanupTask,
    "manage_hypotheses": ManageHypotheses,
    "complete_investigation": CompleteInvestigation,
    "use_earlier_records": UseEarlierRecords,
}


SMALL_CONTEXT: Final = 16_000
"""Tokens below which a model is told of the first two checks alone."""


def tool_declarations(context_tokens: int = SMALL_CONTEXT) -> list[ToolDeclaration]:
    """Return name, description and parameters of each tool, as a JSON schema that every provider accepts: no `$defs`,
    no `anyOf` with null, no titles.
    """
    left_out = ("use_earlier_records", *(CHECKS[2:] if context_tokens < SMALL_CONTEXT else ()))
    return [
        ToolDeclaration(name, " ".join((arguments.__doc__ or "").split()), _plain(arguments.model_json_schema()))
        for name, arguments in ARGUMENTS.items()
        if name not in left_out
    ]


_OMITTED: Final = {"$defs", "title", "additionalProperties", "default"}


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = schema.get("$defs", {})

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "anyOf" in node:
            (only,) = (option for option in node["anyOf"] if option.get("type") != "null")
            node = {**only, **{key: value for key, value in node.items() if key != "anyOf"}}
        if "$ref" in node:
            return plain(definitions[node["$ref"].rsplit("/", 1)[-1]])
        if node.get("type") == "object":
            properties = {name: plain(value) for name, value in node["properties"].items()}
            return {**_kept(node), "properties": properties}
        return {key: plain(value) for key, value in _kept(node).items()}

    cleaned: dict[str, Any] = plain(schema)
    cleaned.pop("description", None)  # it is the tool's own
    return cleaned


def _kept(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in _OMITTED}
