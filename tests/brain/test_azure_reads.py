from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ghost.brain.offline
from ghost.brain.offline.azure_reads import Outcome, az, is_name, query, reading_of, resource_id
from ghost.text import one_line

FOLDER = Path(ghost.brain.offline.__file__).parent
TEMPLATES = tomllib.loads((FOLDER / "queries.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_every_query_template_compiles(name: str) -> None:
    text = query(name)
    assert "$" not in text
    jmespath.compile(text)


@given(st.text(max_size=40))
def test_a_command_is_one_list_of_words_whatever_they_hold(word: str) -> None:
    words = az("vm", "show", "-n", word)
    assert tuple(shlex.split(shlex.join(words))) == words


@given(st.text(max_size=120))
def test_only_ids_of_azures_form_are_taken_for_ids(text: str) -> None:
    found = resource_id(text)
    assert found is None or all(is_name(name) for name in (found.group, *found.names))


def test_a_resource_id_gives_group_and_names() -> None:
    text = "/subscriptions/s/resourceGroups/RG-1/providers/Microsoft.Network/virtualNetworks/v/subnets/a"
    found = resource_id(text)
    assert found is not None
    assert (found.group, found.names, found.name) == ("RG-1", ("v", "a"), "a")
    assert found.same(resource_id(text.replace("RG-1", "rg-1")))


@pytest.mark.parametrize("name", ["--yes", "-n", "a b", "a;b", "a\nb", "$(x)", "", "a" * 91, "a/b", "@file"])
def test_a_name_azure_cannot_have_given_is_refused(name: str) -> None:
    assert not is_name(name)


@pytest.mark.parametrize(
    ("result", "outcome", "citable"),
    [
        ({"status": "completed", "exit_code": 0, "output": "[]", "audit_id": "a"}, Outcome.OK, True),
        ({"status": "denied", "audit_id": "a", "denial_reason": "no"}, Outcome.DENIED, False),
        ({"status": "error", "error": "timeout", "audit_id": "a"}, Outcome.FAILED, False),
        ({"status": "error", "error": "preflight", "suggestion": "fix"}, Outcome.FAILED, False),
        ({"status": "completed", "exit_code": 3, "output": "", "stderr": "x", "audit_id": "a"}, Outcome.FAILED, True),
        (
            {
                "status": "completed",
                "exit_code": 0,
                "output": "[]",
                "audit_id": "a",
                "output_metadata": {"truncation_applied": True},
            },
            Outcome.TRUNCATED,
            True,
        ),
    ],
)
def test_a_result_is_worth_what_its_status_says(result: dict, outcome: Outcome, citable: bool) -> None:
    reading = reading_of(result)
    assert reading.outcome is outcome
    assert bool(reading.audit_ids) is citable
    assert outcome is Outcome.OK or reading.why


@given(st.text())
def test_text_of_the_tenant_is_printed_as_one_short_line(text: str) -> None:
    line = one_line(text, 80)
    assert len(line) <= 80
    assert line == "" or line.isprintable()
