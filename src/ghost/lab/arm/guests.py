"""Commands run inside a machine: https://learn.microsoft.com/rest/api/compute/virtual-machines/run-command

A guest supports the few read commands below; others are not found. None is executed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from ghost.lab.arm.api_messages import ArmError, Response, bad_request
from ghost.lab.arm.operations import RESULTS, accepted
from ghost.lab.arm.request_routing import IN_GROUP, Call, route
from ghost.lab.arm.resource_reads import find_resource
from ghost.lab.world import Machine, World

SCRIPTS = {"Linux": "RunShellScript", "Windows": "RunPowerShellScript"}
_LISTENING = "State  Recv-Q Send-Q Local Address:Port Peer Address:Port"


@route("POST", f"{IN_GROUP}/providers/Microsoft.Compute/virtualMachines/{{name}}/runCommand")
def run_command(call: Call) -> Response:
    vm, lines = _script_lines(call)
    if vm.power != "running":
        raise ArmError(409, "OperationNotAllowed", "The operation requires the VM to be running (or set to run).")
    _printed(call.world, vm, lines)
    return accepted(call, "run_command", call.world.location_of(vm.resource_group), "Microsoft.Compute")


def _result(call: Call) -> dict[str, Any]:
    vm, lines = _script_lines(call)
    out, err = _printed(call.world, vm, lines)
    if vm.os == "Windows":
        streams = [("StdOut", out), ("StdErr", err)]
        return {"value": [_status(f"ComponentStatus/{stream}/succeeded", text) for stream, text in streams]}
    message = f"Enable succeeded: \n[stdout]\n{out}\n[stderr]\n{err}"
    return {"value": [_status("ProvisioningState/succeeded", message)]}


RESULTS["run_command"] = _result


def _status(code: str, message: str) -> dict[str, str]:
    return {"code": code, "level": "Info", "displayStatus": "Provisioning succeeded", "message": message}


def _script_lines(call: Call) -> tuple[Machine, list[str]]:
    values = {**call.values, "namespace": "Microsoft.Compute"}
    vm = call.world.machine(find_resource(Call(call.lab, call.request, values), "virtualMachines")["name"])
    body = call.request.json()
    command, script = body.get("commandId"), body.get("script") or []
    if command != SCRIPTS[vm.os]:
        raise bad_request(f"The entity {command} was not found for {vm.os}.", "InvalidParameter")
    lines = [str(line) for line in script] if isinstance(script, list) else [str(script)]
    return vm, [line for text in lines for line in text.splitlines() if line.strip()]


def _printed(world: World, vm: Machine, lines: list[str]) -> tuple[str, str]:
    """Return standard output and standard error of a script."""
    out, err = [], []
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line)
        except ValueError as error:
            err.append(f"line {number}: {error}")
            continue
        answer = _COMMANDS.get(" ".join(words))
        if answer is None:
            err.append(f"line {number}: {_unknown(words, line)}")
        else:
            out.append(answer(world, vm))
    return "\n".join(out), "\n".join(err)


def _unknown(words: list[str], line: str) -> str:
    """Return the error for a supported program with unsupported arguments, distinct from a missing program."""
    program = words[0] if words else line
    known = [command for command in _COMMANDS if command.split()[0] == program]
    return f"{line}: not simulated; there is: {', '.join(known)}" if known else f"{program}: command not found"


def _listening(_world: World, vm: Machine) -> str:
    open_ports = [item for item in vm.listeners if item.protocol == "Tcp"]
    rows = [f"LISTEN 0      4096   {item.address}:{item.port} 0.0.0.0:*" for item in open_ports]
    return "\n".join([_LISTENING, *rows])


def _open_firewall(_world: World, _vm: Machine) -> str:
    return "-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT"


def _addresses(world: World, vm: Machine) -> str:
    nic = world.interface_of(vm.name)
    return f"eth0             UP             {nic.address}/{world.subnet_of(nic).prefix.rpartition('/')[2]}"


_COMMANDS: dict[str, Callable[[World, Machine], str]] = {
    "hostname": lambda _, vm: vm.name,
    "ss -tln": _listening,
    "ss -lnt": _listening,
    "iptables -S": _open_firewall,
    "sudo iptables -S": _open_firewall,
    "ip -br addr": _addresses,
}
