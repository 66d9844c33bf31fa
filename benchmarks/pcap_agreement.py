"""How far the TCP analysis flags agree with TShark's on captures that nobody chose: new seeds, new paths, new streams.

Records real traffic in network namespaces (root, tcpdump, nft, ethtool), each scene at both ends and in between, and
makes up odd streams; compares both frame by frame. `GHOST_CAMPAIGN=first:recordings:odd` says which seeds.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.pcap.agreement import Tally, counts_by_engine, counts_by_tshark
from tests.pcap.odd_streams import odd_capture
from tests.pcap.recording import play_all

ASKED_ONLY = True
SHARE, COUNTED = 0.99, 50
_AT_ONCE = 4


def main() -> int:
    first, recordings, odd = map(int, os.environ.get("GHOST_CAMPAIGN", "1000:40:100").split(":"))
    real, made, miscounted = Tally(), Tally(), 0
    for begin in range(first, first + recordings, _AT_ONCE):
        with tempfile.TemporaryDirectory() as name:
            seeds = range(begin, min(begin + _AT_ONCE, first + recordings))
            for place in play_all((("anything", seed) for seed in seeds), Path(name), at_once=_AT_ONCE):
                for capture in sorted(place.glob("*.pcap")):
                    named = capture.rename(capture.with_name(f"{place.name}-{capture.name}"))
                    real.add(named)
                    miscounted += counts_by_engine(named) != counts_by_tshark(named)
        print(f"{begin + len(seeds) - first} of {recordings} scenes recorded", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as name:
        for seed in range(first, first + odd):
            capture = odd_capture(seed, Path(name, f"odd-{seed}.pcap"))
            made.add(capture)
            capture.unlink()
    for title, tally in (("recorded", real), ("made up", made)):
        print(f"{title}: {tally.frames:,} TCP frames, {len(tally.differences)} differ")
        print("\n".join(tally.table()))
        for difference in tally.differences[:40]:
            print(*difference)
    print(f"captures whose counts of SYN, SYN-ACK, RST, FIN, DNS, ICMP or ARP differ: {miscounted}")
    return 1 if miscounted or real.below(SHARE, COUNTED) or made.below(SHARE, COUNTED) else 0


if __name__ == "__main__":
    sys.exit(main())
