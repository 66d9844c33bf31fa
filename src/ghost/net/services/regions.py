"""Regions and their pairs.

https://learn.microsoft.com/azure/reliability/regions-paired
"""

from __future__ import annotations

from typing import Final

_BOTH_WAYS: Final = """
australiacentral australiacentral2, australiaeast australiasoutheast, canadacentral canadaeast, centralus eastus2,
chinaeast chinanorth, chinaeast2 chinanorth2, chinaeast3 chinanorth3, eastasia southeastasia, eastus westus,
francecentral francesouth, germanynorth germanywestcentral, centralindia southindia, japaneast japanwest,
koreacentral koreasouth, northcentralus southcentralus, northeurope westeurope, norwayeast norwaywest,
southafricanorth southafricawest, swedencentral swedensouth, switzerlandnorth switzerlandwest, uaecentral uaenorth,
uksouth ukwest, usdodcentral usdodeast, usgovarizona usgovtexas, westcentralus westus2
"""
_ONE_WAY: Final = (
    "brazilsouth southcentralus, brazilsoutheast brazilsouth, usgovvirginia usgovtexas, westindia southindia, "
    "westus3 eastus"
)
_UNPAIRED: Final = (
    "austriaeast chilecentral indonesiacentral israelcentral italynorth malaysiawest mexicocentral newzealandnorth "
    "polandcentral qatarcentral spaincentral"
)


def _pairs(text: str) -> list[list[str]]:
    return [pair.split() for pair in text.split(",")]


PAIR: Final[dict[str, str]] = dict(
    pair for one, other in _pairs(_BOTH_WAYS) for pair in ((one, other), (other, one))
) | dict(map(tuple, _pairs(_ONE_WAY)))  # type: ignore[arg-type]
REGIONS: Final = frozenset({*PAIR, *_UNPAIRED.split()})


def paired(one: str, other: str) -> bool | None:
    """Return whether `other` is the same region or the pair of `one`; None if that is not known."""
    if one and other in (one, PAIR.get(one)):
        return True
    return False if {one, other} <= REGIONS and PAIR.get(other) != one else None
