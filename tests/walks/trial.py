"""Which packets of a steady row a link loses, in its model alone.

usage: python -m tests.walks.trial SETTINGS EVERY_US

In: settings of a link of 10 Mbit/s and 4 ms as a description writes them, and how often a packet of 1500 bytes comes,
which takes 1.2 ms. Out: the numbers of those that never leave, from 0 on.
"""

from __future__ import annotations

import sys

from ewan.calibration.trains import PacketSource, packets, treated

PACKETS = 12


def main(settings: str, every_us: int) -> None:
    """Prints one line."""
    came = packets((PacketSource(PACKETS, every_us),))
    left = {line.came_ns for line in treated(settings, came) if line.left_ns is not None}
    lost = [str(number) for number, packet in enumerate(came) if packet.at_ns not in left]
    print(f"lost: {', '.join(lost) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
