"""What Azure may answer to the preflight reads, and what each answer means for the capture."""

from __future__ import annotations

from typing import Any

from ghost.cloud.preflight import Check

from .scripted import (
    ACCOUNT,
    AGENT,
    CAPTURE,
    MACHINE,
    ROUTES,
    SUBNET,
    broken,
    failed,
    group,
    outbound,
    ran,
    refused,
    route,
)

NO_WATCHER = "ERROR: network watcher is not enabled for region eastus."
DENY_ALL = outbound("lock-down", 100, "Deny", "0.0.0.0/0")


def machine(**fields: object) -> tuple[str, dict[str, Any]]:
    return "get-instance-view", ran({**MACHINE, **fields})


def account(**fields: object) -> tuple[str, dict[str, Any]]:
    return "storage account show", ran({**ACCOUNT, **fields})


def admitted(subnet: str, nic: dict[str, Any] | None = None) -> tuple[str, Any]:
    """An account whose firewall admits one subnet, and `nic show` of a machine in SUBNET."""
    shown = ran({**ACCOUNT, "defaultAction": "Deny", "subnets": [subnet.upper()]})
    return "storage account show|nic show ", lambda command: shown if "account" in command else nic or ran([SUBNET])


def routes(*rows: str) -> tuple[str, dict[str, Any]]:
    return "show-effective-route-table", ran(list(rows))


def gates(*groups: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "list-effective-nsg", ran(list(groups))


# (what, what Azure answers, the check that fails, what is wrong, the remedy)
FAILURES: list[tuple[str, tuple[str, Any], Check, str, str]] = [
    *[
        (
            f"the machine is {power}",
            machine(power=["ProvisioningState/succeeded", f"PowerState/{power}"]),
            Check.MACHINE,
            f"web-vm-01 is {power}",
            "az vm start -g prod-rg -n web-vm-01",
        )
        for power in ("stopped", "deallocated", "starting")
    ],
    (
        "the agent is not installed (Linux)",
        machine(extensions=[]),
        Check.MACHINE,
        "agent extension is not installed on web-vm-01",
        "az vm extension set -g prod-rg --vm-name web-vm-01 --name NetworkWatcherAgentLinux --publisher "
        "Microsoft.Azure.NetworkWatcher",
    ),
    (
        "no extension at all, on a machine whose agent reports (Windows)",
        machine(extensions=None, os="Windows"),
        Check.MACHINE,
        "agent extension is not installed",
        "--name NetworkWatcherAgentWindows",
    ),
    (
        "another extension only",
        machine(extensions=[{"name": "AADSSHLogin", "type": "Microsoft.Azure.ActiveDirectory.AADSSHLogin"}]),
        Check.MACHINE,
        "agent extension is not installed",
        "az vm extension set",
    ),
    (
        "the agent failed to install",
        machine(extensions=[{**AGENT, "statuses": ["ProvisioningState/failed/1"]}]),
        Check.MACHINE,
        "failed to install",
        "az vm extension set",
    ),
    *[
        (
            f"no watcher in the region: {words[:30]}",
            ("packet-capture list", failed(words)),
            Check.CAPTURES,
            "NetworkWatcherNotEnabled: no network watcher is enabled in region eastus",
            "az network watcher configure -g NetworkWatcherRG -l eastus --enabled true",
        )
        for words in (NO_WATCHER, "ERROR: (NetworkWatcherNotEnabled) x", "ERROR: (NetworkWatcherNotFound) x")
    ],
    (
        "the name is taken, in another case",
        ("packet-capture list", ran([{"name": CAPTURE.upper(), "provisioningState": "Succeeded"}])),
        Check.CAPTURES,
        f"a packet capture named {CAPTURE} exists in eastus already",
        "Ask again",
    ),
    *[
        (
            f"the account is closed: {fields}",
            account(**fields),
            check,
            "the VM cannot store the capture there",
            remedy,
        )
        for fields, check, remedy in (
            ({"publicNetworkAccess": "Disabled"}, Check.ACCOUNT, "Enable its public network access"),
            ({"defaultAction": "Deny", "subnets": []}, Check.SUBNET, "az storage account network-rule add"),
            ({"defaultAction": "Deny", "subnets": None, "publicNetworkAccess": None}, Check.SUBNET, "network-rule add"),
            (
                {"publicNetworkAccess": "Disabled", "subnets": [SUBNET]},
                Check.ACCOUNT,
                "Enable its public network access",
            ),
        )
    ],
    (
        "the account's firewall admits another subnet",
        admitted(f"{SUBNET}-2"),
        Check.SUBNET,
        "does not admit web-vm-01's subnet",
        f"az storage account network-rule add --account-name forensics --subnet {SUBNET}",
    ),
    (
        "the roles do not tell, and blobs are not read",
        (
            "role assignment list|blob list .* --num-results",
            failed("ERROR: You do not have the required permissions needed to perform this operation."),
        ),
        Check.BLOBS,
        "your login has no data role",
        "az role assignment create --assignee ana@contoso.com --role 'Storage Blob Data Contributor'",
    ),
    (
        "there is no such account",
        ("storage account show", failed("ERROR: The storage account 'forensics' not found.", 3)),
        Check.ACCOUNT,
        "the subscription has no storage account forensics",
        "the accounts of eastus are tried",
    ),
    *[
        (
            f"no data role: {roles}",
            ("role assignment list", ran(roles)),
            Check.ROLE,
            "your login has no data role on storage account forensics",
            "az role assignment create --assignee ana@contoso.com --role 'Storage Blob Data Contributor' --scope /sub",
        )
        for roles in ([], ["Reader"], ["Owner", "Reader"], ["Contributor", "Storage Account Contributor"])
    ],
    (
        "the account's name does not resolve",
        ("container exists", failed("ERROR: Failed to resolve 'forensics.blob.core.windows.net' ([Errno -2])")),
        Check.STORAGE,
        "There is no account of that name",
        "correct the name",
    ),
    (
        "the account's firewall keeps this machine out",
        (
            "container exists",
            failed("ERROR: The request may be blocked by network rules of storage account. Please check network rule"),
        ),
        Check.STORAGE,
        "its firewall does not admit this machine",
        "az storage account network-rule add --account-name forensics --ip-address YOUR-PUBLIC-ADDRESS",
    ),
    (
        "no role on the blobs",
        (
            "container exists",
            failed("ERROR: You do not have the required permissions needed to perform this operation."),
        ),
        Check.STORAGE,
        "Storage forensics/captures is not accessible",
        "Storage Blob Data Contributor",
    ),
    *[
        (f"the container could not be asked for: {n}", ("container exists", answer), Check.STORAGE, "Storage", "")
        for n, answer in enumerate([failed("ERROR: x"), broken("timeout"), ran(""), ran("[]"), ran({"exists": "yes"})])
    ],
    *[
        (
            f"the route drops what goes out: {source}",
            routes(ROUTES[0], route("0.0.0.0/0", "None", source, name)),
            Check.ROUTES,
            "web-vm-01 cannot reach storage account forensics on TCP 443: the route 0.0.0.0/0 -> None",
            "service endpoint",
        )
        for source, name in (("User", "blackhole"), ("VirtualNetworkGateway", None))
    ],
    (
        "a group denies everything out",
        gates(group(DENY_ALL)),
        Check.GATES,
        "cannot reach storage account forensics on TCP 443: rule lock-down (priority 100, Deny) of the group prod-nsg "
        "at the subnet",
        "Allow TCP 443 out to the service tag Storage",
    ),
    (
        "the interface's group denies what the subnet's allows",
        gates(group(), group(DENY_ALL, at="nic", name="nic-nsg")),
        Check.GATES,
        "lock-down (priority 100, Deny) of the group nic-nsg at the nic",
        "service tag Storage",
    ),
    *[
        (
            f"a group denies {tag}",
            gates(group(outbound("no-storage", 200, "Deny", tag, port))),
            Check.GATES,
            "no-storage",
            "smaller priority number",
        )
        for tag, port in (
            ("Internet", "443-443"),
            ("Storage", "0-65535"),
            ("Storage.eastus", "443-443"),
            ("AzureCloud.eastus", "400-500"),
            ("AzureCloud", "0-65535"),
        )
    ],
]

# (what, what Azure answers, the check that could not be made, why)
UNKNOWNS: list[tuple[str, tuple[str, Any], Check, str]] = [
    *[
        (f"{check} {n}", (pattern, answer), check, says)
        for check, pattern in (
            (Check.MACHINE, "get-instance-view"),
            (Check.CAPTURES, "packet-capture list"),
            (Check.IDENTITY, "az account show"),
            (Check.ACCOUNT, "storage account show"),
            (Check.ROLE, "role assignment list"),
            (Check.ROUTES, "show-effective-route-table"),
            (Check.GATES, "list-effective-nsg"),
        )
        for n, (answer, says) in enumerate(
            [
                (failed("ERROR: (AuthorizationFailed) no rights"), "AuthorizationFailed"),
                (broken("timeout"), "timeout"),
                (refused("no"), "not approved: no"),
                (ran(""), ""),
                (ran("gibberish"), ""),
                (ran("7"), ""),
                (
                    {
                        **ran("[]" if check is not Check.MACHINE else "{}"),
                        "output_metadata": {"truncation_applied": True},
                    },
                    "",
                ),
            ]
        )
        if not (check in (Check.MACHINE, Check.ACCOUNT) and n == 6)
    ],
    ("no power state", machine(power=["ProvisioningState/succeeded"]), Check.MACHINE, "power state is not known"),
    (
        "the machine's agent is silent",
        machine(extensions=None, agent=["Not Ready"]),
        Check.MACHINE,
        "the VM's agent does not report",
    ),
    ("a managed identity", ("az account show", ran({"name": "systemAssignedIdentity"})), Check.IDENTITY, "no user"),
    ("a reader of blobs", ("role assignment list", ran(["Storage Blob Data Reader"])), Check.ROLE, "cannot delete"),
    ("a custom role", ("role assignment list", ran(["Reader", "Capture Operators"])), Check.ROLE, "Capture Operators"),
    (
        "blobs that could not be listed",
        ("role assignment list|blob list .* --num-results", failed("ERROR: (InternalServerError) x")),
        Check.BLOBS,
        "InternalServerError",
    ),
    (
        "the subnet of a machine",
        admitted(SUBNET, nic=failed("ERROR: (AuthorizationFailed) x")),
        Check.SUBNET,
        "Authoriz",
    ),
    ("private", account(publicNetworkAccess="Disabled", privateEndpoints=["x"]), Check.ACCOUNT, "private endpoint"),
    *[
        (f"default route to {hop}", routes(ROUTES[0], route("0.0.0.0/0", hop, "User", "out")), Check.ROUTES, hop)
        for hop in ("VirtualAppliance", "VirtualNetworkGateway", "SomethingNew")
    ],
    (
        "some public addresses are dropped",
        routes(*ROUTES, route("20.0.0.0/8", "None", "User", "drop-20")),
        Check.ROUTES,
        "drop-20",
    ),
    ("only some routes", routes(ROUTES[0], route("20.0.0.0/8", "Internet", "User")), Check.ROUTES, "no default route"),
    ("no route at all", routes(), Check.ROUTES, "no active route"),
    (
        "certain public addresses denied",
        gates(group(outbound("no-20", 100, "Deny", "20.0.0.0/8"))),
        Check.GATES,
        "it depends on rule no-20 (priority 100, Deny)",
    ),
    ("another region's storage", gates(group(outbound("w", 100, "Deny", "Storage.westus"))), Check.GATES, "rule w"),
    (
        "certain sources",
        gates(group(outbound("s", 100, "Deny", "0.0.0.0/0", source="10.0.0.9/32"))),
        Check.GATES,
        "rule s",
    ),
    ("an application group", gates(group(outbound("a", 100, "Deny", "/subscriptions/x"))), Check.GATES, "rule a"),
]

PASSES: list[tuple[str, tuple[str, Any], Check]] = [
    ("the agent by its type", machine(extensions=[{"name": "nw", "type": AGENT["type"]}]), Check.MACHINE),
    ("the agent by its name", machine(extensions=[{"name": AGENT["name"], "type": None}]), Check.MACHINE),
    ("the Windows agent", machine(extensions=[{"name": "x", "type": "NetworkWatcherAgentWindows"}]), Check.MACHINE),
    ("the agent among the resources", machine(extensions=None, resources=[{"name": "x", **AGENT}]), Check.MACHINE),
    ("captures of others", ("packet-capture list", ran([{"name": "other"}])), Check.CAPTURES),
    ("all networks", account(defaultAction=None, publicNetworkAccess=None), Check.ACCOUNT),
    (
        "a service endpoint beside",
        routes(*ROUTES, route("20.60.0.0/16", "VirtualNetworkServiceEndpoint")),
        Check.ROUTES,
    ),
    (
        "a user route out over a dropping one",
        routes(route("0.0.0.0/0", "None"), route("0.0.0.0/0", "Internet", "User")),
        Check.ROUTES,
    ),
    ("hidden prefixes", routes(*ROUTES, route("[INTERNAL_SUBNET_3]", "None", "User")), Check.ROUTES),
    ("no group", gates(), Check.GATES),
    (
        "storage allowed above a denial",
        gates(group(outbound("s", 100, "Allow", "Storage", "443-443"), outbound("d", 200, "Deny", "Internet"))),
        Check.GATES,
    ),
    ("another port denied", gates(group(outbound("d", 100, "Deny", "Internet", "80-80"))), Check.GATES),
    ("private addresses denied", gates(group(outbound("d", 100, "Deny", "10.0.0.0/8"))), Check.GATES),
    ("hidden addresses denied", gates(group(outbound("d", 100, "Deny", "[INTERNAL_SUBNET_3]"))), Check.GATES),
]
