"""Commands run inside a machine: https://learn.microsoft.com/rest/api/compute/virtual-machines/run-command

Azure calls it a success whatever the script's exit status is, and shows the last 4,096 bytes of each stream.
"""

from __future__ import annotations

from typing import Any

from ghost.lab.arm.api_messages import ArmError, Response, bad_request
from ghost.lab.arm.operations import RESULTS, accepted_by_compute
from ghost.lab.arm.request_routing import IN_GROUP, Call, route
from ghost.lab.arm.resource_reads import find_resource
from ghost.lab.world import Machine

SCRIPTS = {"Linux": "RunShellScript", "Windows": "RunPowerShellScript"}
LONGEST_BYTES = 4096


@route("POST", f"{IN_GROUP}/providers/Microsoft.Compute/virtualMachines/{{name}}/runCommand")
def run_command(call: Call) -> Response:
    vm, _ = _script_lines(call)
    if vm.power != "running":
        raise ArmError(409, "OperationNotAllowed", "The operation requires the VM to be running (or set to run).")
    return accepted_by_compute(call, "run_command", call.world.location_of(vm.resource_group))


def _result(call: Call) -> dict[str, Any]:
    from ghost.lab.guest import run_powershell, run_script  # az starts by the hundred without them

    vm, lines = _script_lines(call)
    if vm.os == "Windows":
        ran = run_powershell(call.world, vm, lines, call.lab.clock.now())
        streams = [("StdOut", ran.out), ("StdErr", ran.err)]
        return {"value": [_status(f"ComponentStatus/{stream}/succeeded", _last(text)) for stream, text in streams]}
    ran = run_script(call.world, vm, lines, call.lab.clock.now())
    message = f"Enable succeeded: \n[stdout]\n{_last(ran.out)}\n[stderr]\n{_last(ran.err)}"
    return {"value": [_status("ProvisioningState/succeeded", message)]}


RESULTS["run_command"] = _result


def _last(text: str) -> str:
    return text.encode()[-LONGEST_BYTES:].decode(errors="ignore")


def _status(code: str, message: str) -> dict[str, str]:
    return {"code": code, "level": "Info", "displayStatus": "Provisioning succeeded", "message": message}


def _script_lines(call: Call) -> tuple[Machine, list[str]]:
    values = {**call.values, "namespace": "Microsoft.Compute"}
    vm = call.world.machine(find_resource(Call(call.lab, call.request, values), "virtualMachines")["name"])
    body = call.request.json()
    command, script = body.get("commandId"), body.get("script") or []
    if command != SCRIPTS[vm.os]:
        raise bad_request(f"The entity {command} was not found for {vm.os}.", "InvalidParameter")
    return vm, [str(line) for line in script] if isinstance(script, list) else [str(script)]
