"""Dispatch of a request by host, after authentication.

Resource Manager requires a token of this lab; storage a token or a signature with the account's key. Only the services'
addresses and the token endpoint are answered.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from ghost.lab.arm import blob_service, resource_manager
from ghost.lab.arm.api_messages import ArmError, Request, Response, json_response
from ghost.lab.arm.blob_service import BlobError
from ghost.lab.arm.blob_store import account_keys, account_named
from ghost.lab.arm.hostility import EXPIRED_LOGIN, is_logged_out
from ghost.lab.arm.identity import Identity, endpoints
from ghost.lab.arm.role_assignments import may_use_blobs
from ghost.lab.arm.service_hosts import MANAGEMENT_AUDIENCE, STORAGE_AUDIENCE, account_of
from ghost.lab.arm.shared_key import signature
from ghost.lab.arm.storage_firewall import admits_address
from ghost.lab.directory import LabDirectory


@dataclass(frozen=True)
class Gateway:
    lab: LabDirectory
    identity: Identity

    def answer(self, host: str, request: Request) -> Response:
        account = account_of(host)
        if account is not None:
            try:
                self._check_storage(account, request)
            except BlobError as refusal:
                return refusal.response()
            return blob_service.answer(self.lab, account, request)
        try:
            if request.path == "/metadata/endpoints":
                return endpoints()
            if request.path == "/msi/token" and is_logged_out(self.lab):
                return json_response({"statusCode": 400, "message": EXPIRED_LOGIN}, 400)
            if request.path == "/msi/token":
                return self.identity.answer(request)
            if not self.identity.accepts(request.headers.get("authorization", ""), MANAGEMENT_AUDIENCE):
                raise ArmError(401, "InvalidAuthenticationToken", "The access token is invalid, or of another lab.")
        except ArmError as refusal:
            return refusal.response()
        return resource_manager.answer(self.lab, request)

    def _check_storage(self, name: str, request: Request) -> None:
        """Raise `BlobError` as Azure does: first its firewall is asked, then who asks.

        https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
        """
        world, authorization = self.lab.world, request.headers.get("authorization", "")
        account = account_named(world, name)
        body = world.documents.get(world.documents.id_of(f"storageAccounts/{name}")) if account is not None else None
        if body is not None and not admits_address(body, world.local.public_address):
            raise BlobError(403, "AuthorizationFailure", "This request is not authorized to perform this operation.")
        if not authorization:
            message = "Server failed to authenticate the request. Please refer to the information in the "
            raise BlobError(401, "NoAuthenticationInformation", f"{message}www-authenticate header.")
        if self.identity.accepts(authorization, STORAGE_AUDIENCE):
            if body is None or may_use_blobs(self.lab, body["id"], request):
                return
            message = "This request is not authorized to perform this operation using this permission."
            raise BlobError(403, "AuthorizationPermissionMismatch", message)
        if body is not None and body["properties"].get("allowSharedKeyAccess") is False:
            message = "Key based authentication is not permitted on this storage account."
            raise BlobError(403, "KeyBasedAuthenticationNotPermitted", message)
        for key in account_keys(world, account) if account is not None else ():
            signed = signature(name, key, request.method, request.target, request.headers)
            if hmac.compare_digest(authorization.encode(), f"SharedKey {name}:{signed}".encode()):
                return
        raise BlobError(
            403,
            "AuthenticationFailed",
            "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
            "correctly including the signature.",
        )
