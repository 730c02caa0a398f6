"""Open vSwitch as the program of a switch: its services, in the order in which they start.

Comes in: the switch's ports and who is behind each. Goes out: services that keep everything in the node's own
directory. Who is where is in the flow table from the start: nothing is learnt, nothing is forgotten, and only
broadcasts are flooded; a switch with VLANs floods within one of them. What a port's queue holds is none of Open
vSwitch's business (`linux-noop`): it is the queueing discipline that the plan gives the interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ewan.labs.plan import Service, Vlans

Datapath = Literal["netdev", "system"]
"""netdev: in the daemon, over packet sockets, on any kernel; system: in the kernel, which has its module."""

AT_ONCE: dict[Datapath, int] = {"netdev": 32, "system": 1}
"""The number of packets that it hands over together: a batch of its datapath in user space (NETDEV_MAX_BURST), or each
packet."""

BRIDGE = "switch"
_DATABASE = "--db=unix:{run}/db.sock"
_QUIET = ("-vsyslog:off", "-vfile:off", "-vconsole:info")
_HOUR_MS = 3_600_000
_SWEEP_MS = 10_000
_YOUNG_S = 10
"""Open vSwitch 3.1 first counts CPUs, and starts threads for them, when the machine has been up for so long."""
_NEXT_ONLY, _EXPERIMENTAL = "0180c200000e", "88b5"
"""A MAC address that is never forwarded (IEEE 802.1Q, table 8-1), and an EtherType that no protocol has (IEEE 802)."""


@dataclass(frozen=True, slots=True)
class BridgePort:
    """An interface of the switch, and the MAC addresses behind it."""

    interface: str
    macs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VlanPort:
    """An interface of a switch with VLANs, and the MAC addresses behind it, each with its VLAN."""

    interface: str
    vlans: Vlans
    macs: tuple[tuple[int, str], ...]


def services(ports: Sequence[BridgePort], datapath: Datapath, *, at_boot: bool) -> tuple[Service, ...]:
    """Database, switch, its ports, its flows; `at_boot`: as soon as the machine itself has started."""
    return _services(_ports([port.interface for port in ports], datapath), _flows(ports), datapath, at_boot)


def vlan_services(ports: Sequence[VlanPort], datapath: Datapath, *, at_boot: bool) -> tuple[Service, ...]:
    """The same of a switch with VLANs: `ovs-vsctl show` tells them, and its flows follow them."""
    words = list(_ports([port.interface for port in ports], datapath))
    for port in ports:
        words += ["--", "set", "Port", port.interface, *_vlan_words(port.vlans)]
    return _services(tuple(words), _vlan_flows(ports), datapath, at_boot)


def _services(ports: tuple[str, ...], flows: str, datapath: Datapath, at_boot: bool) -> tuple[Service, ...]:
    wait = (Service("wait", "setup", ("sleep", str(_YOUNG_S)), {}, None),) if at_boot else ()
    sockets = _sockets() if datapath == "netdev" else ()
    return (
        *wait,
        # A container that is started again finds what it left.
        Service("clean", "setup", ("rm", "-f", "{run}/conf.db"), {}, None),
        Service("database", "setup", ("ovsdb-tool", "create", "{run}/conf.db"), {}, None),
        Service("ovsdb-server", "daemon", _server(), {}, "db.sock"),
        Service("settings", "setup", _settings(), {}, None),
        Service("ovs-vswitchd", "daemon", _switch(), {}, "vswitchd.ctl"),
        Service("ports", "setup", ports, {}, None),
        Service("flows", "setup", _add_flows(), {"flows": flows}, None),
        *sockets,
    )


def _server() -> tuple[str, ...]:
    sockets = ("--remote=punix:{run}/db.sock", "--unixctl={run}/ovsdb.ctl")
    return ("ovsdb-server", "{run}/conf.db", *sockets, "--no-chdir", *_QUIET)


def _switch() -> tuple[str, ...]:
    files = ("--unixctl={run}/vswitchd.ctl", "--pidfile={run}/vswitchd.pid")
    return ("ovs-vswitchd", "unix:{run}/db.sock", *files, *_QUIET)


def _settings() -> tuple[str, ...]:
    """One thread of each kind; flows of the datapath stay for hours, and are looked through seldom."""
    values = {
        "n-handler-threads": 1,
        "n-revalidator-threads": 1,
        "max-idle": _HOUR_MS,
        "max-revalidator": _SWEEP_MS,
        "stats-update-interval": _HOUR_MS,
    }
    set_values = (f"other_config:{key}={value}" for key, value in values.items())
    return ("ovs-vsctl", _DATABASE, "--no-wait", "--", "init", "--", "set", "Open_vSwitch", ".", *set_values)


def _ports(ports: Sequence[str], datapath: Datapath) -> tuple[str, ...]:
    """The bridge with its ports, numbered from 1; ends when the switch has them."""
    words = ["ovs-vsctl", "--timeout=20", _DATABASE, "--", "add-br", BRIDGE]
    words += ["--", "set", "Bridge", BRIDGE, f"datapath_type={datapath}", "fail_mode=secure"]
    words += ["--", "--id=@keep", "create", "QoS", "type=linux-noop"]
    for number, port in enumerate(ports, 1):
        words += ["--", "add-port", BRIDGE, port]
        words += ["--", "set", "Interface", port, f"ofport_request={number}"]
        words += ["--", "set", "Port", port, "qos=@keep"]
    return tuple(words)


def _sockets() -> tuple[Service, ...]:
    """The daemon's packet sockets, made large enough for what waits in the ports' queues. The socket that it sends by
    is opened with the first packet, which its receiver drops, as it is of no protocol.
    """
    frame = _NEXT_ONLY + "020000000001" + _EXPERIMENTAL + "00" * 46
    words = ("in_port=controller", f"packet={frame}", "actions=output:1")
    first = ("ovs-ofctl", "packet-out", f"unix:{{run}}/{BRIDGE}.mgmt", " ".join(words))
    enlarge = ("ewan-node", "packet-sockets", "--pid-file={run}/vswitchd.pid")
    return Service("first-packet", "setup", first, {}, None), Service("sockets", "setup", enlarge, {}, None)


def _add_flows() -> tuple[str, ...]:
    return ("ovs-ofctl", "add-flows", f"unix:{{run}}/{BRIDGE}.mgmt", "{run}/flows")


def _flows(ports: Sequence[BridgePort]) -> str:
    known = [f"dl_dst={mac},actions=output:{number}" for number, port in enumerate(ports, 1) for mac in port.macs]
    return "".join(f"{line}\n" for line in ("priority=0,actions=NORMAL", *known))


def _vlan_words(vlans: Vlans) -> list[str]:
    """A port's columns (ovs-vswitchd.conf.db(5)), by which the action NORMAL floods."""
    words = [] if vlans.untagged is None else [f"tag={vlans.untagged}"]
    if not vlans.tagged:
        return [*words, "vlan_mode=access"]
    mode = "trunk" if vlans.untagged is None else "native-untagged"
    return [*words, f"trunks={','.join(map(str, vlans.tagged))}", f"vlan_mode={mode}"]


def _vlan_flows(ports: Sequence[VlanPort]) -> str:
    """Table 0: a frame's VLAN, by the port and the tag; one that is not of the port is dropped. Table 1: where a MAC
    address is in a VLAN, and whether the frame has a tag there; an unknown address is flooded in its VLAN."""
    lines = ["priority=0,actions=drop", "table=1,priority=0,actions=NORMAL"]
    for number, port in enumerate(ports, 1):
        own = port.vlans.untagged
        # Untagged, or with a tag that only has a priority (IEEE 802.1Q, 6.9.1).
        matches = [] if own is None else [("vlan_tci=0x0000/0x0fff", own)]
        matches += [(f"dl_vlan={vlan}", vlan) for vlan in port.vlans.tagged]
        lines += [
            f"in_port={number},{match},actions=load:{vlan}->NXM_NX_REG0[],resubmit(,1)" for match, vlan in matches
        ]
        for vlan, mac in port.macs:
            tag = "strip_vlan" if vlan == own else f"mod_vlan_vid:{vlan}"
            lines.append(f"table=1,reg0={vlan},dl_dst={mac},actions={tag},output:{number}")
    return "".join(f"{line}\n" for line in lines)
