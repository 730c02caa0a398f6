"""Commands that run other commands: `sudo`, `docker exec`, `ssh`, `sh -c`, `tc -batch -`, with their options. Pure.

Comes in: words. Goes out: the words of the command that is run, and where; or the script that a shell reads.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Launch:
    """The command or script that a command runs. `place`: the namespace, container or machine, None for the same one.

    Either `words` or a script is there; a script is `text`, or the standard input if that is None. `here`: the shell
    that reads it is the script's own. `batch`: it is lines of tc."""

    place: str | None = None
    words: list[str] | None = None
    text: str | None = None
    here: bool = False
    batch: bool = False


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """`valued`: options with a value of their own; `skipped`: words before the command. The place is the value of the
    option `place`, or the first word behind the options if that is "*"."""

    valued: tuple[str, ...] = ()
    skipped: int = 0
    place: str = ""


_OF_CONTAINERS = _Wrapper(("-u", "--user", "-e", "--env", "-w", "--workdir", "--index", "--env-file"), place="*")
_WRAPPERS = {
    "sudo": _Wrapper(("-u", "-g", "-h", "-p", "-D", "-R", "-T", "-U", "-C", "-r", "-t")),
    "doas": _Wrapper(("-u", "-C")),
    "exec": _Wrapper(("-a",)),
    "time": _Wrapper(("-f", "-o")),
    "env": _Wrapper(("-u", "-C")),
    "nice": _Wrapper(("-n",)),
    "ionice": _Wrapper(("-c", "-n")),
    "timeout": _Wrapper(("-s", "-k"), skipped=1),
    "stdbuf": _Wrapper(("-i", "-o", "-e")),
    "taskset": _Wrapper(skipped=1),
    "chrt": _Wrapper(skipped=1),
    "flock": _Wrapper(("-w",), skipped=1),
    **{name: _Wrapper() for name in ("command", "builtin", "nohup", "setsid", "unbuffer", "busybox", "export", "local",
                                     "readonly")},
    "docker exec": _OF_CONTAINERS,
    "docker container exec": _OF_CONTAINERS,
    "docker compose exec": _OF_CONTAINERS,
    "docker-compose exec": _OF_CONTAINERS,
    "podman exec": _OF_CONTAINERS,
    "nerdctl exec": _OF_CONTAINERS,
    "kubectl exec": _Wrapper(("-n", "--namespace", "-c", "--container", "--context"), place="*"),
    "lxc exec": _Wrapper(("--user", "--env", "--cwd"), place="*"),
    "lxc-attach": _Wrapper(("-n", "--name", "-P"), place="-n"),
    "ip netns exec": _Wrapper(place="*"),
    "nsenter": _Wrapper(("-t", "--target"), place="-t"),
    "himage": _Wrapper(place="*"),
    "chroot": _Wrapper(("--userspec", "--groups"), skipped=1),
}  # fmt: skip
_LONG = {"--name": "-n", "--namespace": "-n", "--target": "-t"}
_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh")
_OF_SSH = tuple(f"-{letter}" for letter in "bcDEeFIiJLlmOopQRSWw")
_OF_TC = ("qdisc", "class", "filter")


def launched(words: list[str]) -> Launch | None:
    """The command or script that `words` run; None for a command that runs no other, or an unknown one."""
    name = words[0].rsplit("/", 1)[-1]
    if name == "eval":
        return Launch(text=" ".join(words[1:]), here=True)
    if name in _SHELLS:
        return _shell(words[1:])
    if name in ("su", "runuser"):
        at = words.index("-c") + 1 if "-c" in words[:-1] else 0
        return Launch(text=words[at] if at else None)
    if name == "ssh":
        return _ssh(words[1:])
    if name == "kubectl" and "exec" in words:
        at = words.index("exec")
        words = [name, "exec", *words[1:at], *words[at + 1 :]]
    if name == "tc":
        return _batch(words[1:])
    for count in (3, 2, 1):
        if wrapper := _WRAPPERS.get(" ".join((name, *words[1:count]))):
            return _wrapped(wrapper, words[count:], name)
    return None


def _options(words: list[str], valued: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """The options with their values, and the words behind them."""
    found: dict[str, str] = {}
    left = list(words)
    while left and left[0].startswith("-") and left[0] != "-":
        option = left.pop(0)
        if option == "--":
            break
        key, _, value = option.partition("=")
        if option in valued and left:
            value = left.pop(0)
        found[_LONG.get(key, key)] = value
    return found, left


def _wrapped(wrapper: _Wrapper, words: list[str], name: str) -> Launch | None:
    behind: list[str] | None = None
    if name == "kubectl" and "--" in words:
        behind, words = words[words.index("--") + 1 :], words[: words.index("--")]
    options, left = _options(words, wrapper.valued)
    place = options.get(wrapper.place)
    if wrapper.place == "*" and left:
        place = left.pop(0)
        if name == "kubectl" and "-n" in options:
            place = f"{options['-n']}/{place}"
        left = left[1:] if left[:1] == ["--"] else left
    if behind is not None:
        left = [*_options(left, wrapper.valued)[1], *behind]
    if name == "nsenter":
        place = place or options.get("--net")
    left = left[wrapper.skipped :]
    if name == "sudo" and not left and any(option[1:2] in ("s", "i") for option in options):
        return Launch()
    return Launch(place, left) if left else None


def _shell(words: list[str]) -> Launch | None:
    left = list(words)
    while left and left[0][:1] in ("-", "+") and left[0] != "-":
        option = left.pop(0)
        if option.startswith("--"):
            continue
        if "c" in option:
            return Launch(text=left[0]) if left else None
        if "s" in option:
            return Launch()
        if option.endswith(("o", "O")) and left:
            left.pop(0)
    return Launch() if left in ([], ["-"]) else None


def _ssh(words: list[str]) -> Launch | None:
    _, left = _options(words, _OF_SSH)
    if not left:
        return None
    place, *left = left
    _, left = _options(left, _OF_SSH)
    return Launch(place.rpartition("@")[2], text=" ".join(left) if left else None)


def _batch(words: list[str]) -> Launch | None:
    """The lines that `tc -batch -` reads; a command that names a file stays a command of tc."""
    for at, word in enumerate(words):
        if word in _OF_TC:
            break
        if len(word) > 1 and "-batch".startswith(word):
            return Launch(batch=True) if words[at + 1 : at + 2] in (["-"], ["/dev/stdin"]) else None
    return None
