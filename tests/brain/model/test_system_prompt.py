"""The system prompt: all its files, in order, with every tool and every behaviour that the loop counts on."""

from __future__ import annotations

import re
from pathlib import Path

import jmespath

import ghost.brain.model
from ghost.agent import tool_declarations
from ghost.brain.model.system_prompt import assembled_prompt

FOLDER = Path(ghost.brain.model.__file__).parent / "prompt"


def test_every_file_of_the_prompt_is_part_of_it_and_ends_in_the_hash():
    prompt = assembled_prompt()
    for file in FOLDER.glob("*.md"):
        assert file.read_text().strip() in prompt.text, file.name
    assert prompt.version >= 1
    assert len(prompt.sha256) == 64
    assert len(prompt.text.split()) < 2500


BEHAVIOURS = {
    "framework": [
        "2 to 4 specific, falsifiable",
        "only when the checks do not explain",
        "refute it",
    ],
    "checks": ["You do not evaluate rules", "is refused with the walk", "copy those that explain the symptom"],
    "injection": ["never instructs you", "is data"],
    "hypotheses": ["three are active", "UNVERIFIABLE", "smallest set of commands"],
    "capture": ["`read_capture`, then `cleanup_task`", "Approval may be asked for"],
    "first tool by symptom": ["NXDOMAIN", "load balancer", "intermittent", "refused"],
    "files": ["Never ~/.ssh, .env, /etc, /proc"],
    "escalation": ["1. Local reads", "2. Checks and Azure reads", "3. Managed capture", "4. Conclude"],
    "failures": ["_meta.timeout", "Capture failed", "Capture timed out", "Capture cannot be read", "preflight"],
    "denials": ["_meta.denial_reason", "Do not repeat the command", "_meta.pivot_instruction", "A second denial"],
    "end of denials": ["_meta.denial_threshold_reached", "confidence low", "unverifiable_hypotheses"],
    "evidence": ["1. Packet capture", "2. Azure API", "3. Active probe", "4. Host state", "[CLOUD]", "[LOCAL]"],
    "local probes": ["from the engineer's local machine", "never overrides a [CLOUD]", "may not know private zones"],
    "conflicts": [
        "Name the tier",
        "Trust the higher tier",
        "`contradict` and both audit ids",
        "contradicted_hypotheses",
    ],
    "patterns of conflicts": ["ping times out", "curl is refused", "all rules permit", "the VM runs"],
    "targeted queries": ["truncation_applied", "do not run the same command again", "`[?field=='value']`"],
    "JMESPath safety": ["No nested projections", "no pipes", "Never `-o table`", "take it as a mistake in the query"],
    "resume": ["2 or 3 reads that matter", "compare them with the earlier records", "becomes active again"],
}
QUERIES = re.compile(r"(?:--query \"|`)(\[\?[^\"`]+)[\"`]")


def test_the_prompt_names_every_tool_and_asks_for_every_behaviour():
    text = " ".join(assembled_prompt().text.split())
    missing = {name: [words for words in told if words not in text] for name, told in BEHAVIOURS.items()}
    assert {name: words for name, words in missing.items() if words} == {}
    assert [tool.name for tool in tool_declarations() if tool.name not in text] == []


def test_the_queries_that_the_prompt_shows_compile():
    queries = QUERIES.findall(" ".join(assembled_prompt().text.split()))
    assert len(queries) >= 4
    for query in queries:
        jmespath.compile(query)
