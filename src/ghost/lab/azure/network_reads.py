"""The commands that read networks, groups, routes, interfaces, and the network watcher's diagnostics."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ghost.lab import effective
from ghost.lab.azure import effective_views, network_shapes, shapes
from ghost.lab.azure.commands import GROUP, IN_GROUP, NAME, command
from ghost.lab.azure.errors import part_not_found, refused, usage
from ghost.lab.azure.lookup import in_group, named, part, watched_machine
from ghost.lab.directory import LabDirectory
from ghost.lab.world import NetworkInterface, RouteTable, SecurityGroup, VirtualNetwork
from ghost.net import Flow, default_rules, evaluate_gates, select_route

# --- virtual networks ---

OF_VNET = "--vnet-name !"


@command("network vnet list", IN_GROUP)
def vnet_list(lab: LabDirectory, options: Namespace) -> Any:
    networks = in_group(lab.world, lab.world.networks, options.resource_group)
    return [network_shapes.virtual_network(lab.world, network) for network in networks]


@command("network vnet show", GROUP, NAME, "--expand", ids=("name",))
def vnet_show(lab: LabDirectory, options: Namespace) -> Any:
    return network_shapes.virtual_network(lab.world, _network(lab, options, options.name))


@command("network vnet subnet list", GROUP, OF_VNET)
def subnet_list(lab: LabDirectory, options: Namespace) -> Any:
    network = _network(lab, options, options.vnet_name)
    return [network_shapes.subnet(lab.world, network, item) for item in network.subnets]


@command("network vnet subnet show", GROUP, OF_VNET, NAME, "--expand", ids=("vnet_name", "name"))
def subnet_show(lab: LabDirectory, options: Namespace) -> Any:
    network = _network(lab, options, options.vnet_name)
    return network_shapes.subnet(lab.world, network, part(lab.world, network, "subnets", network.subnets, options.name))


@command("network vnet peering list", GROUP, OF_VNET)
def peering_list(lab: LabDirectory, options: Namespace) -> Any:
    network = _network(lab, options, options.vnet_name)
    return [network_shapes.peering(lab.world, network, item) for item in network.peerings]


@command("network vnet peering show", GROUP, OF_VNET, NAME, ids=("vnet_name", "name"))
def peering_show(lab: LabDirectory, options: Namespace) -> Any:
    network = _network(lab, options, options.vnet_name)
    item = part(lab.world, network, "virtualNetworkPeerings", network.peerings, options.name)
    return network_shapes.peering(lab.world, network, item)


def _network(lab: LabDirectory, options: Namespace, name: str) -> VirtualNetwork:
    return named(lab.world, lab.world.networks, VirtualNetwork, options, name)


# --- security groups ---


@command("network nsg list", IN_GROUP)
def nsg_list(lab: LabDirectory, options: Namespace) -> Any:
    groups = in_group(lab.world, lab.world.security_groups, options.resource_group)
    return [network_shapes.security_group(lab.world, group) for group in groups]


@command("network nsg show", GROUP, NAME, "--expand", ids=("name",))
def nsg_show(lab: LabDirectory, options: Namespace) -> Any:
    return network_shapes.security_group(lab.world, _security_group(lab, options, options.name))


@command("network nsg rule list", GROUP, "--nsg-name !", "--include-default ?")
def nsg_rule_list(lab: LabDirectory, options: Namespace) -> Any:
    group = _security_group(lab, options, options.nsg_name)
    rules = (*group.rules, *(default_rules() if options.include_default else ()))
    return [network_shapes.security_rule(lab.world, group, rule) for rule in rules]


@command("network nsg rule show", GROUP, "--nsg-name !", NAME, ids=("nsg_name", "name"))
def nsg_rule_show(lab: LabDirectory, options: Namespace) -> Any:
    group = _security_group(lab, options, options.nsg_name)
    rule = part(lab.world, group, "securityRules", group.rules, options.name)
    return network_shapes.security_rule(lab.world, group, rule)


def _security_group(lab: LabDirectory, options: Namespace, name: str) -> SecurityGroup:
    return named(lab.world, lab.world.security_groups, SecurityGroup, options, name)


# --- route tables ---


@command("network route-table list", IN_GROUP)
def route_table_list(lab: LabDirectory, options: Namespace) -> Any:
    tables = in_group(lab.world, lab.world.route_tables, options.resource_group)
    return [network_shapes.route_table(lab.world, table) for table in tables]


@command("network route-table show", GROUP, NAME, "--expand", ids=("name",))
def route_table_show(lab: LabDirectory, options: Namespace) -> Any:
    return network_shapes.route_table(lab.world, _route_table(lab, options, options.name))


@command("network route-table route list", GROUP, "--route-table-name !")
def route_list(lab: LabDirectory, options: Namespace) -> Any:
    table = _route_table(lab, options, options.route_table_name)
    return [network_shapes.route(lab.world, table, item) for item in table.routes]


@command("network route-table route show", GROUP, "--route-table-name !", NAME, ids=("route_table_name", "name"))
def route_show(lab: LabDirectory, options: Namespace) -> Any:
    table = _route_table(lab, options, options.route_table_name)
    return network_shapes.route(lab.world, table, part(lab.world, table, "routes", table.routes, options.name))


def _route_table(lab: LabDirectory, options: Namespace, name: str) -> RouteTable:
    return named(lab.world, lab.world.route_tables, RouteTable, options, name)


# --- network interfaces ---


@command("network nic list", IN_GROUP)
def nic_list(lab: LabDirectory, options: Namespace) -> Any:
    return [
        network_shapes.interface(lab.world, nic)
        for nic in in_group(lab.world, lab.world.interfaces, options.resource_group)
    ]


@command("network nic show", GROUP, NAME, "--expand", ids=("name",))
def nic_show(lab: LabDirectory, options: Namespace) -> Any:
    return network_shapes.interface(lab.world, _interface(lab, options, options.name))


@command("network nic ip-config list", GROUP, "--nic-name !")
def ip_config_list(lab: LabDirectory, options: Namespace) -> Any:
    return [network_shapes.ip_configuration(lab.world, _interface(lab, options, options.nic_name))]


@command("network nic ip-config show", GROUP, "--nic-name !", NAME, ids=("nic_name", "name"))
def ip_config_show(lab: LabDirectory, options: Namespace) -> Any:
    nic = _interface(lab, options, options.nic_name)
    if options.name.casefold() != "ipconfig1":
        raise part_not_found(shapes.part_id(lab.world, nic, "ipConfigurations", options.name))
    return network_shapes.ip_configuration(lab.world, nic)


@command("network nic show-effective-route-table", GROUP, NAME, "--no-wait ?", ids=("name",))
def show_effective_route_table(lab: LabDirectory, options: Namespace) -> Any:
    return effective_views.effective_routes(lab.world, _running_interface(lab, options))


@command("network nic list-effective-nsg", GROUP, NAME, "--no-wait ?", ids=("name",))
def list_effective_nsg(lab: LabDirectory, options: Namespace) -> Any:
    return effective_views.effective_groups(lab.world, _running_interface(lab, options))


def _interface(lab: LabDirectory, options: Namespace, name: str) -> NetworkInterface:
    return named(lab.world, lab.world.interfaces, NetworkInterface, options, name)


def _running_interface(lab: LabDirectory, options: Namespace) -> NetworkInterface:
    nic = _interface(lab, options, options.name)
    if not any(vm.interface == nic.name and vm.power == "running" for vm in lab.world.machines):
        raise refused(
            "NicMustBeAttachedToRunningVm",
            f"Network interface {shapes.id_of(lab.world, nic)} must be attached to a running virtual machine to get "
            "its effective routes or effective network security groups.",
        )
    return nic


# --- the network watcher's diagnostics ---


@command("network watcher list")
def watcher_list(lab: LabDirectory, _options: Namespace) -> Any:
    return [network_shapes.watcher(lab.world, item) for item in lab.world.watchers]


@command("network watcher show-next-hop", IN_GROUP, "--vm !", "--source-ip !", "--dest-ip !", "--nic")
def show_next_hop(lab: LabDirectory, options: Namespace) -> Any:
    vm = watched_machine(lab.world, options)
    chosen = select_route(effective.effective_routes(lab.world, lab.world.interface(vm.interface)), options.dest_ip)
    if chosen is None:
        return {"nextHopIpAddress": "", "nextHopType": "None", "routeTableId": "System Route"}
    table = lab.world.subnet_of(lab.world.interface(vm.interface)).route_table
    user = chosen.source == "User" and table is not None
    return {
        "nextHopIpAddress": chosen.next_hop_ip or "",
        "nextHopType": chosen.next_hop_type,
        "routeTableId": shapes.id_of(lab.world, lab.world.route_table(table or "")) if user else "System Route",
    }


@command(
    "network watcher test-ip-flow",
    IN_GROUP,
    "--vm !",
    "--direction !",
    "--local !",
    "--remote !",
    "--protocol !",
    "--nic",
)
def test_ip_flow(lab: LabDirectory, options: Namespace) -> Any:
    nic = lab.world.interface(watched_machine(lab.world, options).interface)
    near, far = _endpoint("--local", options.local), _endpoint("--remote", options.remote)
    inbound = options.direction.casefold() == "inbound"
    flow = Flow(options.protocol, *far, *near) if inbound else Flow(options.protocol, *near, *far)
    tags = effective.service_tags(lab.world, nic)
    verdict = evaluate_gates(effective.gates(lab.world, nic), flow, "Inbound" if inbound else "Outbound", tags)
    rule = verdict.rule
    kind = "defaultSecurityRules" if rule is None or rule.is_default else "securityRules"
    return {
        "access": "Allow" if verdict.allowed else "Deny",
        "ruleName": f"{kind}/{rule.name}" if rule is not None else f"{kind}/AllowAll",
    }


def _endpoint(option: str, text: str) -> tuple[str, int | None]:
    address, colon, port = text.rpartition(":")
    if not colon or not (port == "*" or port.isdigit()):
        raise usage(f"the format of {option} is IP:PORT, got '{text}'")
    return address, None if port == "*" else int(port)
