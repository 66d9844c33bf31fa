"""The emulator behind HTTPS: who is let in, what Azure's refusals look like, what is written down of each request."""

from __future__ import annotations

import base64
import hmac
import json
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from ghost import lab
from ghost.lab.arm.blob_store import account_keys
from ghost.lab.arm.resource_manager import action_of
from ghost.lab.arm.shared_key import signature
from tests.lab.emulated import ARM, SUBSCRIPTION, VERSION, Client, emulated

VM = "/resourceGroups/prod-rg/providers/Microsoft.Compute/virtualMachines/web-vm-01"
NIC = "/resourceGroups/prod-rg/providers/Microsoft.Network/networkInterfaces/web-vm-01-nic"
CAPTURES = (
    "/resourceGroups/NetworkWatcherRG/providers/Microsoft.Network/networkWatchers/NetworkWatcher_eastus/packetCaptures"
)
STORAGE = "/resourceGroups/prod-rg/providers/Microsoft.Storage/storageAccounts/prodforensics01"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with emulated(tmp_path_factory.mktemp("arm") / "lab", lab.load_scenario("blocked-port")) as up:
        yield up


def capture(**more: object) -> dict[str, object]:
    place = {
        "storageId": SUBSCRIPTION + STORAGE,
        "storagePath": "https://prodforensics01.blob.core.windows.net/captures/x.cap",
    }
    return {"properties": {"target": SUBSCRIPTION + VM, "storageLocation": place, "timeLimitInSeconds": 20, **more}}


# --- who is let in ---


def test_a_token_is_given_for_the_secret_alone(client: Client) -> None:
    target = f"/msi/token?resource=https://{ARM}"
    assert client.ask("GET", target, "login.lab.invalid").status == 401
    assert client.ask("GET", target, "login.lab.invalid", headers={"X-IDENTITY-HEADER": "guess"}).status == 401
    claims = client.token().split(".")[1]
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert decoded["tid"] == "8d2f7a90-1b3c-4e5d-8f60-a1b2c3d4e5f6"
    assert decoded["iss"].startswith("https://sts.windows.net/")
    assert decoded["exp"] > time.time() + 3600


def test_a_token_of_another_service_or_a_changed_one_opens_nothing(client: Client) -> None:
    target = f"{SUBSCRIPTION}{VM}?{VERSION}"
    good = client.token()
    head, claims, signed = good.split(".")
    other = base64.urlsafe_b64encode(b'{"aud":"https://management.lab.invalid","exp":9999999999}').decode().rstrip("=")
    changed = (f"{head}.{other}.{signed}", f"{head}.{claims}.", f"{head}.{claims}.\xff", "x", "")
    for token in (client.token("https://storage.azure.com"), *changed):
        answer = client.ask("GET", target, headers={"Authorization": f"Bearer {token}"})
        assert answer.status == 401
        assert answer.json["error"]["code"] == "InvalidAuthenticationToken"
    assert client.ask("GET", target, headers={"Authorization": f"Bearer {good}"}).status == 200


def test_storage_is_opened_by_its_own_token_or_a_signature_with_a_key(client: Client) -> None:
    host, target = "prodforensics01.blob.core.lab.invalid", "/captures?restype=container&comp=list&prefix=a%20b"
    keys = client.arm("POST", f"{STORAGE}/listKeys").json["keys"]
    headers = {"x-ms-date": "Sun, 22 Nov 2026 05:00:00 GMT", "x-ms-version": "2024-11-04"}
    for key in keys:
        signed = signature("prodforensics01", key["value"], "GET", target, headers)
        allowed = {**headers, "Authorization": f"SharedKey prodforensics01:{signed}"}
        assert client.ask("GET", target, host, headers=allowed).status == 200
        assert client.ask("GET", f"{target}c", host, headers=allowed).status == 403, "the signature covers the query"
    assert client.ask("GET", target, host).status == 401
    assert client.ask("GET", target, host, headers={"Authorization": f"Bearer {client.token()}"}).status == 403
    assert client.blob("GET", target).status == 200


def test_a_signature_is_azures_documented_one() -> None:
    """https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key: Get Container Metadata."""
    text = (
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
        "/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
    )
    key = base64.b64encode(b"a key").decode()
    expected = base64.b64encode(hmac.new(b"a key", text.encode(), sha256).digest()).decode()
    headers = {"x-ms-date": "Fri, 26 Jun 2015 23:39:12 GMT", "x-ms-version": "2015-02-21", "content-length": "0"}
    target = "/mycontainer?restype=container&comp=metadata&timeout=20"

    assert signature("myaccount", key, "GET", target, headers) == expected


def test_keys_differ_by_account_and_are_of_azures_length() -> None:
    world = lab.load_scenario("blocked-port").world
    (account,) = world.storage_accounts
    other = replace(account, name="other01")
    keys = {*account_keys(world, account), *account_keys(world, other)}
    assert len(keys) == 4
    assert {len(base64.b64decode(key)) for key in keys} == {64}


# --- the way in ---


@pytest.mark.parametrize(
    "target",
    [
        "management.azure.com:443",
        "prodforensics01.blob.core.windows.net:443",
        "nosuch.blob.core.lab.invalid:443",
        "lab.invalid.example.com:443",
        "evil-lab.invalid:443",
        "management.lab.invalid:22",
        "management.lab.invalid.:443",
        ".lab.invalid:443",
        "example.com/.lab.invalid:443",
        "example.com%00.lab.invalid:443",
        "user@management.lab.invalid:443",
        "127.0.0.1:443",
        "[::1]:443",
        "",
    ],
)
def test_the_proxy_refuses_what_is_no_name_of_the_lab(target: str, client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.up.proxy_port), timeout=10) as connection:
        connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 403 ")
    assert client.asked()[-1]["refused"] is True


def test_the_proxy_passes_on_no_plain_request(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.up.proxy_port), timeout=10) as connection:
        connection.sendall(b"GET http://management.lab.invalid/ HTTP/1.1\r\nHost: management.lab.invalid\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 403 ")


def test_a_client_that_does_not_know_the_labs_certificate_goes_no_further(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.up.arm_port), timeout=10) as connection:
        context = ssl.create_default_context()
        with pytest.raises(ssl.SSLCertVerificationError):
            context.wrap_socket(connection, server_hostname=ARM)
    assert client.arm("GET", VM).status == 200


def test_silence_and_rubbish_hold_up_nobody(client: Client) -> None:
    silent = [socket.create_connection(("127.0.0.1", client.up.arm_port), timeout=10) for _ in range(5)]
    with socket.create_connection(("127.0.0.1", client.up.arm_port), timeout=10) as rubbish:
        rubbish.sendall(b"\x00" * 200)
        started = time.monotonic()
        assert client.arm("GET", VM).status == 200
        assert time.monotonic() - started < 5
    for connection in silent:
        connection.close()


# --- refusals in Azure's shapes ---


def test_a_request_without_a_version_is_refused(client: Client) -> None:
    answer = client.ask("GET", SUBSCRIPTION + VM, headers={"Authorization": f"Bearer {client.token()}"})
    assert (answer.status, answer.json["error"]["code"]) == (400, "MissingApiVersionParameter")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", VM + "x", None, 404, "ResourceNotFound"),
        ("GET", VM.replace("prod-rg", "nope"), None, 404, "ResourceGroupNotFound"),
        ("GET", "/resourceGroups/nope", None, 404, "ResourceGroupNotFound"),
        ("GET", "/bogus", None, 404, "InvalidResourceType"),
        ("POST", NIC.replace("web", "jobs") + "x/effectiveRouteTable", {}, 404, "ResourceNotFound"),
        ("PUT", VM, {}, 405, "MethodNotAllowed"),
        ("DELETE", VM, None, 405, "MethodNotAllowed"),
        ("PUT", f"{CAPTURES}/x", {}, 400, "InvalidRequestContent"),
        ("PUT", f"{CAPTURES}/x", [], 400, "InvalidRequestContent"),
        ("PUT", f"{CAPTURES}/x", capture(target="/nope"), 400, "InvalidResourceReference"),
        ("PUT", f"{CAPTURES}/x", capture(storageLocation={}), 400, "InvalidRequestFormat"),
        ("PUT", f"{CAPTURES}/x", capture(timeLimitInSeconds="20"), 400, "InvalidRequestFormat"),
        ("PUT", f"{CAPTURES}/x", capture(timeLimitInSeconds=0), 400, "InvalidRequestFormat"),
        ("PUT", f"{CAPTURES}/x", capture(storageLocation="x"), 400, "InvalidRequestContent"),
        ("PUT", f"{CAPTURES}/x", capture(filters="x"), 400, "InvalidRequestContent"),
        ("PUT", f"{CAPTURES}/x", capture(filters=["x"]), 400, "InvalidRequestFormat"),
        ("PUT", f"{CAPTURES}/x", capture(filters=[{"localPort": "²"}]), 400, "InvalidRequestFormat"),
        ("PUT", f"{CAPTURES}/x", capture(targetType="AzureVMSS", scope="x"), 400, "InvalidRequestContent"),
        ("PUT", f"{CAPTURES}/x", capture(targetType=1), 400, "InvalidRequestContent"),
        ("POST", f"{CAPTURES}/nope/queryStatus", {}, 404, "ResourceNotFound"),
        ("POST", f"{VM}/runCommand", {"commandId": "RunPowerShellScript"}, 400, "InvalidParameter"),
        (
            "GET",
            "/providers/Microsoft.Network/locations/eastus/operationResults/forged",
            None,
            404,
            "OperationNotFound",
        ),
    ],
)
def test_a_refusal_has_azures_status_and_code(
    method: str, path: str, body: object, status: int, code: str, client: Client
) -> None:
    answer = client.arm(method, path, body)

    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    assert answer.json["error"]["message"]
    assert client.asked()[-1]["changed"] is False


def test_what_the_role_does_not_allow_is_forbidden_before_it_is_looked_for(tmp_path: Path) -> None:
    scenario = lab.load_scenario("blocked-port")
    actions = ("Microsoft.Network/networkInterfaces/effectiveRouteTable/action", "Microsoft.Storage/*")
    world = replace(scenario.world, forbidden_actions=actions)
    with emulated(tmp_path / "lab", replace(scenario, world=world)) as client:
        routes = client.arm("POST", f"{NIC}/effectiveRouteTable", {})
        accounts = client.arm("GET", "/providers/Microsoft.Storage/storageAccounts")
        groups = client.arm("POST", f"{NIC}/effectiveNetworkSecurityGroups", {})

    assert (routes.status, routes.json["error"]["code"]) == (403, "AuthorizationFailed")
    assert "action 'Microsoft.Network/networkInterfaces/effectiveRouteTable/action'" in routes.json["error"]["message"]
    assert accounts.status == 403
    assert groups.status == 202


@pytest.mark.parametrize(
    ("method", "path", "action"),
    [
        ("GET", f"{SUBSCRIPTION}{VM}", "Microsoft.Compute/virtualMachines/read"),
        ("GET", f"{SUBSCRIPTION}/resourceGroups/x", "Microsoft.Resources/subscriptions/resourceGroups/read"),
        ("PUT", f"{SUBSCRIPTION}{CAPTURES}/x", "Microsoft.Network/networkWatchers/packetCaptures/write"),
        ("DELETE", f"{SUBSCRIPTION}{CAPTURES}/x", "Microsoft.Network/networkWatchers/packetCaptures/delete"),
        (
            "POST",
            f"{SUBSCRIPTION}{CAPTURES}/x/queryStatus",
            "Microsoft.Network/networkWatchers/packetCaptures/queryStatus/action",
        ),
    ],
)
def test_a_request_needs_the_action_that_azure_names(method: str, path: str, action: str) -> None:
    assert action_of(method, tuple(path.strip("/").split("/"))) == action


# --- long-running operations, captures, blobs ---


def test_effective_routes_are_accepted_and_fetched_where_the_answer_says(client: Client) -> None:
    accepted = client.arm("POST", f"{NIC}/effectiveRouteTable", {})
    assert (accepted.status, accepted.body) == (202, b"null")
    place = accepted.headers["location"]
    assert place.startswith(
        f"https://{ARM}{SUBSCRIPTION}/providers/Microsoft.Network/locations/eastus/operationResults"
    )
    assert int(accepted.headers["retry-after-ms"]) > 0
    fetched = client.ask(
        "GET", place.removeprefix(f"https://{ARM}"), headers={"Authorization": f"Bearer {client.token()}"}
    )
    assert fetched.status == 200
    assert {route["nextHopType"] for route in fetched.json["value"]} >= {"VnetLocal", "Internet", "VirtualAppliance"}


def test_a_capture_leaves_a_blob_that_is_listed_read_in_parts_and_deleted(client: Client) -> None:
    created = client.arm("PUT", f"{CAPTURES}/life", capture())
    assert created.status == 201
    assert "operations/" in created.headers["azure-asyncoperation"]
    assert client.arm("PUT", f"{CAPTURES}/life", capture()).json["error"]["code"] == "PacketCaptureAlreadyExists"
    deadline = time.monotonic() + 10
    while client.blob("HEAD", "/captures/x.cap").status == 404 and time.monotonic() < deadline:
        time.sleep(0.05)

    whole = client.blob("GET", "/captures/x.cap")
    assert whole.status == 200
    assert whole.body[:4] == b"\xd4\xc3\xb2\xa1"
    headers = {"Authorization": f"Bearer {client.token('https://storage.azure.com')}", "x-ms-range": "bytes=24-39"}
    part = client.ask("GET", "/captures/x.cap", "prodforensics01.blob.core.lab.invalid", headers=headers)
    assert (part.status, part.body) == (206, whole.body[24:40])
    assert part.headers["content-range"] == f"bytes 24-39/{len(whole.body)}"
    assert b"<Name>x.cap</Name>" in client.blob("GET", "/captures?restype=container&comp=list").body
    assert client.blob("DELETE", "/captures/x.cap").status == 202
    gone = client.blob("GET", "/captures/x.cap")
    assert (gone.status, gone.headers["x-ms-error-code"]) == (404, "BlobNotFound")
    assert client.arm("DELETE", f"{CAPTURES}/life").status == 202
    assert client.arm("DELETE", f"{CAPTURES}/life").status == 204


def test_every_request_is_written_down_with_what_it_changed_and_no_secret(client: Client) -> None:
    before = len(client.asked())
    client.arm("PUT", f"{CAPTURES}/noted", capture())
    client.arm("POST", f"{STORAGE}/listKeys")
    client.arm("DELETE", f"{CAPTURES}/noted")
    added = [entry for entry in client.asked()[before:] if entry["host"] == ARM]

    assert [(entry["method"], entry["status"], entry["changed"]) for entry in added] == [
        ("PUT", 201, True),
        ("POST", 200, False),
        ("DELETE", 202, True),
    ]
    text = client.up.log.read_text()
    assert client.up.environment["IDENTITY_HEADER"] not in text
    assert "Bearer" not in text
    assert client.up.log.stat().st_mode & 0o777 == 0o600


def test_a_defect_is_an_answer_and_not_silence(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("ghost.lab.arm.resource_manager.answer", broken)
    answer = client.arm("GET", VM)
    assert (answer.status, answer.json["error"]["code"]) == (500, "InternalServerError")


def test_an_upload_is_not_simulated_and_says_so(client: Client) -> None:
    answer = client.blob("PUT", "/captures/mine.txt")
    assert answer.status == 405
    assert b"not simulated" in answer.body


def test_what_a_client_sends_becomes_no_header_of_the_answer(client: Client) -> None:
    target = f"{SUBSCRIPTION}{NIC}/effectiveRouteTable?api-version=1%0d%0aX-Other:%20yes"
    answer = client.ask("POST", target, headers={"Authorization": f"Bearer {client.token()}"})
    assert (answer.status, answer.json["error"]["code"]) == (400, "InvalidApiVersionParameter")
    assert answer.headers.get("x-other") is None


def test_a_body_nested_without_end_is_a_refusal(client: Client) -> None:
    body = b'{"properties":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    headers = {"Authorization": f"Bearer {client.token()}"}
    answer = client.ask("PUT", f"{SUBSCRIPTION}{CAPTURES}/deep?{VERSION}", headers=headers, body=body)
    assert (answer.status, answer.json["error"]["code"]) == (400, "InvalidRequestContent")


@pytest.mark.parametrize("name", ["x%0d%0ay", "-x", "a" * 81, "x."])
def test_a_capture_has_a_name_that_azure_takes(name: str, client: Client) -> None:
    answer = client.arm("PUT", f"{CAPTURES}/{name}", capture())
    assert (answer.status, answer.json["error"]["code"]) == (400, "InvalidResourceName")


def test_a_program_that_a_guest_knows_with_other_arguments_is_not_called_missing(client: Client) -> None:
    asked = {"commandId": "RunShellScript", "script": ["iptables -F", "nosuch -x"]}
    accepted = client.arm("POST", f"{VM}/runCommand", asked)
    headers = {"Authorization": f"Bearer {client.token()}"}
    result = client.ask("GET", accepted.headers["location"].removeprefix(f"https://{ARM}"), headers=headers)
    (status,) = result.json["value"]
    assert "iptables -F: not simulated in this lab; there is -L" in status["message"]
    assert "line 2: nosuch: not simulated in this lab" in status["message"]


def test_services_are_found_where_az_cloud_register_looks(client: Client) -> None:
    (cloud,) = client.ask("GET", "/metadata/endpoints?api-version=2022-09-01").json
    assert cloud["resourceManager"] == f"https://{ARM}"
    assert cloud["suffixes"]["storage"] == "core.lab.invalid"


def test_a_request_longer_than_a_lab_takes_is_refused(client: Client) -> None:
    headers = {"Authorization": f"Bearer {client.token()}", "Content-Length": str(1 << 30)}
    assert client.ask("PUT", f"{SUBSCRIPTION}{CAPTURES}/x?{VERSION}", headers=headers).status == 413
