"""Commands that read accounts, groups, and resources of any type."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ghost.lab.az_cli.cli_errors import AzError
from ghost.lab.az_cli.client import ArmClient
from ghost.lab.az_cli.command_table import IN_GROUP, command, split_id
from ghost.lab.az_cli.output_shape import filled, with_groups
from ghost.lab.directory import LabDirectory

VERSION = "2.91.0"


@command(
    "role assignment list",
    *("--assignee", "--all ?", "--scope", "--resource-group -g", "--include-inherited ?", "--include-groups ?"),
)
def role_assignment_list(lab: LabDirectory, _options: Namespace) -> Any:
    """Return the roles of a lab's user, whoever is asked for."""
    own = lab.world.subscription
    row = {"principalName": own.user, "principalType": "User", "scope": f"/subscriptions/{own.id}"}
    return [{**row, "roleDefinitionName": name} for name in lab.tenant.roles]


@command("version")
def version(_lab: LabDirectory, _options: Namespace) -> Any:
    return {"azure-cli": VERSION, "azure-cli-core": VERSION, "azure-cli-telemetry": "1.1.0", "extensions": {}}


@command("account show")
def account_show(lab: LabDirectory, _options: Namespace) -> Any:
    """Return the CLI's account: a logged-in user, while the emulator's profile has an identity."""
    own = lab.world.subscription
    return {
        "environmentName": "AzureCloud",
        "homeTenantId": own.tenant,
        "id": own.id,
        "isDefault": True,
        "managedByTenants": [],
        "name": own.name,
        "state": "Enabled",
        "tenantId": own.tenant,
        "user": {"name": own.user, "type": "user"},
    }


@command("account list", "--all ?", "--refresh ?")
def account_list(lab: LabDirectory, options: Namespace) -> Any:
    account = account_show(lab, options)
    return [{"cloudName": account.pop("environmentName"), **account}]


@command("group list", "--tag")
def group_list(lab: LabDirectory, options: Namespace) -> Any:
    query = {} if options.tag is None else {"$filter": f"tagName eq '{options.tag.partition('=')[0]}'"}
    client = ArmClient(lab)
    return [filled("resource_group", group) for group in client.list(f"{client.scope()}/resourcegroups", **query)]


@command("group show", "--name --resource-group -n -g !")
def group_show(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return filled("resource_group", client.get(client.scope(options.name)))


@command("group exists", "--name --resource-group -n -g !")
def group_exists(lab: LabDirectory, options: Namespace) -> Any:
    return any(group.name.casefold() == options.name.casefold() for group in lab.world.groups)


@command("resource list", IN_GROUP, "--name -n", "--resource-type", "--location -l", "--tag", "--namespace")
def resource_list(lab: LabDirectory, options: Namespace) -> Any:
    if options.tag and (options.name or options.resource_type or options.location or options.namespace):
        raise AzError("you cannot use '--tag' with '--resource-group''--namespace''--resource-type''--name'")
    client = ArmClient(lab)
    if options.resource_group is not None:
        client.get(client.scope(options.resource_group))
    key, _, value = (options.tag or "").partition("=")
    filters = {
        "name": options.name,
        "resourceGroup": options.resource_group,
        "location": options.location,
        "resourceType": _type(options),
        "tagName": key or None,
        "tagValue": value or None,
    }
    clauses = (f"{field} eq '{text.replace(chr(39), chr(39) * 2)}'" for field, text in filters.items() if text)
    query = {"$filter": " and ".join(clauses), "$expand": "createdTime,changedTime,provisioningState"}
    found = client.list(f"{client.scope()}/resources", **query)
    return with_groups([filled("listed_resource", body) for body in found])


def _type(options: Namespace) -> str | None:
    kind: str | None = options.resource_type
    if kind is None or "/" in kind or options.namespace is None:
        return kind
    return f"{options.namespace}/{kind}"


@command(
    "resource show",
    IN_GROUP,
    "--name -n",
    "--resource-type",
    "--namespace",
    "--parent",
    "--api-version",
    "--include-response-body ?",
    "--ids *",
)
def resource_show(lab: LabDirectory, options: Namespace) -> Any:
    """Return a resource; handles `--ids` itself, since the type may be any."""
    if options.ids:
        account = [_resource(lab, *_parsed(resource_id)) for resource_id in options.ids]
        return account[0] if len(account) == 1 else account
    if options.resource_group is None:
        raise AzError("--resource-group/-g is required.")
    if not (options.name and options.resource_type):
        raise AzError("--name/-n, --resource-type are required.")
    return _resource(lab, options.resource_group, str(_type(options)), [options.name])


def _parsed(resource_id: str) -> tuple[str, str, list[str]]:
    try:
        return split_id(resource_id)
    except AzError as error:
        raise AzError(f"az resource: error: argument --ids: invalid ResourceId value: '{resource_id}'") from error


def _resource(lab: LabDirectory, group: str, kind: str, names: list[str]) -> Any:
    client = ArmClient(lab)
    return with_groups(filled("resource", client.get(client.path(group, kind, *names))))
