"""A cable with a delay, for the rig (tests/extras/machines_rig.py): frames from one interface leave another so much
later.

Started in a network namespace, with the interpreter alone (`python -I -S`). In: the machine's interface, the network's,
and the delay in ns of what goes from the machine to the network; the other way there is none. Ends with its standard
input, or when an interface goes.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from collections import deque

ETH_P_ALL = 3
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
LARGEST_BYTES = 1 << 16
QUEUE_BYTES = 64 << 20
NS_PER_SECOND = 1_000_000_000
SPIN_NS = 200_000
"""A sleep ends so much too late at times: the last of a delay is waited for awake."""


def opened(interface: str) -> socket.socket:
    """All frames that arrive at an interface."""
    frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    frames.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    frames.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, QUEUE_BYTES)
    frames.bind((interface, ETH_P_ALL))
    frames.setblocking(False)
    return frames


def main() -> None:
    """Carries frames until it is ended."""
    machine, network = opened(sys.argv[1]), opened(sys.argv[2])
    delay_ns = int(sys.argv[3])
    waiting: deque[tuple[int, bytes]] = deque()
    print("ready", flush=True)
    clock = time.monotonic_ns
    while True:
        sleep_s = max(0, waiting[0][0] - clock() - SPIN_NS) / NS_PER_SECOND if waiting else None
        watched: list[socket.socket | int] = [machine, network, 0]
        ready, _, _ = select.select(watched, [], [], sleep_s)
        if 0 in ready:
            return
        try:
            if machine in ready:
                frame = machine.recv(LARGEST_BYTES)
                waiting.append((clock() + delay_ns, frame))
            if network in ready:
                machine.send(network.recv(LARGEST_BYTES))
            while waiting and waiting[0][0] <= clock():
                network.send(waiting.popleft()[1])
        except BlockingIOError:
            continue
        except OSError:
            return


if __name__ == "__main__":
    main()
