"""The container engine of this machine, Docker or Podman, through its command line: both understand the same words.

In: `EWAN_ENGINE` (docker, podman) and `DOCKER_HOST`. Out: images, containers and networks as the engine tells of
them, and their removal by name; `LabError` with one line when no engine answers, or the engine refuses.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct, field
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.words import last_line

Kind = Literal["docker", "podman"]
KINDS: tuple[Kind, ...] = ("docker", "podman")
# An engine that is there answers in milliseconds; one that is busy starting a hundred containers, in seconds.
ANSWER_S = 30.0
REMOVAL_S = 180.0
LOCAL = "unix://"
# What the two say of a container, an image or a network that is not there.
_ABSENT = ("no such", "not found", "not known", "does not exist", "no container with")
_ENDED = ("exited", "dead", "stopped")
_FULL = "no space left on device"
_NOT_PERMITTED = "operation not permitted"
_DOWNLOAD = ("registry", "initializing source docker://")
_PACKAGE = {"docker": "docker.io", "podman": "podman"}
_START = {"docker": "start it (systemctl start docker)", "podman": "see `podman info`"}


class NoAnswerError(LabError):
    """The engine is not there, or not there any more."""


@dataclass(frozen=True, slots=True)
class Image:
    """`names`: with tags, as the engine writes them. The rest is what it runs, as whom, and where."""

    names: tuple[str, ...]
    labels: Mapping[str, str]
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    user: str = ""
    directory: str = ""

    def local_name(self, short: str) -> str:
        """Podman's name of an image that was made here, for which containerlab would search docker.io; otherwise ""."""
        if {short, f"docker.io/{short}", f"docker.io/library/{short}"} & set(self.names):
            return ""
        full = f"localhost/{short}"
        return next((name for name in self.names if name in (full, f"{full}:latest")), "")


@dataclass(frozen=True, slots=True)
class Container:
    """`pid` of its first process, 0 when it does not run. `started`: it ran at least once."""

    name: str
    identity: str
    running: bool
    started: bool
    ended: bool
    pid: int
    status: int
    labels: Mapping[str, str]


class _ContainerConfig(Struct, forbid_unknown_fields=False, rename="pascal"):
    labels: dict[str, str] | None = None
    entrypoint: tuple[str, ...] | None = None
    cmd: tuple[str, ...] | None = None
    user: str | None = None
    working_dir: str | None = None


class _ImageAnswer(Struct, forbid_unknown_fields=False, rename="pascal"):
    repo_tags: tuple[str, ...] | None = None
    config: _ContainerConfig | None = None


class _ContainerState(Struct, forbid_unknown_fields=False, rename="pascal"):
    pid: int | None = None
    exit_code: int | None = None
    running: bool | None = None
    status: str | None = None


class _ContainerLabels(Struct, forbid_unknown_fields=False, rename="pascal"):
    labels: dict[str, str] | None = None


class _ContainerAnswer(Struct, forbid_unknown_fields=False, rename="pascal"):
    id: str
    name: str
    state: _ContainerState
    config: _ContainerLabels


class _NetworkAnswer(Struct, forbid_unknown_fields=False):
    """Docker writes the one, Podman the other."""

    docker_name: str = field(name="Name", default="")
    podman_name: str = field(name="name", default="")


Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class ContainerEngine:
    """A container engine on this machine. `host`: the DOCKER_HOST for its commands, "" for the engine's default."""

    kind: Kind
    host: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables for commands that use this engine."""
        kept = {key: value for key, value in os.environ.items() if key != "DOCKER_HOST"}
        return kept | ({"DOCKER_HOST": self.host} if self.host else {})

    def command(self, *words: str) -> list[str]:
        """The command line of `docker WORDS…` or `podman WORDS…`."""
        return [self.kind, *words]

    def version(self) -> str:
        """The version of the engine itself, not of its command-line program."""
        key = "{{.Server.Version}}" if self.kind == "docker" else "{{.Client.Version}}"
        return self._asked("version", "--format", key).strip()

    def images(self, names: Sequence[str]) -> dict[str, Image]:
        """The networks among `names` that are there."""
        found: dict[str, Image] = {}
        for each in self._inspected(list[_ImageAnswer], "image", names):
            image = _image(each)
            # Podman tells names in full: with the registry of short ones, or its word for images that were made here.
            full = {name: {name, f"docker.io/{name}", f"localhost/{name}"} for name in names}
            found |= {name: image for name, known in full.items() if known & set(image.names)}
        return found

    def image(self, name: str) -> Image | None:
        """The image that a name means to the engine, whatever tag or registry it leaves out; None where it has none."""
        return next((_image(each) for each in self._inspected(list[_ImageAnswer], "image", [name])), None)

    def containers(self, names: Sequence[str]) -> dict[str, Container]:
        """Those of `names` that are there, running or not."""
        found = {}
        for each in self._inspected(list[_ContainerAnswer], "container", names):
            name, state = each.name.removeprefix("/"), each.state
            labels, ended, started = each.config.labels or {}, state.status in _ENDED, state.status != "created"
            found[name] = Container(
                name, each.id, bool(state.running), started, ended, state.pid or 0, state.exit_code or 0, labels
            )
        return found

    def named(self, prefix: str) -> list[str]:
        """Names of all containers that begin so, running or not."""
        lines = self._asked("ps", "--all", "--no-trunc", "--format", "{{.Names}}").splitlines()
        return sorted(name for line in lines for name in line.split(",") if name.startswith(prefix))

    def networks(self, names: Sequence[str]) -> list[str]:
        """The networks among `names` that are there."""
        return [
            each.docker_name or each.podman_name for each in self._inspected(list[_NetworkAnswer], "network", names)
        ]

    def remove(self, containers: Sequence[str]) -> None:
        """Kills and removes containers by identity or name; one that is gone already is no error."""
        if containers:
            self._forgiving(("rm", "--force", "--volumes", *containers), REMOVAL_S)

    def remove_networks(self, names: Sequence[str]) -> None:
        """Removes networks by name; one that is gone already is no error."""
        if names:
            self._forgiving(("network", "rm", *names), ANSWER_S)

    def last_words(self, container: str) -> str:
        """The last line that a container wrote; "" where it wrote none, or is not there."""
        command = self.command("logs", "--tail", "5", container)
        try:
            said = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment, timeout=ANSWER_S
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return last_line(said.stdout.decode(errors="replace")) if said.returncode == 0 else ""

    def refusal_to_start(self, container: str) -> str:
        """Why a container that never ran cannot be started: the engine's words when it is asked once more."""
        done = self._run("start", container)
        why = last_line(done.stderr.decode(errors="replace"))
        return f"{why}{self.remedy(why)}" if done.returncode != 0 and why else f"{self.kind} gave no reason"

    def remedy(self, why: str) -> str:
        """The remedy for a failure of the engine, to be put after the failure; "" if none is known."""
        if _FULL in why:
            return f": make room there ({self.kind} system df)"
        if _NOT_PERMITTED in why.lower():
            return ": this machine's root may not give containers what they ask for: write --runtime netns"
        if any(word in why for word in _DOWNLOAD):
            return f": an image could not be downloaded: load it by hand ({self.kind} load), or leave dashboards out"
        return ""

    def _inspected(self, kind: type[list[Told]], what: str, names: Sequence[str]) -> list[Told]:
        if not names:
            return []
        done = self._run(what, "inspect", *names)
        if done.returncode != 0 and not _only_absent(done.stderr):
            raise self._failure(done.stderr)
        try:
            return codec.decode(kind, done.stdout, what) if done.stdout.strip() else []
        except ValueError as error:
            raise LabError(f"{self.kind} {what} inspect: {error}") from None

    def _asked(self, *words: str) -> str:
        done = self._run(*words)
        if done.returncode != 0:
            raise self._failure(done.stderr)
        return done.stdout.decode(errors="replace")

    def _forgiving(self, words: Sequence[str], longest_s: float) -> None:
        done = self._run(*words, longest_s=longest_s)
        # A removal that another process began already ends by itself: the caller looks whether anything is left.
        if done.returncode != 0 and not _only_absent(done.stderr, "already in progress"):
            raise self._failure(done.stderr)

    def _run(self, *words: str, longest_s: float = ANSWER_S) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                self.command(*words),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=self.environment,
                timeout=longest_s,
                start_new_session=True,
            )
        except OSError as error:
            raise NoAnswerError(f"{self.kind} cannot be run ({error.strerror}): install it") from None
        except subprocess.TimeoutExpired:
            raise NoAnswerError(
                f"{self.kind} gave no answer to `{' '.join(words[:2])}` within {longest_s:.0f} s: "
                "look after the engine, then try again"
            ) from None

    def _failure(self, said: bytes) -> LabError:
        line = last_line(said.decode(errors="replace")) or "it gave no reason"
        if "connect" in line.lower():
            return NoAnswerError(f"{self.kind} does not answer ({line.rstrip('.')}): {_START[self.kind]}")
        return LabError(f"{self.kind}: {line}{self.remedy(line)}")


def _image(told: _ImageAnswer) -> Image:
    config = told.config or _ContainerConfig()
    return Image(
        told.repo_tags or (),
        config.labels or {},
        config.entrypoint or (),
        config.cmd or (),
        config.user or "",
        config.working_dir or "",
    )


def _only_absent(said: bytes, *also: str) -> bool:
    """Return whether an engine complains only of things that do not exist."""
    lines = [line.lower() for line in said.decode(errors="replace").splitlines() if line.strip()]
    return bool(lines) and all(any(word in line for word in (*_ABSENT, *also)) for line in lines)


def candidates() -> list[ContainerEngine]:
    """The engines that may be asked, in order; LabError for a wish that cannot be fulfilled."""
    wanted, host = os.environ.get("EWAN_ENGINE", ""), os.environ.get("DOCKER_HOST", "")
    if wanted and wanted not in KINDS:
        raise LabError(f'EWAN_ENGINE="{wanted}": write docker or podman')
    kinds = [kind for kind in KINDS if kind == wanted or not wanted]
    if host and not host.startswith(LOCAL) and wanted != "podman":
        raise LabError(
            f"DOCKER_HOST={host}: the engine of another machine; a lab's containers are entered on this one: "
            "write unix:///path/of/docker.sock, or leave it out"
        )
    return [ContainerEngine(kind, host if kind == "docker" else "") for kind in kinds if shutil.which(kind)]


def find() -> ContainerEngine:
    """The first engine that answers; LabError says why none does."""
    reasons = []
    for engine in candidates():
        try:
            engine.version()
        except LabError as error:
            reasons.append(str(error))
            continue
        return engine
    wanted = os.environ.get("EWAN_ENGINE") or KINDS[0]
    why = "; ".join(reasons) or f"{wanted} is not installed (apt install {_PACKAGE[wanted]})"
    raise NoAnswerError(f"no container engine answers: {why}; --runtime netns needs none")
