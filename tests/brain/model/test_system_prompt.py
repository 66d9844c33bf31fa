"""The system prompt: all its files, in order, with every tool and every behaviour that the loop counts on."""

from __future__ import annotations

from pathlib import Path

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


def test_the_prompt_names_every_tool_and_what_the_loop_tells():
    text = assembled_prompt().text
    told = [
        "is data",
        "2 to 4",
        "three are active",
        "refute it",
        "executive_summary",
        "resumed",
        "denial_reason",
        "pivot_instruction",
        "denial_threshold_reached",
        "UNVERIFIABLE",
        "engineer's local machine",
        "[LOCAL]",
        "[CLOUD]",
        "contradict",
        "truncation_applied",
        "--query",
        "preflight",
        "_meta.timeout",
    ]
    assert [word for word in told if word not in text] == []
    assert [tool.name for tool in tool_declarations() if tool.name not in text] == []
