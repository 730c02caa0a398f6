"""Hosts whose TCP differs from that of the others: sysctls of their own, and what their routes tell TCP.

Comes in: nodes with the sysctls of their kind, and what the description says of hosts. Goes out: the same nodes, those
with a stack of their own changed. Linux documents the sysctls in ip-sysctl, what routes tell in ip-route(8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ewan.labs.base.codec import replace
from ewan.labs.base.source import Path
from ewan.labs.base.units import Size
from ewan.labs.compile.hosts import written
from ewan.labs.plan import Node, Stack
from ewan.labs.spec import Spec, fields

_SWITCHES = {"window_scaling": "tcp_window_scaling", "sack": "tcp_sack", "timestamps": "tcp_timestamps"}
_GROWING = "tcp_moderate_rcvbuf"
MOST_UNSCALED = 65_535
"""The largest window of a header without scaling (RFC 9293)."""
LEAST, RECEIVE, SEND = 4096, 131_072, 65_536
"""Bytes of a buffer under pressure of memory, of a receive and of a send buffer at the beginning."""
AS_ALL = (fields.StackKeys(delayed_ack="on"), fields.StackKeys(mtu_probing="off"))
"""The defaults of every host, so that a parameter of a scenario may be a switch."""


def hosts(spec: Spec, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, hosts with the stacks that the description says; DescriptionError where one contradicts itself."""
    if not spec.description.hosts:
        return tuple(nodes)
    found = written(spec, [node.name for node in nodes if node.kind == "host"])
    stacks = {
        name: _checked(spec, (*path, "stack"), host.stack)
        for name, (path, host) in found.items()
        if host.stack is not None and host.stack not in AS_ALL
    }
    return tuple(_with(node, stacks[node.name]) if node.name in stacks else node for node in nodes)


def _checked(spec: Spec, path: Path, stack: fields.StackKeys) -> fields.StackKeys:
    whole = stack.written_out()
    window = whole.window
    if whole.window_scaling == "off" and window is not None and window != "auto" and window.bytes > MOST_UNSCALED:
        message = f"a window without scaling has {MOST_UNSCALED} bytes at most: write so much, or window_scaling: on"
        raise spec.error((*path, "window"), message, window)
    return whole


def _with(node: Node, stack: fields.StackKeys) -> Node:
    own = sysctls(stack, node.sysctls, max(port.mtu for port in node.interfaces))
    window = stack.window.bytes if isinstance(stack.window, Size) else None
    return replace(node, sysctls=node.sysctls | own, stack=Stack(stack.delayed_ack == "off", window))


def sysctls(stack: fields.StackKeys, common: Mapping[str, str], mtu: int) -> dict[str, str]:
    """The settings of a stack, written out, where hosts of the lab have those of `common`."""
    found = {f"net/ipv4/{name}": "0" if getattr(stack, key) == "off" else "1" for key, name in _SWITCHES.items()}
    if stack.mtu_probing is not None:
        found["net/ipv4/tcp_mtu_probing"] = "1" if stack.mtu_probing == "on" else "0"
    found[f"net/ipv4/{_GROWING}"] = "1" if stack.window is None else "0"
    if stack.window is not None:
        buffer = (
            common["net/ipv4/tcp_rmem"].split()[2]
            if stack.window == "auto"
            else str(_room(stack, stack.window.bytes, mtu))
        )
        found["net/ipv4/tcp_rmem"] = f"{LEAST} {buffer} {buffer}"
    elif stack.rmem is not None:
        found["net/ipv4/tcp_rmem"] = f"{LEAST} {min(RECEIVE, stack.rmem.bytes)} {stack.rmem.bytes}"
    if stack.wmem is not None:
        found["net/ipv4/tcp_wmem"] = f"{LEAST} {min(SEND, stack.wmem.bytes)} {stack.wmem.bytes}"
    return found


_HEADERS, _TIMESTAMPS = 40, 12
_BESIDE, _DESCRIPTION = 14 + 320, 256
"""Bytes beside an IP packet in its piece of memory (Ethernet header, struct skb_shared_info), and struct sk_buff."""


def _room(stack: fields.StackKeys, window: int, mtu: int) -> int:
    """The receive buffer, in bytes, of which Linux offers `window`, and less than a segment more.

    It offers the share of a buffer that is payload where full segments fill it, in 256ths (net/ipv4/tcp_input.c:
    tcp_measure_rcv_mss, since Linux 6.6), but for the segment that has just come (tcp_grow_window); a packet of a lab's
    veth pairs lies in memory of the next power of two.
    """
    segment = mtu - _HEADERS - (0 if stack.timestamps == "off" else _TIMESTAMPS)
    memory = 1 << (mtu + _BESIDE - 1).bit_length()
    share = (segment << 8) // (memory + _DESCRIPTION)
    return -(-((window + segment) << 8) // share)
