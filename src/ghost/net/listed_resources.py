"""The list of all resources of a subscription: names and tags, and what the list tells that there is not.

https://learn.microsoft.com/cli/azure/resource#az-resource-list
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ghost.net.azure_shapes import object_of, resources_in, text_of
from ghost.net.resources import Resource

LISTED_FIELDS: Final = "[].{id: id, tags: tags}"


@dataclass(frozen=True, kw_only=True)
class ListedResource(Resource):
    kind = "resource"

    tags: Mapping[str, str] = field(default_factory=dict, hash=False)


def read_listing(answer: Any, reference: str = "") -> list[ListedResource]:
    return [
        ListedResource(id=text_of(fields, "id"), reference=reference, tags=dict(object_of(fields, "tags", {})))
        for fields in resources_in(answer)
    ]


def type_in(resource_id: str) -> str:
    """Return the type in an id as Azure writes it: provider and kinds, in lower case."""
    parts = resource_id.casefold().partition("/providers/")[2].split("/")
    return "/".join([parts[0], *parts[1::2]])
