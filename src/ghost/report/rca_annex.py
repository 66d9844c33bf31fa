"""The annex of a report: all that was asked and run, in the sections of the specification, with full audit ids."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ghost.report.rca_blocks import Block, CapturePlots, Code, Files, Heading, Items, Paragraph, Spans, Strong, Table
from ghost.report.rca_wording import cited, flow_of, ids_of, quoted, words

LOCAL_AND_CLOUD: Final = (
    "Rows tagged [LOCAL] show the engineer's own machine (its resolver, its VPN): a [LOCAL] probe that fails is no "
    "evidence of a fault in Azure without a [CLOUD] record."
)
INTEGRITY: Final = (
    "All evidence in this report is cited by audit id from append-only, hash-chained JSONL files. Raw command output "
    "stays in the audit; only conclusions appear here."
)


def annex_of(report: Mapping[str, Any], files: Files) -> Iterator[Block]:
    yield Heading(2, "Investigation Summary")
    yield Paragraph(cited(report, report["summary"], full=True))
    if report["causes"]:
        yield Heading(2, "Causes")
        yield _causes_in_full(report["causes"])
    if report["actions"]:
        yield Heading(2, "Recommended Actions")
        yield Items(tuple((action["text"],) for action in report["actions"]))
    yield Heading(2, "Hypotheses Log")
    yield from _hypotheses(report["hypotheses"])
    if report["conflicts"]:
        yield Heading(2, "Conflicting Evidence")
        yield _conflicts(report["conflicts"])
    yield Heading(2, "Command Evidence")
    yield from _commands(report["evidence"])
    yield Paragraph((LOCAL_AND_CLOUD,))
    yield Heading(2, "Capture Evidence")
    yield from _captures(report["captures"])
    yield Heading(2, "Integrity Statement")
    yield Paragraph((INTEGRITY,))
    check = shlex.join(["ghost", "audit", "verify", str(report["session_id"]), "--workspace", files.workspace])
    rows: list[Spans] = [("Shell audit: ", Code(files.shell_audit))]
    rows += [("Task registry: ", Code(files.tasks))] if report["captures"] else []
    yield Items((*rows, ("Check it: ", Code(check))))


def _causes_in_full(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        ("Kind", "Resource", "Rule", "Flow", "Confidence", "Record"),
        tuple(
            (
                (words(c["kind"]),),
                (Code(c["resource"]),),
                (" ".join(filter(None, (c["rule"], c["direction"]))),),
                (flow_of(c["flow"]) if c["flow"] else "",),
                (c["confidence"] if c["supported"] else Strong(f"unsupported: {'; '.join(c['problems'])}"),),
                (ids_of(c["audit_ids"]),),
            )
            for c in rows
        ),
    )


def _hypotheses(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    if not rows:
        yield Paragraph(("No hypothesis was registered.",))
        return
    header = ("Hypothesis ID", "Description", "Would be refuted by", "Final State", "Denial Count", "Evidence")
    yield Table(
        header,
        tuple(
            (
                (h["id"],),
                (h["description"],),
                (h["refuted_by"],),
                ("ACTIVE (not settled)" if h["state"] == "ACTIVE" else h["state"],),
                (str(h["denial_count"]),),
                (ids_of(h["audit_ids"]),),
            )
            for h in rows
        ),
    )


def _conflicts(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        ("Hypothesis", "Records that disagree", "Trusted source", "Resolution", "What"),
        tuple(
            (
                (c["hypothesis_id"],),
                (ids_of(c["conflicting_audit_ids"]),),
                (c["higher_fidelity_source"] or "not settled",),
                (c["resolution"] or "open",),
                (c["description"],),
            )
            for c in rows
        ),
    )


def _commands(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    if not rows:
        yield Paragraph(("No command reached the shell.",))
        return
    yield Table(
        ("Audit ID", "Context", "Command", "Classification", "Action", "Exit Code", "Outcome"),
        tuple(
            (
                (r["audit_id"],),
                (r["context"],),
                (Code(str(r["command"])),),
                (str(r["classification"]),),
                (str(r["action"] or "none"),),
                ("" if r["exit_code"] is None else str(r["exit_code"]),),
                (r["outcome"],),
            )
            for r in rows
        ),
    )


def _captures(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    if not rows:
        yield Paragraph(("No capture was taken.",))
        return
    yield Table(
        ("Task ID", "Target", "State", "Cleanup", "Report Path", "PCAP Path"),
        tuple(
            (
                (r["task_id"],),
                (r["target"] or "",),
                (f"{r['state']} ({r['outcome']})" if r.get("outcome") else str(r["state"]),),
                (r["cleanup_status"] or "none",),
                (Code(str(r["report_path"] or "-")),),
                (
                    Code(str(r["local_pcap_path"] or "-")),
                    *((" (removed by the clean-up)",) if _is_removed(r) else ()),
                    *((", page ", Code(str(r["page_path"]))) if r.get("page_path") else ()),
                ),
            )
            for r in rows
        ),
    )
    shown: set[str] = set()
    for r in rows:
        if r["executive_summary"]:
            if r["executive_summary_audit_id"] in shown:  # of two ends
                continue
            shown.add(r["executive_summary_audit_id"])
            yield Heading(3, f"Executive summary of {r['task_id']} ([CLOUD], {r['executive_summary_audit_id']})")
            yield quoted(r["executive_summary"])
            yield CapturePlots(str(r["report_path"]))
        elif not r["executive_summary_available"]:
            yield Paragraph((f"Report content of {r['task_id']} unavailable (cat denied by the engineer, or failed).",))


def _is_removed(row: Mapping[str, Any]) -> bool:
    return (
        bool(row["local_pcap_path"]) and row["cleanup_status"] == "completed" and not row.get("local_pcap_exists", True)
    )
