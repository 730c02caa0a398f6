#!/usr/bin/env python3
"""Programs of a FreeBSD box, as far as a test needs them: ipfw(8) with its pipes, sysctl, ifconfig, uname.

In: the words of one command, by the name that it was called by. Out: what the manual and the printing of the real ones
say. What was set is in the JSON file that BOX_STATE names. It shares no code with the driver.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # a test starts some hundred of these programs: nothing is imported that is not needed
    from typing import Any, NoReturn

SLOT_LIMIT = "net.inet.ip.dummynet.pipe_slot_limit"
BYTE_LIMIT = "net.inet.ip.dummynet.pipe_byte_limit"
NEW: dict[str, Any] = {
    "pipes": {},
    "rules": [],
    "members": ["em1", "em2"],
    "system": "FreeBSD 14.1-RELEASE",
    "sysctl": {"net.link.bridge.ipfw": 1, "kern.hz": 1000, SLOT_LIMIT: 100, BYTE_LIMIT: 1024 * 1024},
}
EX_USAGE, EX_DATAERR, EX_UNAVAILABLE = 64, 65, 69
RAND_MAX = 0x7FFFFFFF


def fail(status: int, why: str) -> NoReturn:
    sys.stderr.write(f"ipfw: {why}\n")
    raise SystemExit(status)


def leading(text: str) -> tuple[int, str]:
    """The number at the beginning of a text, as strtoul reads it, and the rest."""
    rest = text.lstrip("0123456789")
    return int(text[: len(text) - len(rest)] or 0), rest


def bandwidth(text: str) -> int:
    value, rest = leading(text)
    if rest[:1] in ("K", "k", "M", "m", "G", "g"):
        value *= {"k": 10**3, "m": 10**6, "g": 10**9}[rest[0].lower()]
        rest = rest[1:]
    return value * (8 if rest[:1] == "B" and not rest.startswith("Bi") else 1)


def configure(state: dict[str, Any], number: str, words: list[str]) -> None:
    """Sets a pipe by `pipe N config`: absent options have their defaults."""
    pipe: dict[str, Any] = {"bw": 0, "delay": 0, "size": 0, "bytes": False, "plr": 0}
    while words:
        key = words.pop(0)
        if key == "droptail":
            continue
        if key not in ("bw", "delay", "queue", "plr"):
            fail(EX_DATAERR, f"unrecognised option ``{key}''")
        if not words:
            fail(EX_USAGE, f"{key} needs argument")
        value = words.pop(0)
        if key == "bw":
            pipe["bw"] = bandwidth(value)
        elif key == "delay":
            pipe["delay"] = leading(value)[0]
        elif key == "plr":
            pipe["plr"] = int(min(1.0, max(0.0, float(value))) * RAND_MAX)
        else:
            size, unit = leading(value)
            pipe["bytes"] = unit[:1] in ("K", "k", "B")
            pipe["size"] = size * (1024 if unit[:1] in ("K", "k") else 1)
    if pipe["delay"] > 10000:
        fail(EX_DATAERR, "delay must be < 10000")
    limit = state["sysctl"][BYTE_LIMIT if pipe["bytes"] else SLOT_LIMIT]
    if pipe["size"] > limit:
        fail(EX_DATAERR, f"queue size must be < {limit}B" if pipe["bytes"] else f"2 <= queue size <= {limit}")
    if not pipe["size"]:
        pipe.update(size=50, bytes=False)
    state["pipes"][str(int(number))] = pipe


def show(number: int, pipe: dict[str, Any]) -> None:
    """The three lines of a pipe without traffic."""
    rate = pipe["bw"]
    for least, unit in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "Kbit/s"), (1, "bit/s ")):
        if rate >= least:
            said = f"{rate / least:7.3f} {unit}"
            break
    else:
        said = "unlimited     "
    size = pipe["size"]
    in_bytes = f"{size // 1024} KB" if size >= 8192 else f"{size} B"
    queue = in_bytes if pipe["bytes"] else f"{size:3d} sl."
    lost = f"plr {pipe['plr'] / RAND_MAX:f}" if pipe["plr"] else ""
    print(f"{number:05d}: {said} {pipe['delay']:4d} ms burst 0 ")
    scheduler = number + 65536
    flows = f"0 flows (1 buckets) sched {scheduler} weight 0 lmax 0 pri 0 droptail"
    print(f"q{number + 131072:05d} {queue}{lost} {flows}")
    print(f" sched {scheduler} type FIFO flags 0x0 0 buckets 0 active")


def ipfw(state: dict[str, Any], words: list[str]) -> None:
    match words:
        case ["pipe", number, "config", *more] if number.isdecimal() and int(number) > 0:
            configure(state, number, more)
        case ["pipe", "show" | "list", *numbers]:
            chosen = sorted(int(each) for each in state["pipes"] if not numbers or each in numbers)
            for each in chosen:
                show(each, state["pipes"][str(each)])
        case ["add", number, "pipe", pipe, *match] if (
            number.isdecimal() and " ".join(match[:5]) == "ip from any to any"
        ):
            if "xmit" in match and "out" not in match:
                fail(EX_USAGE, "xmit needs out")
            state["rules"].append([int(number), f"pipe {pipe} {' '.join(match)}"])
            print(f"{int(number):05d} {state['rules'][-1][1]}")
        case ["list"]:
            for number, said in sorted(state["rules"], key=lambda each: int(each[0])):
                print(f"{number:05d} {said}")
            print("65535 allow ip from any to any")
        case _:
            fail(EX_USAGE, f"bad command `{' '.join(words)}'")


def main() -> None:
    with open(os.environ["BOX_STATE"]) as file:  # noqa: PTH123
        state = json.load(file)
    name, words = os.path.basename(sys.argv[0]), sys.argv[1:]  # noqa: PTH119
    match (name, words):
        case ("ipfw", _):
            ipfw(state, words)
            with open(os.environ["BOX_STATE"], "w") as file:  # noqa: PTH123
                json.dump(state, file)
        case ("uname", ["-sr"]):
            print(state["system"])
        case ("sysctl", ["-n", variable]) if variable in state["sysctl"]:
            print(state["sysctl"][variable])
        case ("sysctl", [_, variable]):
            sys.stderr.write(f"sysctl: unknown oid '{variable}'\n")
            raise SystemExit(1)
        case ("ifconfig", ["-g", "bridge"]):
            print("bridge0")
        case ("ifconfig", ["bridge0"]):
            print("bridge0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500")
            for member in state["members"]:
                print(f"\tmember: {member} flags=143<LEARNING,DISCOVER,AUTOEDGE,AUTOPTP>")
        case _:
            raise SystemExit(EX_UNAVAILABLE)


if __name__ == "__main__":
    main()
