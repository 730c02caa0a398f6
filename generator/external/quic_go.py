"""quic-go, a library of QUIC in Go: `ewan-quic-go` (generator/quic/go) at both ends. See quic.py."""

from __future__ import annotations

from ewan.generator.external import quic

TOOL = quic.tool(
    "quic-go",
    "ewan-quic-go",
    "`quic` by quic-go 0.59 with Go's TLS (`make quic` builds the program where Go is): its Reno, datagrams of 1280 B "
    "at first and as large as its probes of the path find, several of them in one system call (UDP GSO), ECT(0) set. "
    "The receiver closes the connection when it has all. It has neither HTTP/3 nor qlog here, and does not tell what "
    "arrived beyond a gap.",
)
