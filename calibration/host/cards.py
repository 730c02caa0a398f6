"""Reads the properties of a network card of this host; nothing is sent over it and nothing is changed.

In: the name of an interface. Out: `NetworkCard`: speed, MTU, offloads that are on, sizes of its rings, which time
stamps it can take. LabError, one line, where there is no such interface. Needs no root.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import socket
import struct
from pathlib import Path

from ewan.labs.base.codec import Struct
from ewan.labs.base.units import MEGA
from ewan.labs.runtime.base import LabError

INTERFACES = Path("/sys/class/net")
SIOCETHTOOL = 0x8946
"""linux/sockios.h; the commands are of linux/ethtool.h."""
GET_RINGS = 0x10
GET_TIME_STAMPS = 0x41
OFFLOADS = {"tx-checksum": 0x16, "rx-checksum": 0x14, "tso": 0x1E, "gso": 0x23, "gro": 0x2B}
TIME_STAMPS = ("tx-hardware", "tx-software", "rx-hardware", "rx-software", "software", "sys-hardware", "raw-hardware")
"""By the bits of SOF_TIMESTAMPING (linux/net_tstamp.h)."""
HARDWARE = "rx-hardware"


class NetworkCard(Struct):
    """One interface; None and nothing where it does not say. `rings_packets`: what its receive and its send ring hold
    now."""

    name: str
    driver: str | None
    speed_bps: int | None
    mtu_bytes: int
    rings_packets: tuple[int, ...]
    offloads: tuple[str, ...]
    time_stamps: tuple[str, ...]

    @property
    def stamps_in_hardware(self) -> bool:
        """Return whether the card itself can stamp packets that arrive."""
        return HARDWARE in self.time_stamps


def read_card(name: str, interfaces: Path = INTERFACES) -> NetworkCard:
    """Reads it below /sys, and by the requests of ethtool(8) that change nothing."""
    place = interfaces / name
    if "/" in name or not place.is_dir():
        known = ", ".join(sorted(each.name for each in interfaces.iterdir())) if interfaces.is_dir() else "none"
        raise LabError(f"interface {name!r}: there is none of this name: write one of {known}")
    speed = _number(place / "speed")
    driver = place / "device/driver"
    return NetworkCard(
        name=name,
        driver=driver.resolve().name if driver.exists() else None,
        # A port without a cable says −1, a virtual one refuses to say.
        speed_bps=speed * MEGA if speed is not None and speed > 0 else None,
        mtu_bytes=_number(place / "mtu") or 0,
        rings_packets=_rings(name),
        offloads=tuple(word for word, command in OFFLOADS.items() if _ask(name, command, 1)[:1] == (1,)),
        time_stamps=_time_stamps(name),
    )


def _number(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def _rings(name: str) -> tuple[int, ...]:
    """struct ethtool_ringparam: four maxima (receive, mini, jumbo, send), then as many sizes."""
    words = _ask(name, GET_RINGS, 8)
    return (words[4], words[7]) if words else ()


def _time_stamps(name: str) -> tuple[str, ...]:
    """struct ethtool_ts_info: the bits come first."""
    words = _ask(name, GET_TIME_STAMPS, 10)
    return time_stamps(words[0]) if words else ()


def time_stamps(bits: int) -> tuple[str, ...]:
    """The words of SOF_TIMESTAMPING's bits."""
    return tuple(word for bit, word in enumerate(TIME_STAMPS) if bits >> bit & 1)


def _ask(name: str, command: int, words: int) -> tuple[int, ...]:
    """The words that follow a request's command; none where the interface does not know it."""
    request = array.array("I", [command, *[0] * words])
    address, _ = request.buffer_info()
    interface = struct.pack("16sP16x", name.encode()[:15], address)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            fcntl.ioctl(asking, SIOCETHTOOL, interface)
    except OSError:
        return ()
    return tuple(request[1:])
