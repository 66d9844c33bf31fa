"""The root-cause report as Markdown, rendered from the report's JSON with all external text escaped."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ghost.agent.audit_evidence import CAPTURE
from ghost.agent.markdown import code, table, text
from ghost.agent.session import SessionPaths

LAYERS = {
    "local_probe": "Local probe (engineer's machine)",
    "vm_state": "VM state",
    "nsg_outbound": "NSG outbound (source)",
    "nsg_inbound": "NSG inbound (destination)",
    "routes": "Effective routes",
    "peering": "VNet peering",
    "dns": "DNS",
    "service_endpoints": "Service endpoints",
    "load_balancer": "Load balancer and private endpoint",
    "guest_firewall": "Guest firewall",
    "wire": "Wire (packet capture)",
}


def as_markdown(report: dict[str, Any], paths: SessionPaths) -> str:
    parts = [
        f"# Root Cause Analysis — {report['session_id']}",
        f"_Generated: {report['generated']}_  \n_Outcome: {report['outcome'].replace('_', ' ')}_  \n"
        f"_Confidence: {report['confidence']}_  \n"
        f"_Brain: {text(report['brain'])}_  \n_Network: {text(report['network'])}_",
    ]
    parts += [f"**Symptom:** {text(report['symptom'])}", "## Investigation Summary", _cited(report["summary"])]
    if report["causes"]:
        parts += ["## Causes", _causes_table(report["causes"])]
        parts += [
            f"- {text(c['kind'].replace('_', ' '))}: {text(c['checked'])}." for c in report["causes"] if c["checked"]
        ]
    if report["statements"]:
        parts += ["## Findings", "\n".join(f"{n}. {_cited(s)}" for n, s in enumerate(report["statements"], 1))]
    if report["actions"]:
        parts += ["## Recommended Actions", "\n".join(f"- {_action(action)}" for action in report["actions"])]
    parts += ["## Path Coverage", _coverage_table(report["coverage"])]
    parts += ["## Hypotheses Log", _hypotheses_table(report["hypotheses"])]
    if report["conflicts"]:
        parts += ["## Conflicting Evidence", _conflicts_table(report["conflicts"])]
    parts += ["## Command Evidence", _evidence_table(report["evidence"])]
    parts.append(
        "Rows tagged [LOCAL] show the engineer's own machine (its resolver, its VPN): a [LOCAL] probe that fails is "
        "no evidence of a fault in Azure without a [CLOUD] record."
    )
    parts += ["## Capture Evidence", *_captures(report["captures"])]
    if report["advisories"]:
        parts += ["## Advisories", "\n".join(f"- {text(note)}" for note in report["advisories"])]
    workspace = str(paths.audit_dir.parent)
    check = shlex.join(["ghost", "audit", "verify", str(report["session_id"]), "--workspace", workspace])
    registry = f"- Task registry: {code(str(paths.tasks))}\n" if report["captures"] else ""
    parts += [
        "## Integrity Statement",
        "All evidence in this report is cited by audit id from append-only, hash-chained JSONL files. Raw command "
        "output stays in the audit; only conclusions appear here.\n\n"
        f"- Shell audit: {code(str(paths.shell_audit))}\n"
        f"{registry}"
        f"- Check it: {code(check)}",
    ]
    return "\n\n".join(parts) + "\n"


def _cited(statement: dict[str, Any]) -> str:
    if not statement["supported"]:
        why = "; ".join(statement["problems"]) or "it cites no audit record"
        return f"{text(statement['text'])} **[unsupported: {text(why)}]**"
    unnamed = [i for i in statement["audit_ids"] if i not in statement["text"]]
    cited = f" [{', '.join(unnamed)}]" if unnamed else ""
    return f"{text(statement['text'])}{cited}"


def _action(action: dict[str, Any]) -> str:
    """Return a recommendation with its command set as code, so that it can be copied, and what the shell says of it."""
    command = action["command"]
    if command is None:
        return text(action["text"])
    lead, _, after = action["text"].partition(command)
    rest = after.strip("` .”")
    return f"{text(lead.rstrip(' `“'))} {code(command)} ({action['classification']}) {text(rest)}".strip()


def _causes_table(rows: list[dict[str, Any]]) -> str:
    return table(
        ("Kind", "Resource", "Rule", "Flow", "Confidence", "Record"),
        [
            (
                text(c["kind"].replace("_", " ")),
                code(c["resource"]),
                text(" ".join(filter(None, (c["rule"], c["direction"])))),
                text(_flow(c["flow"] or {})),
                c["confidence"] if c["supported"] else f"**unsupported: {text('; '.join(c['problems']))}**",
                _ids(c["audit_ids"]),
            )
            for c in rows
        ],
    )


def _flow(flow: dict[str, Any]) -> str:
    return f"{flow['source']} to {flow['destination']} {flow['protocol']} {flow['port'] or ''}".strip() if flow else ""


def _coverage_table(rows: list[dict[str, Any]]) -> str:
    words = {"cleared": "cleared", "at_fault": "**AT FAULT**", "not_verified": "not verified"}
    return table(
        ("Layer", "Status", "Record", "Note"),
        [
            (LAYERS.get(r["layer"], text(r["layer"])), words[r["status"]], _ids(r["audit_ids"]), text(r["note"]))
            for r in rows
        ],
    )


def _hypotheses_table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "No hypothesis was registered."
    return table(
        ("Hypothesis ID", "Description", "Would be refuted by", "Final State", "Denial Count", "Evidence"),
        [
            (
                text(h["id"]),
                text(h["description"]),
                text(h["refuted_by"]),
                "ACTIVE (not settled)" if h["state"] == "ACTIVE" else h["state"],
                str(h["denial_count"]),
                _ids(h["audit_ids"]),
            )
            for h in rows
        ],
    )


def _conflicts_table(rows: list[dict[str, Any]]) -> str:
    return table(
        ("Hypothesis", "Records that disagree", "Trusted source", "Resolution", "What"),
        [
            (
                text(c["hypothesis_id"]),
                _ids(c["conflicting_audit_ids"]),
                text(c["higher_fidelity_source"] or "not settled"),
                text(c["resolution"] or "open"),
                text(c["description"]),
            )
            for c in rows
        ],
    )


def _evidence_table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "No command reached the shell."
    return table(
        ("Audit ID", "Context", "Command", "Classification", "Action", "Exit Code", "Outcome"),
        [
            (
                text(r["audit_id"]),
                r["context"],
                code(str(r["command"])),
                str(r["classification"]),
                str(r["action"] or "none"),
                "" if r["exit_code"] is None else str(r["exit_code"]),
                text(r["outcome"]),
            )
            for r in rows
        ],
    )


def _captures(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["No capture was taken."]
    parts = [
        table(
            ("Task ID", "Target", "State", "Cleanup", "Report Path", "PCAP Path"),
            [
                (
                    text(r["task_id"]),
                    text(r["target"] or ""),
                    text(f"{r['state']} ({r['outcome']})" if r.get("outcome") else str(r["state"])),
                    text(r["cleanup_status"] or "none"),
                    code(str(r["report_path"] or "-")),
                    code(str(r["local_pcap_path"] or "-")) + _removal_note(r),
                )
                for r in rows
            ],
        )
    ]
    for r in rows:
        if r["executive_summary"]:
            quoted = "\n".join(f"> {line}".rstrip() for line in r["executive_summary"].splitlines() if line.strip())
            parts.append(
                f"### Executive summary of {text(r['task_id'])} ({CAPTURE.context}, "
                f"{r['executive_summary_audit_id']})\n\n{quoted}"
            )
        elif not r["executive_summary_available"]:
            parts.append(f"Report content of {text(r['task_id'])} unavailable (cat denied by the engineer, or failed).")
    return parts


def _removal_note(row: dict[str, Any]) -> str:
    path = row["local_pcap_path"]
    return " (removed by the clean-up)" if path and not Path(path).exists() else ""


def _ids(audit_ids: list[str]) -> str:
    return ", ".join(text(i) for i in audit_ids) or "none"
