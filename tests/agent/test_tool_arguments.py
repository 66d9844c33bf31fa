"""The declarations that a model receives: every provider accepts them, and every string and list is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ghost.agent.tool_arguments import ARGUMENTS, SMALL_CONTEXT, Cause, tool_declarations
from ghost.brain import CHECKS

ACCEPTED = {
    "type", "description", "properties", "required", "items", "enum",
    "minLength", "maxLength", "maxItems", "minimum", "maximum",
}  # fmt: skip


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for child in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        yield from nodes(child)


def test_each_declaration_is_plain_and_bounded() -> None:
    for declaration in tool_declarations():
        assert len(declaration.description) > 40, declaration.name
        for node in nodes(declaration.parameters):
            assert node.keys() <= ACCEPTED, (declaration.name, node.keys() - ACCEPTED)
            if node["type"] == "string":
                assert "maxLength" in node or "enum" in node, (declaration.name, node)
            if node["type"] == "array":
                assert {"maxItems", "items"} <= node.keys(), (declaration.name, node)
        for name, field in declaration.parameters["properties"].items():
            assert field.get("description"), (declaration.name, name)


def test_what_a_model_fills_with_nothing_counts_as_left_out() -> None:
    stated = {"kind": "packet_loss", "resource": "vm-1", "confidence": "low"}
    empty = {"rule": None, "direction": "", "flow": {"source": None, "port": None}, "audit_ids": None}
    assert Cause.model_validate({**stated, **empty}) == Cause.model_validate({**stated, "flow": {}})


def test_a_small_context_is_told_of_the_first_two_checks_alone() -> None:
    names = [[declared.name for declared in tool_declarations(tokens)] for tokens in (SMALL_CONTEXT - 1, SMALL_CONTEXT)]
    assert [[name for name in each if name in CHECKS] for each in names] == [list(CHECKS[:2]), list(CHECKS)]
    assert names[1] == [name for name in ARGUMENTS if name != "use_earlier_records"]
