"""The tenant of a world as Azure Resource Manager has it: a body for each resource, and the network they make up."""

from ghost.lab.tenant.azure_types import AZURE_TYPES
from ghost.lab.tenant.bodies import CREATED, id_of, interface_id, scale_set_view
from ghost.lab.tenant.documents import Body, Documents, etag_of, folded, guid, type_in
from ghost.lab.tenant.guest_tools import guest_texts
from ghost.lab.tenant.world_documents import admin_rules_of, documents_of

__all__ = [
    "AZURE_TYPES",
    "CREATED",
    "Body",
    "Documents",
    "admin_rules_of",
    "documents_of",
    "etag_of",
    "folded",
    "guest_texts",
    "guid",
    "id_of",
    "interface_id",
    "scale_set_view",
    "type_in",
]
