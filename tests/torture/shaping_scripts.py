"""Random scripts that shape traffic with tc and iptables, as people write them, right and wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


class Writer(Random):
    """Draws; a careful one writes what a person wrote who knew tc."""

    careful = False

    def one(self, right: Sequence[str], wrong: Sequence[str]) -> str:
        return self.choice(right if self.careful else (*right, *wrong))


ADDRESSES = ("10.0.0.2", "10.0.0.3/32", "10.0.1.0/24", "10.0.0.0/16")
RATES = ("1mbit", "10mbit", "512kbit", "2mbps", "25mbit", "1e3kbit", "0x7a1200")
TIMES = ("10ms", "1ms", "250us", "40ms", "1e1ms")
SHARES = ("1%", "0.5%", "2")


def script(seed: str) -> str:
    """One script for the cards eth0, eth1 and ifb0."""
    chance = Writer(seed)
    chance.careful = chance.random() < 0.7
    lines = ["#!/bin/sh"] if chance.random() < 0.5 else []
    device = "eth0"
    if chance.random() < 0.3:
        lines.append("DEV=eth0")
        device = "$DEV"
    lines += [noise(chance)] * (chance.random() < 0.3)
    lines += [f"tc qdisc del dev {device} root 2>/dev/null"] * (chance.random() < 0.3)
    lines += chance.choice((netem_and_tbf, htb, htb, prio, policers, incoming, changes))(chance, device)
    if chance.random() < 0.15:
        lines += netem_and_tbf(chance, "eth1")
    if chance.random() < 0.2:
        lines += policers(chance, device)
    lines += [noise(chance)] * (chance.random() < 0.3)
    for _ in range(0 if chance.careful else chance.choice((0, 1, 2))):
        damage(chance, lines)
    return "\n".join(lines) + "\n"


def noise(chance: Writer) -> str:
    return chance.choice((
        "echo shaping", "modprobe ifb", "ip link set eth0 txqueuelen 500", "# a comment", "tc -s qdisc show dev eth0",
        "sysctl -w net.ipv4.ip_forward=1", "echo 1 > /proc/sys/net/ipv4/conf/all/forwarding", "", "true && echo up",
        "iptables -t nat -A POSTROUTING -j MASQUERADE",
    ))  # fmt: skip


def netem(chance: Writer) -> str:
    parts = [f"delay {chance.choice(TIMES)}" + chance.choice(("", "", " 1ms"))] * (chance.random() < 0.8)
    parts += [f"{key} {chance.choice(SHARES)}" for key in ("loss", "duplicate", "corrupt") if chance.random() < 0.3]
    parts += [f"rate {chance.choice(RATES)}"] * (chance.random() < 0.2)
    parts += [f"limit {chance.choice((50, 1000, 20000))}"] * (chance.random() < 0.3)
    odd = ("reorder 25% 50%", "gap 5", "delay 5ms 1ms 30%", "slot 1ms 2ms", "distribution normal", "loss 2% loss 1%")
    parts += [chance.one(("",), (*odd, "limit 0", "lim 1k"))] * (chance.random() < 0.1)
    return " ".join(["netem", *(parts or ["delay 5ms"])]).strip()


def tbf(chance: Writer) -> str:
    burst = chance.one(("5kb", "16kb", "32kbit", "2000", "1600b"), ("1500",))
    waits = chance.one(("latency 50ms", "limit 30kb", "latency 1s", "limit 100000"), ("",))
    return f"tbf rate {chance.choice(RATES)} burst {burst} {waits}".strip()


def queue(chance: Writer) -> str:
    return chance.one(
        ("pfifo limit 100", "bfifo limit 60000", "fq_codel limit 500 target 10ms", "codel", "sfq perturb 10", "pie"),
        ("red limit 120000 avpkt 1000", "pfifo_fast", "cake bandwidth 5mbit", "fq"),
    )


def netem_and_tbf(chance: Writer, device: str) -> list[str]:
    first, second = netem(chance), chance.choice((tbf, queue))(chance)
    if chance.random() < 0.3:
        first, second = tbf(chance), chance.choice((netem, queue))(chance)
    if not chance.careful and chance.random() < 0.2:
        first, second = second, first
    verb = chance.choice(("add", "add", "add", "replace"))
    lines = [f"tc qdisc {verb} dev {device} root handle 1: {first}"]
    if chance.random() < 0.6:
        parent = chance.one(("1:1", "1:1", "1:", "1:2"), ("2:1",))
        lines.append(f"tc qdisc add dev {device} parent {parent} handle {chance.one(('10:', '2:'), ('1:',))} {second}")
        if not chance.careful and chance.random() < 0.3:
            lines.append(f"tc qdisc add dev {device} parent 10:1 {queue(chance)}")
    return lines


def htb(chance: Writer, device: str) -> list[str]:
    default = chance.choice((" default 10", " default 0x20", " default 99", "", " default 1"))
    lines = [f"tc qdisc add dev {device} root handle 1: htb{default}"]
    inner = chance.random() < 0.5
    if inner:
        lines.append(f"tc class add dev {device} parent 1: classid 1:1 htb rate {chance.choice(('100mbit', '20mbit'))}")
    ceilings = ("", "", " ceil 25mbit") if not chance.careful or inner else ("",)
    minors = ("10", "20", "30")[: chance.randint(1, 3)]
    for minor in minors:
        rate = chance.choice(RATES)
        ceil = chance.choice((*ceilings, f" ceil {rate}"))
        parent = chance.choice(("1:1" if inner else "1:", "1:", "1:1", "1:77"))
        identity = chance.one(
            (f"1:{minor}", f"1:{minor}", minor, f":{minor}"), (f"2:{minor}", f"1:{minor} htb rate 2mbit")
        )
        identity = identity if "htb" in identity else f"{identity} htb"
        lines.append(f"tc class add dev {device} parent {parent} classid {identity} rate {rate}{ceil}")
        if chance.random() < 0.5:
            below = chance.choice((netem(chance), netem(chance), queue(chance)))
            lines.append(f"tc qdisc add dev {device} parent 1:{minor} handle {minor}: {below}")
    if not chance.careful and chance.random() < 0.2:
        lines.append(f"tc class add dev {device} parent 1:10 classid 1:11 htb rate 1mbit")
    addresses = chance.sample(ADDRESSES, len(ADDRESSES))
    for address, minor in zip(addresses[: chance.randint(0, 3)], chance.sample(minors, len(minors)), strict=False):
        lines += chosen(chance, device, address, f"1:{chance.one((minor,), (*minors, '1', '55'))}")
    return lines


def prio(chance: Writer, device: str) -> list[str]:
    options = chance.one(("", "", " bands 4", " priomap 0 1 1 1", " bands 2 priomap 0 0 0 0 1 1 1 1" + 8 * " 0"),
                         (" bands 2", " priomap 3", " bands 17"))  # fmt: skip
    lines = [f"tc qdisc add dev {device} root handle 1: prio{options}"]
    bands = range(1, chance.randint(2, 4))
    for band in bands:
        lines.append(f"tc qdisc add dev {device} parent 1:{band} handle {band}0: {chance.choice((netem, tbf))(chance)}")
    for band, address in zip(bands, chance.sample(ADDRESSES, 3), strict=False):
        lines += chosen(chance, device, address, f"1:{chance.one((str(band),), ('2', '4'))}")
    return lines


def chosen(chance: Writer, device: str, address: str, flow: str) -> list[str]:
    """Lines by which packets to an address get to a class."""
    order = chance.choice((" prio 1", " prio 2", "", " pref 5"))
    begin = f"tc filter add dev {device} parent 1:"
    match chance.randrange(7):
        case 0:
            return [f"iptables -t mangle -A POSTROUTING -d {address} -j CLASSIFY --set-class {flow}"]
        case 1:
            mark = chance.randint(1, 9)
            rule = f"iptables -t mangle -A OUTPUT -o eth0 -d {address} -j MARK --set-mark {mark}"
            return [rule, f"{begin} protocol ip{order} handle {mark} fw flowid {flow}"]
        case 2:
            return [f"{begin} protocol ip{order} flower dst_ip {address} classid {flow}"]
        case 3:
            return [f"{begin}{order} matchall flowid {flow}"] * (chance.random() < 0.3)
        case 4 if chance.random() < 0.3:
            return [f"{begin} protocol ip{order} u32 match ip dport 80 0xffff flowid {flow}"]
        case _:
            return [f"{begin} protocol ip{order} u32 match ip dst {address} flowid {flow}"]


def police(chance: Writer) -> str:
    end = chance.one(("conform-exceed drop", "drop", "conform-exceed drop/pipe"), ("", "pass"))
    burst = chance.one(("32k", "10kb", "20000"), ("1000",))
    return f"action police rate {chance.choice(RATES)} burst {burst} {end}".strip()


def policers(chance: Writer, device: str) -> list[str]:
    kind = chance.choice(("clsact", "clsact", "ingress", "handle ffff: ingress"))
    places = ("ingress", "egress", "parent ffff:fff2") if kind == "clsact" else ("ingress", "parent ffff:")
    lines = [f"tc qdisc add dev {device} {kind}"]
    for _ in range(1 if chance.careful else chance.randint(1, 2)):
        where = chance.one(places, ("egress", "parent ffff:"))
        match = chance.one(
            (
                "matchall",
                "protocol ip flower",
                "protocol ip u32 match u32 0 0",
                "protocol ip u32 match ip src 0.0.0.0/0",
            ),
            ("protocol ip flower dst_ip 10.0.0.2",),
        )
        lines.append(f"tc filter add dev {device} {where} {match} {police(chance)}")
    return lines


def incoming(chance: Writer, device: str) -> list[str]:
    kind, parent = chance.choice((("ingress", "parent ffff:"), ("clsact", "ingress"), ("ingress", "ingress")))
    redirect = "action mirred egress redirect dev ifb0"
    match = chance.one(("protocol ip u32 match u32 0 0", "matchall"), ("protocol all u32 match ip dst 10.0.0.2",))
    lines = [f"tc qdisc add dev {device} {kind}", f"tc filter add dev {device} {parent} {match} {redirect}"]
    lines += netem_and_tbf(chance, "ifb0")
    return lines + (netem_and_tbf(chance, device) if chance.random() < 0.5 else [])


def changes(chance: Writer, device: str) -> list[str]:
    lines = netem_and_tbf(chance, device)
    for _ in range(chance.randint(1, 2)):
        verb = chance.choice(("change", "replace", "replace", "del", "add"))
        place = chance.choice(("root", "root handle 1:", "parent 1:1", "root handle 5:", "handle 1:", "handle 10:", ""))
        options = "" if verb == "del" else f" {chance.choice((netem, tbf, queue))(chance)}"
        lines.append(f"tc qdisc {verb} dev {device} {place}{options}".replace("  ", " ").strip())
    return lines


def damage(chance: Writer, lines: list[str]) -> None:
    """One line twice, away, or elsewhere."""
    at = chance.randrange(len(lines))
    match chance.randrange(3):
        case 0:
            lines.insert(at, lines[at])
        case 1 if len(lines) > 1:
            del lines[at]
        case _:
            lines.insert(chance.randrange(len(lines)), lines.pop(at))
