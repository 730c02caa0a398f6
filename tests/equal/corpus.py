"""The input of a comparison: 300 descriptions, descriptions and scenarios that are refused, scenarios, scripts.

All of it is drawn from fixed seeds, and written to a folder once, so that all checkouts read the same files.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.equal.scenarios import COMMANDS, REFUSED, SCENARIOS
from tests.torture.graphs import draw
from tests.torture.shaping_scripts import script

ROOT = Path(__file__).parents[2]
LINKS = 270
GRAPHS = 50
SCRIPTS = 60

TEMPLATES = [
    ["dumbbell"],
    ["dumbbell", "--rtt", "100ms", "--rate", "10G"],
    ["dumbbell", "--pairs", "4", "--rtt", "10ms,20ms,40ms,80ms", "--rate", "100M", "--buffer", "255pkt"],
    ["dumbbell", "--pairs", "3", "--reverse-pairs", "2", "--loss", "0.1%", "--ip", "6"],
    ["dumbbell", "--pairs", "3", "--switch", "ovs", "--mtu", "9000"],
    ["dumbbell", "--emulator", "kernel", "--rate", "50M"],
    ["dumbbell", "--emulator", "tbf", "--rate", "50M", "--buffer", "20ms"],
    ["dumbbell", "--dither", "0", "--seed", "77"],
    ["dumbbell", "--dither", "10us", "--ip", "dual", "--routing", "ospf"],
    ["parking-lot"],
    ["parking-lot", "--hops", "5", "--cross-pairs", "2", "--rtt", "60ms", "--rate", "100M"],
    ["star", "--arms", "9", "--rtt", "18.7ms"],
    ["chain", "--hops", "7", "--mtu", "1280"],
    ["ring", "--routers", "6", "--routing", "ospf"],
    ["ring", "--routers", "5", "--routing", "isis"],
    ["mesh", "--routers", "4", "--routing", "bgp"],
    ["fishbone", "--ribs", "5"],
    ["four-domain", "--hosts", "3"],
    ["grid", "--rows", "3", "--columns", "4", "--loss", "1ppm"],
]

# For each key of a link: some of what may be written. One of them stands in a random description with some others.
KEYS: dict[str, list[str]] = {
    "rate": ["10Mbit/s", "1G", "155.52Mbit/s", "8kbit/s", "40Gbps", "2488320kbit/s"],
    "buffer": ["1BDP", "0.5BDP", "255pkt", "500kB", "100ms", "1MiB"],
    "queue": [
        "codel",
        "pie",
        "red",
        "fq-codel",
        "codel 7ms",
        "dualpi2 20ms",
        "{red: {min: 20kB, max: 60kB, max_p: 5%, weight: 8, ecn: true}}",
        "{codel: {target: 8ms, interval: 120ms, ecn: true}}",
        "{pie: {target: 20ms, update: 30ms, alpha: 0.25Hz, beta: 2.5Hz}}",
        "{step: {at: 65pkt}}",
        "{step: {at: 1ms}}",
        "{fq-codel: {flows: 64, quantum: 300B, ecn: false}}",
        "{drr: {flows: 16}}",
        "{sfq: {flows: 128, perturb: 10s}}",
        "{dualpi2: {coupling: 3, step: 2ms, classic: 20%}}",
        "{priority: {classes: [{name: voice, dscp: [ef, cs5], buffer: 50pkt}, {name: rest}]}}",
        "{weighted: {classes: [{name: gold, dscp: [af41], weight: 3}, {name: rest, weight: 2, buffer: 30pkt}]}}",
    ],
    "framing": ["wire", "ethernet", "header", "ip"],
    "loss": [
        "0.1%",
        "7ppm",
        "{bit-errors: 100ppb}",
        "{gilbert-elliott: {to_bad: 0.5%, to_good: 20%, loss_bad: 90%, loss_good: 1ppm}}",
        "{markov: {p13: 1%, p31: 20%, p32: 5%, p23: 30%, p14: 0.1%}}",
        "{every: 100}",
        '{pattern: "0001"}',
    ],
    "corrupt": ["0.1%"],
    "duplicate": ["50ppm"],
    "delay": ["50ms", "1.5ms", "7us"],
    "jitter": ["1ms", "300us"],
    "distribution": ["uniform", "normal", "pareto"],
    "correlation": ["90%"],
    "reorder": ["true", "false"],
    "displace": ["{share: 1%, packets: 3}", "{share: 2%, packets: 5, within: 30ms}", "none"],
    "ecn": ["bleach", "keep"],
    "blackhole": ["1400B", "none"],
    "police": ["{rate: 10Mbit/s, burst: 32kB}", "none"],
    "burst": ["32kB", "none"],
    "peak": ["100Gbit/s"],
    "aggregate": ["{packets: 64, time: 4ms, gap: 150us}", "{packets: 8}", "none"],
    "duplex": ["half", "full"],
    "slot": ["1ms", "none"],
    "harq": ["{errors: 10%, round: 8ms}", "{errors: 1%, round: 4ms, rounds: 2}", "none"],
    "acks": ["filter", "keep"],
    "mtu": ["1400"],
}
BOTH_WAYS = {"mtu", "duplex"}
"""Keys that hold for both directions of a link, and do not stand in one."""


BESIDE = {
    "jitter": {"delay": "20ms"},
    "distribution": {"delay": "20ms", "jitter": "1ms"},
    "correlation": {"delay": "20ms", "jitter": "1ms", "distribution": "normal"},
    "reorder": {"delay": "20ms", "jitter": "1ms"},
    "peak": {"burst": "32kB"},
}
"""Keys that stand beside others only, with those."""


def settings(random_: random.Random, *, direction: bool = False) -> dict[str, str]:
    keys = [key for key in KEYS if not (direction and key in BOTH_WAYS)]
    found: dict[str, str] = {}
    for key in random_.sample(keys, random_.randint(1, 5)):
        found |= {key: random_.choice(KEYS[key])} | BESIDE.get(key, {})
    return found


def written(group: dict[str, str]) -> str:
    return f"{{{', '.join(f'{key}: {value}' for key, value in group.items())}}}"


def link_description(random_: random.Random) -> str:
    """A small lab, a link of which has some random settings, in one or both directions, everywhere or by its name."""
    lines = [f"topology: {{dumbbell: {{pairs: {random_.randint(1, 3)}}}}}"]
    if random_.random() < 0.2:
        lines.append(f"emulator: {random_.choice(['user', 'kernel', 'tbf'])}")
    if random_.random() < 0.3:
        lines.append(f"ip: {random_.choice(['4', '6', 'dual'])}")
    own = settings(random_)
    if random_.random() < 0.5:
        way = settings(random_, direction=True)
        own |= {"delay": way["delay"]} if "delay" in way else {}
        own[random_.choice(["forward", "backward"])] = written(way)
    place = random_.choice(["wan", "links", "access"])
    if place == "links":
        wan = {key: value for key, value in settings(random_).items() if key not in own and key not in BESIDE}
        lines += [f"links: {{core: {written(own)}}}", f"wan: {written(wan)}"]
    else:
        wan = own
        lines.append(f"{place}: {written(own)}")
    if "delay" not in own and "delay" not in wan:
        lines.append(f"rtt: {random_.choice([1, 20, 100])}ms")
    return "\n".join(lines) + "\n"


def descriptions() -> Iterator[tuple[str, str]]:
    random_ = random.Random(46)
    for number in range(LINKS):
        yield f"link{number:03}", link_description(random_)
    for number in range(GRAPHS):
        yield f"graph{number:03}", draw(random.Random(number)).text


def write(folder: Path) -> None:
    """The corpus, as files and one list of commands, in a folder that does not exist."""
    folder.mkdir(parents=True)
    compiles: list[list[str]] = []
    for number, words in enumerate(TEMPLATES):
        for runtime in ("virtual", "netns", "containerlab"):
            compiles.append([*words, "--runtime", runtime, "--name", f"t{number}{runtime[0]}"])
    (folder / "labs").mkdir()
    for name, text in descriptions():
        file = folder / "labs" / f"{name}.lab.yaml"
        file.write_text(text)
        compiles.append([f"labs/{file.name}", "--runtime", "virtual" if len(compiles) % 3 else "netns"])
    library = ROOT / "labs" / "library"
    for file in sorted(library.glob("*.lab.yaml")):
        compiles += [[file.name.removesuffix(".lab.yaml"), "--runtime", runtime] for runtime in ("virtual", "netns")]
    golden = ROOT / "tests" / "golden"
    for file in sorted([*golden.glob("*.lab.yaml"), *golden.glob("stages.*s.txt"), *golden.glob("stages.trace.*")]):
        shutil.copy(file, folder / "labs" / file.name)
        if file.name.endswith(".lab.yaml"):
            compiles += [[f"labs/{file.name}", "--runtime", runtime] for runtime in ("virtual", "netns")]
    for name, text in {**SCENARIOS, **REFUSED}.items():
        (folder / f"{name}.scenario.yaml").write_text(text)
    (folder / "scripts").mkdir()
    for number in range(SCRIPTS):
        (folder / "scripts" / f"{number:02}.sh").write_text(script(f"equal {number}"))
    shutil.copy(library / "transfers.yaml", folder)
    (folder / "commands.json").write_text(json.dumps({"compile": compiles, "then": COMMANDS}, indent=1))
