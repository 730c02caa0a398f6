"""A script of tc and iptables and the lab that is imported of it agree on the network, or the import refuses or warns.

A trial makes scripts and runs each in a network namespace of the virtual kernel; rules of iptables, whose targets that
kernel lacks, are made in a namespace of this machine's. What the kernels then show is walked for each destination and
compared with the description. Pasting what `tc qdisc show` and `tc class show` print is compared too.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from ewan.extras.importers.conversion import ImportedLab, imported
from ewan.extras.importers.findings import ImportingError
from ewan.labs.base.units import Duration, Fraction, Rate, Size
from ewan.labs.base.units.tools import tc_percent, tc_rate, tc_size, tc_time
from tests.torture.commands import run
from tests.torture.shaping_scripts import script

TIER = "virtual"
QUICK = 1
LONG = 15
SCRIPTS = 20
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
DEVICES = ("eth0", "eth1", "ifb0")
DESTINATIONS = ("10.0.0.2", "10.0.0.3", "10.0.1.7", "192.0.2.99")
_LABEL = re.compile(r" *(?:forward|backward): +# (what .*)")
_PART = re.compile(r"^=== (\S+)$", re.MULTILINE)

SHIM = """#!/bin/sh
{} "$@"
status=$?
echo "$status {} $*" >&3
exit $status
"""
"""Says with which status a command ended."""
DRIVER = r"""
for script in *.sh; do
    unshare $UNSHARE sh -c '
        ip link add eth0 type veth peer name eth1
        ip link add ifb0 type ifb
        for device in eth0 eth1 ifb0; do ip link set $device up; done
        echo "=== $1/log"
        PATH=$PWD/shims:$PATH sh $1 3>&1 >/dev/null 2>&1
        for device in eth0 eth1 ifb0; do
            shown=$(tc qdisc show dev $device)
            printf "=== $1/qdisc/$device\n%s\n" "$shown"
            case $shown in *htb*|*prio*)
                echo "=== $1/class/$device"; tc class show dev $device
                echo "=== $1/filter/$device"; tc filter show dev $device
            esac
            case $shown in *ffff:*)
                echo "=== $1/egress/$device"; tc filter show dev $device egress
                echo "=== $1/ingress/$device"; tc filter show dev $device ingress
            esac
        done 2>/dev/null
        echo "=== $1/rules"; iptables-save 2>/dev/null
    ' - "$script"
done
"""


@dataclass(slots=True)
class State:
    """What a kernel shows: `shown` by what and device; `refused`: commands that failed, as they were called."""

    shown: dict[str, str] = field(default_factory=lambda: defaultdict(str))
    refused: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Passed:
    """What a packet meets on its way out of a device; rates in bit/s, times in ns, shares in parts per billion."""

    delay: int = 0
    jitter: int = 0
    shares: dict[str, int] = field(default_factory=dict)
    least: int | None = None
    most: int | None = None
    policed: tuple[int, int] | None = None


def trial(seed: int, place: Path) -> None:
    tally = Counter[str]()
    texts = {f"{seed:03}-{number:03}": script(f"{seed}/{number}") for number in range(SCRIPTS)}
    virtual, here = kernels(texts, place)
    wrong: list[str] = []
    for name, text in texts.items():
        state = virtual[name]
        rules = here.get(name, State())
        state.shown["rules"] = rules.shown["rules"]
        state.refused += [line for line in rules.refused if line.startswith("iptables")]
        try:
            tally[judged(text, state)] += 1
            shown = pasted(state)
            of_one = State()
            of_one.shown |= {what: told for what, told in state.shown.items() if "eth0" in what}
            tally["pasted: " + judged(shown, of_one)] += 1
        except AssertionError as error:
            wrong.append(f"{name}: {error}\n{text}")
    print(f"{seed}: {dict(tally)}")
    assert not wrong, f"{len(wrong)} of {SCRIPTS} scripts:\n" + "\n".join(wrong)


def kernels(texts: dict[str, str], place: Path) -> tuple[dict[str, State], dict[str, State]]:
    """What the virtual kernel and this machine's show after each script."""
    for where, iptables in (("virtual", "true"), ("here", "iptables-nft")):
        (place / where / "shims").mkdir(parents=True)
        for tool, called in (("tc", shutil.which("tc", path=PATH)), ("iptables", iptables)):
            shim = place / where / "shims" / tool
            shim.write_text(SHIM.format(called, tool))
            shim.chmod(0o755)
        (place / where / "driver").write_text(DRIVER)
        for name, text in texts.items():
            if where == "virtual" or "iptables" in text:
                (place / where / f"{name}.sh").write_text(text)
    inside = "cd {} && UNSHARE=-n sh driver"
    command = f"left1: sh -c {shlex.quote(inside.format(shlex.quote(str(place / 'virtual'))))}"
    status, said = run(place, "batch", "dumbbell", "--rtt", "0ms", "--runtime", "virtual", "--do", command)
    assert status == 0, said
    (told,) = place.glob("results/*/commands/1-left1.out")
    own = subprocess.run(
        ["sh", "driver"], cwd=place / "here", capture_output=True, text=True, timeout=300, check=True,
        env={"PATH": PATH, "UNSHARE": "-rn"},
    )  # fmt: skip
    return states(told.read_text()), states(own.stdout)


def states(told: str) -> dict[str, State]:
    """By the script's name."""
    found: dict[str, State] = {}
    _, *parts = _PART.split(told)
    for part, text in zip(parts[::2], parts[1::2], strict=True):
        name, _, what = part.partition(".sh/")
        state = found.setdefault(name, State())
        if what == "log":
            state.refused += [line.split(" ", 1)[1] for line in text.splitlines() if line[:2] not in ("", "0 ")]
        else:
            state.shown[what] = text.strip("\n")
    return found


def judged(text: str, state: State) -> str:
    """How the import ended; AssertionError where it is wrong and says nothing."""
    try:
        made = imported(text, "script.sh")
    except ImportingError as error:
        assert "\n" not in str(error), error
        return "refused"
    nothing_is_forgotten(text, made)
    warned = [int(warning.split(":")[1]) for warning in made.warnings]
    lines = text.splitlines()
    for called in state.refused:
        tool, *words = called.split()
        if not {"del", "delete"} & set(words):
            mine = [number for number, line in enumerate(lines, 1) if line.split()[:1] == [tool]
                    and line.replace("$DEV", "eth0").split()[1:] == words]  # fmt: skip
            assert not mine or set(mine) & set(warned), f"the kernel refused {called!r}, and the import says nothing"
    wrong = list(differences(directions(made.text), state))
    if not wrong:
        return "warned, agrees" if warned else "agrees"
    about = [line for line in warned if lines[line - 1].split()[0] in ("tc", "iptables", "qdisc", "class", "filter")]
    assert about, f"differs in silence: {'; '.join(wrong)}\n{made.text}"
    return "warned"


def nothing_is_forgotten(text: str, made: ImportedLab) -> None:
    """Each line that is not blank and no comment belongs to a command with a fate."""
    known = {line for command, fates in made.fates if fates for line in range(command.line, command.last_line + 1)}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.strip().startswith("#"):
            assert number in known, f"line {number} is forgotten: {line}"


def pasted(state: State) -> str:
    """What a person copies from a terminal."""
    return "\n".join(state.shown[f"{what}/eth0"] for what in ("qdisc", "class")) + "\n"


def directions(description: str) -> dict[str, dict[str, object]]:
    """By the comment that says which packets go there: the settings."""
    found: dict[str, dict[str, object]] = {}
    lines: list[str] = []
    label = ""
    for line in [*description.splitlines(), "end"]:
        heads = _LABEL.fullmatch(line)
        if label and (heads or len(line) - len(line.lstrip()) < 6 or line.lstrip().startswith(("backward:", "- "))):
            found[label] = yaml.safe_load("\n".join(lines)) or {}
            label = ""
        if heads:
            label, lines = heads[1], []
        elif label:
            lines.append(line.strip())
    return found


def differences(lab: dict[str, dict[str, object]], state: State) -> Iterator[str]:
    """What the lab says otherwise than the kernel shows."""
    devices = {re.sub("^what (leaves|comes in by) ", "", label).split(" ")[0] for label in lab}
    for device in DEVICES:
        name = "card" if devices == {"card"} and device == "eth0" else device
        for to in DESTINATIONS:
            out = walked(device, to, state)
            if "qdisc clsact" in state.shown[f"qdisc/{device}"]:
                out.policed = next(iter(policers(state.shown[f"egress/{device}"])), None)
            source = redirecting(device, state)
            settings = leaving(name, to, lab) if source is None else lab.get(f"what comes in by {source}", {})
            yield from compared(f"{device} to {to}", out, settings)
        incoming = policers(state.shown[f"ingress/{device}"])
        if incoming:
            settings = lab.get(f"what comes in by {name}", {})
            yield from compared(f"into {device}", Passed(policed=incoming[0]), settings)


def leaving(device: str, to: str, lab: dict[str, dict[str, object]]) -> dict[str, object]:
    """Of the direction by which packets to an address leave."""
    if (label := f"what leaves {device}") in lab:
        return lab[label]
    begin = f"what leaves {device} to "
    networks = [ipaddress.ip_network(label[len(begin) :]) for label in lab if label.startswith(begin)
                and not label.endswith(" rest")]  # fmt: skip
    mine = sorted((each for each in networks if ipaddress.ip_address(to) in each), key=lambda each: -each.prefixlen)
    if not mine:
        return lab.get(f"{begin}rest", {})
    labels = (f"{begin}{mine[0]}", f"{begin}{mine[0].network_address}")
    return next(lab[label] for label in labels if label in lab)


def compared(where: str, out: Passed, lab: dict[str, object]) -> Iterator[str]:
    def other(key: str, kernel: object, said: object) -> str:
        return f"{where}: {key} is {kernel} in the kernel and {said} in the lab"

    delay, jitter = (Duration.parse(str(lab.get(key, "0ms"))).ns for key in ("delay", "jitter"))
    if abs(delay - out.delay) > max(1000, out.delay // 1000):
        yield other("delay", out.delay, delay)
    if abs(jitter - out.jitter) > max(1000, out.jitter // 1000):
        yield other("jitter", out.jitter, jitter)
    for key in ("loss", "corrupt", "duplicate"):
        said = Fraction.parse(str(lab[key])).ppb if key in lab else 0
        if abs(said - out.shares.get(key, 0)) > 10_000:
            yield other(key, out.shares.get(key, 0), said)
    rate = Rate.parse(str(lab.get("rate", "1Gbit/s"))).bps
    if out.least is None or out.most is None:
        if rate != 10**9:
            yield other("rate", "none", rate)
    elif not out.least <= rate <= out.most:
        yield other("rate", (out.least, out.most), rate)
    police = lab.get("police")
    policed = (Rate.parse(police["rate"]).bps, Size.parse(police["burst"]).bytes) if isinstance(police, dict) else None
    if not same_police(policed, out.policed):
        yield other("police", out.policed, policed)


def same_police(said: tuple[int, int] | None, kernel: tuple[int, int] | None) -> bool:
    """The kernel keeps a bucket as a time in ticks of 64 ns, so that it shows a byte less."""
    if said is None or kernel is None:
        return said == kernel
    return said[0] == kernel[0] and abs(said[1] - kernel[1]) <= 2


def walked(device: str, to: str, state: State) -> Passed:
    """What a packet to an address meets below the root."""
    out = Passed()
    parents = {parent: (kind, handle, options) for kind, handle, parent, options in qdiscs(state, device)}
    at: str | None = "root"
    while at in parents:
        kind, handle, options = parents[at]
        at = None
        if kind == "netem":
            netem(options, out)
            at = next((parent for parent in parents if parent.startswith(handle)), None)
        elif kind == "tbf":
            limited(tc_rate(value(options, "rate")).bps, None, out)
            at = next((parent for parent in parents if parent.startswith(handle)), None)
        elif kind == "htb":
            default = f"{handle}{int(value(options, 'default'), 0):x}" if "default" in options else "0"
            classes = dict(htb_classes(state, device))
            leaves = set(classes) - {parent for parent, _, _ in classes.values()}
            # A filter to a class that is missing or has others below it: sch_htb takes the default one.
            at = next((each for each in (sent(device, handle, to, state, classes), default) if each in leaves), None)
            if at is not None:
                parent, least, most = classes[at]
                limited(least, most if parent else least, out)
        elif kind == "prio":
            ordinary = int(value(options, "priomap")) + 1
            at = sent(device, handle, to, state, None) or f"{handle}{ordinary}"
    return out


def limited(least: int, most: int | None, out: Passed) -> None:
    out.least = min(least, out.least or least)
    out.most = min(most or least, out.most or most or least)


def netem(options: list[str], out: Passed) -> None:
    if "delay" in options:
        at = options.index("delay")
        out.delay += tc_time(options[at + 1]).ns
        if options[at + 2 : at + 3] and options[at + 2][0].isdigit():
            out.jitter += tc_time(options[at + 2]).ns
    for key in ("loss", "corrupt", "duplicate"):
        if key in options:
            out.shares[key] = tc_percent(value(options, key)).ppb
    if "rate" in options:
        limited(tc_rate(value(options, "rate")).bps, None, out)


def value(options: list[str], key: str) -> str:
    return options[options.index(key) + 1]


def qdiscs(state: State, device: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """Kind, handle, parent, options."""
    for line in state.shown[f"qdisc/{device}"].splitlines():
        words = line.split()
        if words[2] != "0:" and words[1] not in ("ingress", "clsact"):
            yield words[1], words[2], "root" if words[3] == "root" else words[4], words[4:]


def htb_classes(state: State, device: str) -> Iterator[tuple[str, tuple[str | None, int, int]]]:
    """The class → its parent, rate and ceil."""
    for line in state.shown[f"class/{device}"].splitlines():
        words = line.split()
        if words[1] == "htb":
            parent = value(words, "parent") if "parent" in words else None
            yield words[2], (parent, tc_rate(value(words, "rate")).bps, tc_rate(value(words, "ceil")).bps)


def sent(
    device: str, handle: str, to: str, state: State, classes: dict[str, tuple[str | None, int, int]] | None
) -> str | None:
    """The class or band to which iptables or a filter sends packets to an address."""
    mark, flow = ruled(device, to, state)
    if flow is not None and flow.startswith(handle) and (classes is None or flow in classes):
        return flow
    lines = state.shown[f"filter/{device}"].splitlines()
    for at, line in enumerate(lines):
        words = line.replace("*flowid", "flowid").split()
        flowid = next((value(words, key) for key in ("flowid", "classid") if key in words), None)
        if not line.startswith(f"filter parent {handle} ") or flowid is None:
            continue
        if " fw " in line:
            taken = mark == int(value(words, "handle"), 0)
        else:
            rest = lines[at + 1 : next((n for n, each in enumerate(lines) if n > at and each[:6] == "filter"), None)]
            taken = all(matches(each.split(), to) for each in rest)
        if taken:
            return flowid
    return None


def matches(words: list[str], to: str) -> bool:
    """`match 0a000002/ffffffff at 16` of u32, `dst_ip 10.0.0.2` of flower."""
    if words[:1] == ["dst_ip"]:
        return ipaddress.ip_address(to) in ipaddress.ip_network(words[1])
    if words[:1] == ["match"]:
        wanted, mask = (int(each, 16) for each in words[1].split("/"))
        return words[3] != "16" or int(ipaddress.ip_address(to)) & mask == wanted
    return True


def ruled(device: str, to: str, state: State) -> tuple[int, str | None]:
    """The mark and the class that iptables gives."""
    mark, flow = 0, None
    for line in state.shown["rules"].splitlines():
        words = line.split()
        if words[:1] != ["-A"] or ("-o" in words and value(words, "-o") != device):
            continue
        if "-d" in words and ipaddress.ip_address(to) not in ipaddress.ip_network(value(words, "-d")):
            continue
        if "--set-xmark" in words:
            mark = int(value(words, "--set-xmark").split("/")[0], 0)
        if "--set-class" in words:
            major, minor = (int(part, 16) for part in value(words, "--set-class").split(":"))
            flow = f"{major:x}:{minor:x}"
    return mark, flow


def policers(shown: str) -> list[tuple[int, int]]:
    """Rate and burst of the policers that drop, in the order in which they are asked."""
    found = re.findall(r"police 0x\w+ rate (\w+) burst (\w+) .*action drop", shown)
    return [(tc_rate(rate).bps, tc_size(burst).bytes) for rate, burst in found]


def redirecting(device: str, state: State) -> str | None:
    """The device whose incoming packets leave by this one."""
    for source in DEVICES:
        if f"Egress Redirect to device {device})" in state.shown[f"ingress/{source}"]:
            return source
    return None
