"""`python -m ghost.pcap` and the console script `pcap-forensics`."""

import sys

from ghost.pcap import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
