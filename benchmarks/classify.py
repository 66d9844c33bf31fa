"""How long `classify` takes, beside `shlex.split` of the same text, and that its time grows with the length alone.

The figures are medians of single calls, so that a busy machine does not flatter a mean; the bounds are those of
`docs/safety.md`. A command of 200 characters is timed twice: the same one again and again, and commands of which
each is seen once only, since no cache may carry the bound.
"""

from __future__ import annotations

import json
import shlex
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ghost.shell import classify

CORPORA = Path(__file__).parent.parent / "tests" / "corpora"
AZ = (
    "az network nsg rule list -g prod-rg --nsg-name cache-nsg --query "
    "\"[?direction=='Inbound' && access=='Deny'].{name:name,priority:priority,source:sourceAddressPrefix}\" "
    "-o json --subscription prod-01"
)
DISTINCT = {  # {n} makes each command another; all are about 200 characters long
    "a filter and a projection": (
        "az network nsg rule list -g prod-rg-{n} --nsg-name cache-nsg-{n} --query \"[?direction=='Inbound' && "
        "access=='Deny'].{{name:name,priority:priority,source:sourceAddressPrefix}}\" -o json --subscription "
        "prod-{n}"
    ),
    "a function call": (
        "az vm get-instance-view --resource-group prod-rg-{n} --name web-vm-{n} --subscription "
        "contoso-production --query \"instanceView.statuses[?starts_with(code, 'PowerState/')].displayStatus | "
        '[0]" --output tsv'
    ),
    "a resource id": (
        "az monitor metrics list --resource "
        "/subscriptions/00000000-0000-0000-0000-000000{n}/resourceGroups/prod-rg/providers"
        "/Microsoft.Network/loadBalancers/web-lb "
        "--metrics DipAvailability --interval PT5M --output table"
    ),
    "literals and a sort": (
        "az network route-table route list -g prod-rg-{n} --route-table-name spoke-rt-{n} --query "
        '"sort_by([?nextHopType==`VirtualAppliance`], '
        '&addressPrefix)[].{{prefix:addressPrefix,hop:nextHopIpAddress}}" -o table'
    ),
    "a flow test": (
        "az network watcher test-ip-flow --resource-group prod-rg-{n} --vm web-vm-{n} --direction Inbound "
        "--protocol TCP --local 10.0.2.4:443 --remote 203.0.113.5:60000 --subscription contoso-production-{n} "
        "--query access -o tsv"
    ),
    "a log query": (
        "az monitor log-analytics query --workspace 00000000-0000-0000-0000-000000{n} --analytics-query "
        "\"AzureDiagnostics | where Category == 'NetworkSecurityGroupFlowEvent' | where Resource == 'nsg-{n}' | "
        'take 20" -o table'
    ),
    "a word such as key in it": (
        "az resource list --resource-group prod-rg-{n} --subscription contoso-production-west --query "
        "\"[?type=='Microsoft.KeyVault/vaults' && tags.env=='prod-{n}'].{{name:name,place:location,id:id}}\" -o "
        "table"
    ),
    "listed fields alone": (
        "az network vnet-gateway list --resource-group contoso-production-hub-rg-{n} --subscription "
        "contoso-prod-{n} --query "
        '"[].{{name:name,type:gatewayType,vpn:vpnType,sku:sku.name,'
        'asn:bgpSettings.asn,peer:bgpSettings.bgpPeeringAddress}}" '
        "-o json"
    ),
}
CASES = {
    "az, 200 characters": AZ,
    "curl with a format": 'curl -s -o /dev/null -w "%{http_code} %{time_total}" https://web.internal.example/healthz',
    "ss with a filter": "ss -tan state established '( dport = :443 or sport = :6379 )'",
    "ping": "ping -c 4 10.0.2.4",
}
MEGABYTE = {
    "az, 1 MB of query": f"az vm list --query '{'a' * 1_000_000}'",
    "1 MB of quotes": "ping " + "'a' " * 250_000,
    "1 MB of operators": "| id " * 200_000,
    "1 MB of letters": "a" * 1_000_000,
}
LONGEST = {  # what is still read; beyond it a command is refused by its length
    "az, 16 KB of query": f"az vm list --query '{'a' * 16_000}'",
    "16 KB of words": "ping " + "aaaa " * 3_200,
    "16 KB of commands": "sh -c 'id' ; " * 1_230,
    "16 KB of removals": "rm -r ; " * 2_000,
}
AZ_BOUND_US = 40.0
MEGABYTE_BOUND_US = 5_000.0


def median_us(call: Callable[[], object], seconds: float = 1.0) -> float:
    times: list[int] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times) < 5:
        started = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - started)
    return statistics.median(times) / 1000


def medians_of_distinct_us(rounds: int = 5, count: int = 400) -> dict[str, float]:
    """Every command is judged for the first and only time. The templates take turns."""
    medians: dict[str, list[float]] = {name: [] for name in DISTINCT}
    for start in range(100_000, 100_000 + rounds * count, count):
        for name, template in DISTINCT.items():
            times: list[int] = []
            for n in range(start, start + count):
                command = template.format(n=n)
                started = time.perf_counter_ns()
                verdict, _, why = classify(command)
                times.append(time.perf_counter_ns() - started)
                assert verdict == "SAFE", (command, why)
            medians[name].append(statistics.median(times) / 1000)
    return {name: statistics.median(of_rounds) for name, of_rounds in medians.items()}


def commands(name: str) -> list[str]:
    return [
        json.loads(line)["command"] for line in (CORPORA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def main() -> int:
    classify(AZ)  # the tables are read once
    print(f"{'':<26}{'characters':>12}{'classify':>14}{'shlex.split':>14}{'ratio':>8}")
    measured: dict[str, float] = {}
    for name, command in CASES.items():
        own = measured[name] = median_us(lambda command=command: classify(command))  # type: ignore[misc]
        peer = median_us(lambda command=command: shlex.split(command))  # type: ignore[misc]
        print(f"{name:<26}{len(command):>12,}{own:>11.1f} µs{peer:>11.1f} µs{own / peer:>8.2f}")
    of_distinct = medians_of_distinct_us()
    for name, own in of_distinct.items():
        print(f"az, {name:<28}{len(DISTINCT[name].format(n=100_000)):>6,}{own:>11.1f} µs   distinct commands")
    own = measured["az, distinct"] = statistics.median(of_distinct.values())
    print(f"{'az, distinct, median':<38}{own:>11.1f} µs   at most {max(of_distinct.values()):.1f} µs")
    for name, command in {**LONGEST, **MEGABYTE}.items():
        own = measured[name] = median_us(lambda command=command: classify(command), 0.2)  # type: ignore[misc]
        print(f"{name:<26}{len(command):>12,}{own:>11.1f} µs")
    for name in ("commands_benign", "commands_adversarial"):
        times = [median_us(lambda command=command: classify(command), 0) for command in commands(name)]  # type: ignore[misc]
        half, most = statistics.median(times), max(times)
        print(f"{name:<26}{len(times):>6,} lines{half:>11.1f} µs   at most {most:.0f} µs")
    az = max(measured["az, 200 characters"], measured["az, distinct"])
    held = az < AZ_BOUND_US and max(measured[n] for n in MEGABYTE) < MEGABYTE_BOUND_US
    verdict = "held" if held else "NOT HELD"
    print(f"bounds: az under {AZ_BOUND_US:.0f} µs, 1 MB under {MEGABYTE_BOUND_US / 1000:.0f} ms: {verdict}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
