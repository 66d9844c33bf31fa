"""Findings as Markdown for the engineer on call: the fault, its owner, and the first command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ghost.pcap import safe_text
from ghost.pcap.findings import Finding
from ghost.pcap.model import Analysis
from ghost.pcap.report.capture_facts import (
    METHOD,
    OWNERS,
    context,
    faults,
    limits,
    measurements,
    new_remedies,
    origin,
    size,
    verdict_word,
)
from ghost.pcap.safe_text import code, markdown

LONGEST_SUMMARY = 50
_SERIOUS = ("CRITICAL", "HIGH")


def executive_summary(analysis: Analysis, findings: Sequence[Finding]) -> str:
    """Return the summary, with the result in the first three lines; 50 lines at most."""
    lines = [
        *_headline(findings, level="#"),
        "",
        *_all_findings(findings),
        "## The capture",
        "",
        *(f"- {line}" for line in _capture_lines(analysis)),
        *(f"- {markdown(line)}" for line in measurements(analysis)),
    ]
    return "\n".join(lines[:LONGEST_SUMMARY]) + "\n"


def forensic_report(analysis: Analysis, findings: Sequence[Finding]) -> str:
    lines = [
        f"# Forensic report: {code(safe_text.name(analysis.summary.file))}",
        "",
        "## Executive Summary",
        "",
        *_headline(findings, level="###"),
        "",
        *(f"- {line}" for line in _capture_lines(analysis)),
        "",
        "## Anomaly Table",
        "",
        *_anomaly_table(findings),
        "",
        "## Root Cause Analysis",
        "",
        *_root_causes(findings),
        "## Remediation",
        "",
        *_remediation(findings),
        "## Measurements",
        "",
        *(f"- {markdown(line)}" for line in measurements(analysis)),
        "",
        "## Method",
        "",
        *_method(analysis),
    ]
    return "\n".join(lines) + "\n"


# --------------------------------------------------------------------------------------------------------- parts


def _headline(findings: Sequence[Finding], level: str) -> Iterator[str]:
    worst = findings[0]
    if worst.kind == "none":
        yield f"{level} {verdict_word(worst).capitalize()}: {markdown(worst.title)}"
        yield f"**Seen:** {markdown(worst.detail)}  "
        yield f"**Confidence:** {worst.confidence}. {markdown(worst.cause)}"
        if worst.unusual:
            yield ""
            yield "**Unusual in it:**"
            yield ""
            yield from (f"- {markdown(sentence)}" for sentence in worst.unusual)
        return
    yield f"{level} {verdict_word(worst)}: {markdown(worst.title)}"
    yield f"**Seen:** {markdown(worst.detail)}  "
    yield f"**Owner:** {OWNERS[worst.blame]}, {worst.confidence} confidence. {markdown(worst.cause)}  "
    if worst.remediation:
        yield f"**First step**, on {markdown(worst.remediation[0].run_on)}: {code(worst.remediation[0].command)}"
    told = list(context(worst))
    if told:
        yield ""
        yield "  \n".join(f"**{heading}:** {markdown(text)}" for heading, text in told)


def _all_findings(findings: Sequence[Finding]) -> Iterator[str]:
    if len(findings) < 2:
        return
    yield f"## All {len(findings)} findings"
    yield ""
    yield "| | Severity | Issue | Owner | Frames |"
    yield "| --- | --- | --- | --- | --- |"
    for finding in findings:
        yield (
            f"| {finding.id} | {finding.severity} | {markdown(finding.title)} | {OWNERS[finding.blame]} |"
            f" {_frames(finding)} |"
        )
    yield ""


def _anomaly_table(findings: Sequence[Finding]) -> Iterator[str]:
    anomalies = faults(findings)
    if not anomalies:
        yield "No anomalies."
        return
    yield "| Severity | Protocol | Issue | Detail | Frames |"
    yield "| --- | --- | --- | --- | --- |"
    for finding in anomalies:
        yield (
            f"| {finding.severity} | {finding.protocol} | {finding.id}: {markdown(finding.title)} |"
            f" {markdown(finding.detail)} | {_frames(finding)} |"
        )


def _root_causes(findings: Sequence[Finding]) -> Iterator[str]:
    serious = [finding for finding in findings if finding.severity in _SERIOUS]
    if not serious:
        yield "Nothing of severity HIGH or CRITICAL was found."
        yield ""
    for finding in serious:
        yield f"### {finding.id}: {markdown(finding.title)}"
        yield ""
        yield f"- **Observation:** {markdown(finding.detail)} Frames: {_frames(finding)}."
        yield from (f"- **{heading}:** {markdown(text)}" for heading, text in context(finding))
        yield f"- **Cause:** {markdown(finding.cause)}"
        yield f"- **Owner:** {OWNERS[finding.blame]} ({finding.confidence} confidence)"
        yield ""


def _remediation(findings: Sequence[Finding]) -> Iterator[str]:
    for finding, fresh in new_remedies(findings):
        if not fresh:
            continue
        yield f"**{finding.id}** {markdown(finding.title)}"
        yield ""
        for remedy in fresh:
            yield f"1. On {markdown(remedy.run_on)}: {code(remedy.command)}"
        yield ""
    if not any(finding.remediation for finding in findings):
        yield "Nothing to do."
        yield ""


def _frames(finding: Finding) -> str:
    return ", ".join(str(frame) for frame in finding.evidence) or "–"


def _capture_lines(analysis: Analysis) -> Iterator[str]:
    yield f"{code(safe_text.name(analysis.summary.file))}: {markdown(size(analysis.summary))}"
    lacks = list(limits(analysis.summary))
    if lacks:
        yield "Limits of this capture: " + markdown("; ".join(lacks))


def _method(analysis: Analysis) -> Iterator[str]:
    yield METHOD
    yield ""
    for name, value in origin(analysis):
        yield f"- {name}: {code(value) if name.startswith('SHA') else markdown(value)}"
