"""aioquic, a library of QUIC in Python: `ewan-aioquic` (generator/quic/ewan_aioquic) at both ends. See quic.py."""

from __future__ import annotations

from ewan.generator.external import quic
from ewan.labs.base.units import NS_PER_MS

LEAD_NS = 4_000 * NS_PER_MS
"""Python reads the library's modules for up to a second and a half, in either clock."""

TOOL = quic.tool(
    "aioquic",
    "ewan-aioquic",
    "`quic` by aioquic 1.7 (`make quic` installs it from PyPI): reno or cubic, datagrams of 1200 B. A packet costs its "
    "Python some 0.3 ms: live it does not fill a fast link, in the virtual clock it only takes longer; a transfer may "
    "begin 1 ms late there. It counts as lost what it sends anew after a timeout, too.",
    LEAD_NS,
)
