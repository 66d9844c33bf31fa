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
from ghost.lab.arm.service_hosts import MANAGEMENT_AUDIENCE, STORAGE_AUDIENCE, account_of
from ghost.lab.arm.shared_key import signature
from ghost.lab.directory import LabDirectory

DATA_ROLE = "Storage Blob Data"


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
        authorization = request.headers.get("authorization", "")
        if self.identity.accepts(authorization, STORAGE_AUDIENCE):
            if any(role.startswith(DATA_ROLE) for role in self.lab.tenant.roles):
                return
            message = "This request is not authorized to perform this operation using this permission."
            raise BlobError(403, "AuthorizationPermissionMismatch", message)
        account = account_named(self.lab.world, name)
        for key in account_keys(self.lab.world, account) if account is not None else ():
            signed = signature(name, key, request.method, request.target, request.headers)
            if hmac.compare_digest(authorization.encode(), f"SharedKey {name}:{signed}".encode()):
                return
        raise BlobError(
            403,
            "AuthenticationFailed",
            "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
            "correctly including the signature.",
        )
