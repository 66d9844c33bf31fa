"""The blob storage API: https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api

`gateway` has checked access. Reads, ranged downloads, and deletion; only captures create blobs.
"""

from __future__ import annotations

import base64
import re
from email.utils import format_datetime
from xml.sax.saxutils import escape, quoteattr

from ghost.lab.arm.api_messages import Request, Response
from ghost.lab.arm.blob_store import (
    StoredBlob,
    account_named,
    blobs,
    container_created,
    container_etag,
    containers,
    content_md5,
    create_container,
)
from ghost.lab.directory import LabDirectory
from ghost.lab.world import StorageAccount

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_LEASE = {"x-ms-lease-status": "unlocked", "x-ms-lease-state": "available"}
_XML = {"Content-Type": "application/xml"}


class BlobError(Exception):
    """An error of the blob service: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes"""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message

    def response(self) -> Response:
        text = f"<Error><Code>{self.code}</Code><Message>{escape(self.message)}</Message></Error>"
        return Response(self.status, _document(text), {**_XML, "x-ms-error-code": self.code})


def answer(lab: LabDirectory, account_name: str, request: Request) -> Response:
    """Return the response; a `BlobError` becomes an error response."""
    try:
        account = account_named(lab.world, account_name)
        if account is None:
            raise BlobError(404, "ResourceNotFound", "The specified resource does not exist.")
        return _answer(lab, account, request)
    except BlobError as error:
        return error.response()


def _answer(lab: LabDirectory, account: StorageAccount, request: Request) -> Response:
    container, _, blob = "/".join(request.segments).partition("/")
    lists, of_container = request.query.get("comp") == "list", request.query.get("restype") == "container"
    if request.query.get("comp") not in (None, "list"):
        raise BlobError(400, "UnsupportedQueryParameter", f"comp={request.query['comp']} is not simulated here.")
    if not container:
        if request.method == "GET" and lists:
            return _list_containers(lab, account, request)
        raise BlobError(400, "InvalidUri", "The requested URI does not represent any resource on the server.")
    if request.method == "PUT" and of_container and not blob:
        if not create_container(lab, account, container):
            raise BlobError(409, "ContainerAlreadyExists", "The specified container already exists.")
        return Response(201, b"", _container_headers(account, container), changed=True)
    if container not in containers(lab, account):
        raise BlobError(404, "ContainerNotFound", "The specified container does not exist.")
    if not blob:
        if request.method == "GET" and of_container and lists:
            return _list_blobs(lab, account, container, request)
        if request.method in ("GET", "HEAD") and of_container:
            return Response(200, b"", _container_headers(account, container))
        raise BlobError(405, "UnsupportedHttpVerb", "The resource doesn't support the specified HTTP verb.")
    if request.method not in ("GET", "HEAD", "DELETE"):
        raise BlobError(405, "UnsupportedHttpVerb", "An upload is not simulated here: only captures make blobs.")
    stored = _find(lab, account, container, blob)
    if request.method == "HEAD":
        content = stored.content()
        return Response(200, b"", {**_blob_headers(stored, content), "Content-Length": str(len(content))})
    if request.method == "GET":
        return _download(stored, request)
    stored.delete()
    return Response(202, b"", {"x-ms-delete-type-permanent": "true"}, changed=True)


def _find(lab: LabDirectory, account: StorageAccount, container: str, name: str) -> StoredBlob:
    for stored in blobs(lab, account, container):
        if stored.name == name:
            return stored
    raise BlobError(404, "BlobNotFound", "The specified blob does not exist.")


def _download(stored: StoredBlob, request: Request) -> Response:
    stored.keep()
    content = stored.content()
    headers = _blob_headers(stored, content)
    byte_range = _RANGE.fullmatch(request.headers.get("x-ms-range") or request.headers.get("range") or "")
    if byte_range is None:
        return Response(200, content, headers)
    first, last = int(byte_range[1]), int(byte_range[2] or len(content) - 1)
    if first >= len(content):
        raise BlobError(416, "InvalidRange", "The range specified is invalid for the current size of the resource.")
    part = content[first : last + 1]
    place = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
    whole_md5 = headers.pop("Content-MD5")
    return Response(206, part, {**headers, "Content-Range": place, "x-ms-blob-content-md5": whole_md5})


def _blob_headers(stored: StoredBlob, content: bytes) -> dict[str, str]:
    return {
        "Content-Type": "application/octet-stream",
        "Content-MD5": base64.b64encode(content_md5(content)).decode(),
        "Last-Modified": format_datetime(stored.created, usegmt=True),
        "ETag": stored.etag,
        "Accept-Ranges": "bytes",
        "x-ms-blob-type": "BlockBlob",
        "x-ms-creation-time": format_datetime(stored.created, usegmt=True),
        "x-ms-access-tier": "Hot",
        "x-ms-access-tier-inferred": "true",
        "x-ms-server-encrypted": "true",
        **_LEASE,
    }


def _container_headers(account: StorageAccount, container: str) -> dict[str, str]:
    return {
        "Last-Modified": format_datetime(container_created(), usegmt=True),
        "ETag": container_etag(account, container),
        "x-ms-has-immutability-policy": "false",
        "x-ms-has-legal-hold": "false",
        "x-ms-immutable-storage-with-versioning-enabled": "false",
        "x-ms-default-encryption-scope": "$account-encryption-key",
        "x-ms-deny-encryption-scope-override": "false",
        **_LEASE,
    }


def _list_containers(lab: LabDirectory, account: StorageAccount, request: Request) -> Response:
    prefix = request.query.get("prefix", "")
    entries = [_container_entry(account, name) for name in containers(lab, account) if name.startswith(prefix)]
    return _list(request, account, "", f"<Containers>{''.join(entries[: _max_results(request)])}</Containers>")


def _container_entry(account: StorageAccount, name: str) -> str:
    headers = _container_headers(account, name)
    return (
        f"<Container><Name>{escape(name)}</Name><Properties><Last-Modified>{headers['Last-Modified']}</Last-Modified>"
        f"<Etag>{escape(headers['ETag'])}</Etag><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>"
        "<DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope><DenyEncryptionScopeOverride>false"
        "</DenyEncryptionScopeOverride><HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false"
        "</HasLegalHold><ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled>"
        "</Properties></Container>"
    )


def _list_blobs(lab: LabDirectory, account: StorageAccount, container: str, request: Request) -> Response:
    prefix = request.query.get("prefix", "")
    found = [stored for stored in blobs(lab, account, container) if stored.name.startswith(prefix)]
    entries = "".join(_blob_entry(stored) for stored in found[: _max_results(request)])
    return _list(request, account, f" ContainerName={quoteattr(container)}", f"<Blobs>{entries}</Blobs>")


def _blob_entry(stored: StoredBlob) -> str:
    content = stored.content()
    headers = _blob_headers(stored, content)
    return (
        f"<Blob><Name>{escape(stored.name)}</Name><Properties><Creation-Time>{headers['Last-Modified']}</Creation-Time>"
        f"<Last-Modified>{headers['Last-Modified']}</Last-Modified><Etag>{stored.etag.strip(chr(34))}</Etag>"
        f"<Content-Length>{len(content)}</Content-Length><Content-Type>{headers['Content-Type']}</Content-Type>"
        f"<Content-MD5>{headers['Content-MD5']}</Content-MD5><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier>"
        "<AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus><LeaseState>available"
        "</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties><OrMetadata /></Blob>"
    )


def _max_results(request: Request) -> int:
    text = request.query.get("maxresults", "5000")
    if not text.isdecimal() or int(text) < 1:
        raise BlobError(400, "OutOfRangeQueryParameterValue", "maxresults must be between 1 and 5000.")
    return int(text)


def _list(request: Request, account: StorageAccount, attributes: str, entries: str) -> Response:
    endpoint = quoteattr(f"https://{account.name}.blob.core.windows.net/")
    prefix = f"<Prefix>{escape(request.query['prefix'])}</Prefix>" if request.query.get("prefix") else ""
    inner = f"{prefix}{entries}<NextMarker />"
    text = f"<EnumerationResults ServiceEndpoint={endpoint}{attributes}>{inner}</EnumerationResults>"
    return Response(200, _document(text), _XML)


def _document(text: str) -> bytes:
    return f'<?xml version="1.0" encoding="utf-8"?>{text}'.encode()
