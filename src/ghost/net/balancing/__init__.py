"""Load balancers and their probes, public addresses, and as whom packets leave for the internet. Pure functions.

`front_end_at` and `public_entrance` tell what stands at an address, `balance` which members of a pool may take a
packet, `of_each` what becomes of it whichever takes it, `translated` as whom it leaves.
"""

from ghost.net.balancing.front_ends import Entrance, front_end_at, interface_at
from ghost.net.balancing.public import Translated, closed_by_default, public_entrance, translated
from ghost.net.balancing.resources import (
    LoadBalancer,
    NatGateway,
    PublicAddress,
    PublicPrefix,
    ScaleSetInterfaces,
)
from ghost.net.balancing.rotation import Balanced, MemberHealth, Target, balance, health_of, of_each

__all__ = [
    "Balanced",
    "Entrance",
    "LoadBalancer",
    "MemberHealth",
    "NatGateway",
    "PublicAddress",
    "PublicPrefix",
    "ScaleSetInterfaces",
    "Target",
    "Translated",
    "balance",
    "closed_by_default",
    "front_end_at",
    "health_of",
    "interface_at",
    "of_each",
    "public_entrance",
    "translated",
]
