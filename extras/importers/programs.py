"""The meaning of a script's other programs for the network: some do nothing to it, others take time. Pure.

Comes in: commands. Goes out: the commands that configure no network, and those that come between two states of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ewan.extras.importers.script import ScriptCommand

_SILENT = frozenset((
    "", "echo", "printf", "set", "true", "false", "exit", "return", "[", "[[", "test", ":", "cd", "shift", "which",
    "modprobe", "kldload", "insmod", "id", "((", "let", "declare", "typeset", "unset", "getopts", "exec", "export",
    "local", "readonly", "cat", "grep", "awk", "cut", "head", "tail", "tr", "sort", "wc", "date", "hostname", "uname",
    "basename", "dirname", "seq", "whoami",
))  # fmt: skip
"""Commands that configure no network, unless they write to a file."""
_CHANGING = frozenset(("add", "del", "delete", "set", "change", "replace", "up", "down", "-w", "-A", "-D", "-I", "-K"))
"""Words of commands that do not only print something."""
_PAUSES = ("sleep", "usleep", "wait", "read")
_MEASURING = frozenset((
    "ping", "ping6", "fping", "hping3", "iperf", "iperf3", "netperf", "nuttcp", "qperf", "sockperf", "flent", "irtt",
    "ITGSend", "curl", "wget", "ab", "wrk", "tcpdump", "tshark", "traceroute", "tracepath", "mtr", "nc", "ncat",
    "socat", "scp", "rsync",
))  # fmt: skip
_QUICK = frozenset((
    "ip", "ifconfig", "ethtool", "sysctl", "iptables", "ip6tables", "nft", "route", "brctl", "bridge", "ovs-vsctl",
    "arp", "nmcli", "systemctl", "service", "rmmod", "kill", "pkill", "killall", "rm", "mkdir", "cp", "mv", "touch",
    "chmod", "sed", "tee", "trap", "ulimit", "clear", "source", ".", "alias",
))  # fmt: skip
"""Commands that do something and take no time, so that nothing is measured by them."""


def are_silent(commands: Iterable[ScriptCommand]) -> Iterator[ScriptCommand]:
    """The commands that configure no network; a substitution is used for its output, unless it changes something."""
    for each in commands:
        asks = each.substituted and not _CHANGING & {*each.words}
        if (asks or each.name in _SILENT or each.name in _PAUSES) and not each.writes:
            yield each


def prints(command: ScriptCommand) -> bool:
    """Return whether a command only prints its words."""
    return command.name in _SILENT


def takes_away(command: ScriptCommand) -> bool:
    """Return whether a command of tc, iptables, ipfw or cnistnet removes an earlier setting."""
    return any(word.startswith("del") or word in ("flush", "-d", "-r") for word in command.words[:4])


def ends(end: ScriptCommand, command: ScriptCommand) -> bool:
    """Return whether a command never runs because its shell, or one that began it, has ended by `exit`."""
    return command.number > end.number and command.shells[: len(end.shells)] == end.shells


def before(
    command: ScriptCommand, done: Sequence[ScriptCommand], of: Sequence[tuple[ScriptCommand, bool]]
) -> ScriptCommand | None:
    """The first pause between a command and the first one that is done; an uncertain pause counts where a command
    changes an earlier setting. A pause in the background comes after all other commands of the script."""
    changes = takes_away(command) or any(word in ("change", "replace") for word in command.words[:4])
    for pause, certain in of:
        if pause.number > command.number:
            break
        waits = pause.background and command.background and pause.shells[:1] == command.shells[:1]
        follows = bool(done) and pause.number > done[0].number and not pause.background
        if (waits or follows) and (certain or changes):
            return pause
    return None


def pauses(of: Iterable[ScriptCommand]) -> Iterator[tuple[ScriptCommand, bool]]:
    """Commands that take time, so that something has seen the network as it was; False for those that perhaps do."""
    for each in of:
        if each.conditional or each.substituted:
            continue
        certain = each.name in _PAUSES or (each.name in _MEASURING and "-D" not in each.words)
        if certain or each.name not in _SILENT | _QUICK:
            yield each, certain
