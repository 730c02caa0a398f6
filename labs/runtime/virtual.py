"""The virtual clock: a lab inside a Linux kernel of its own, a process whose time is simulated (User-Mode Linux).

In: a plan, a program, a directory for the run. Out: results in that directory, and nowhere else. Batch only: when all
programs in it wait, time jumps. The kernel's first process is `ewan-node init` (emulator/node/src/init.rs), which
makes the lab with the code of the live clock. Works as an ordinary user.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ewan.labs import plan as plans
from ewan.labs.base import codec, documents, writing
from ewan.labs.base.codec import Document, replace
from ewan.labs.base.interrupt import deferred
from ewan.labs.base.reading import end_of, one_line
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.plan import Plan
from ewan.labs.record.traffic import StateField
from ewan.labs.runtime import (
    controllers,
    cpu,
    guests,
    kernel,
    kernel_modules,
    memory,
    memory_homes,
    node_overrides,
    run_leftovers,
    services,
    sessions,
    wall,
)
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.program import KernelModule, Program
from ewan.labs.runtime.progress import ProgressReading, RunProgress, SharedPage, Watch
from ewan.labs.runtime.run_directory import kernel_files_of, occupied, root_of
from ewan.labs.runtime.standstill import NOT_BEGUN, Standstill

START_UNIX_NS = 1_700_000_000 * NS_PER_SECOND
"""When virtual time begins: 2023-11-14 22:13:20 UTC, always."""
STALL_S = 20.0
# Making a large lab takes wall time but no virtual time; it ends within the first virtual second (init.rs).
MAKING_S = 300.0
FEW_NODES, FEW_MADE_S = 16, 60.0
"""A lab of few nodes has less time: its kernel has begun within a second, unless a module of the user's loops."""
MADE_NS = NS_PER_SECOND
WIRES_A_SECOND = 50
# Nodes' programs start without virtual time too, one in half a second where nothing else wants the CPU.
SERVICE_S = 5.0
POLL_S = 0.1
LOOK_S = 2.0
"""The interval at which a run looks whether a live lab's links have begun to spin on its CPU."""
ENDS_S = 10.0
# What the kernel's command line (2048 bytes) and its parser carry.
LONGEST_PATH = 200
PROGRESS = "progress"
STATES = "states.json"
"""Beside the modules in the guest's root: the layouts of the private states of their congestion controls."""
MOST_SAID = 1 << 20
"""Bytes of the console's end: a command can write there as much as it wants."""
MOST_WORDS = 400
MOUNT_POINTS = ("proc", "sys", "dev", "run", "tmp", "etc", "host")

Show = Callable[[RunProgress], None]


class GuestUsage(NamedTuple):
    """The resources that the guest's process used. `cpu_ns`: CPU time of this machine, which varies less than wall time
    on a busy machine. `entries`: how often it entered a program. Both are 0 if it was killed. `touched_bytes`: its
    memory, sampled ten times a second; 0 for a shorter run."""

    cpu_ns: int
    entries: int
    touched_bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """The resources that a run took on this machine; virtual time and packets are the kernel's own figures.

    `memory_bytes`: the memory that the guest was given. The rest is of its process (`GuestUsage`).
    """

    wall_ns: int
    virtual_ns: int | None
    packets: int
    memory_bytes: int
    cpu_ns: int = 0
    entries: int = 0
    touched_bytes: int = 0


class Ended(Document, tag="ewan-ended/1"):
    """ended.json: the last message of init. `virtual_ns`: how far virtual time came; `kernel`: its release.
    `congestion`: the congestion controls that the kernel has, and `congestion_added` those of them that the program's
    `modules` are, where it has these."""

    how: Literal["completed", "interrupted", "failed", "killed"]
    error: str | None
    warnings: tuple[str, ...]
    virtual_ns: int
    kernel: str
    congestion: tuple[str, ...] = ()
    congestion_added: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """The results that a run left in its directory."""

    directory: Path
    kernel: Path
    ended: Ended
    cost: Cost

    @property
    def interrupted(self) -> bool:
        """Return whether the run was ended before all of its program had."""
        return self.ended.how != "completed"

    def document(self, name: str) -> dict[str, Any] | None:
        """probe.json, commands.json, events.json or links.json; None where the run did not come so far."""
        try:
            return documents.read_object(self.directory / name)
        except FileNotFoundError:
            return None
        except documents.DocumentError as error:
            raise LabError(str(error)) from None


class VirtualRuntime:
    """See `ewan.labs.runtime.base.BatchRuns`.

    `stall_s`: a run whose virtual time stands still for so long is ended (`Standstill`). `show` receives the progress
    of a run, `tell` the output of the kernel's build. `folders`: what commands may read beside the system's
    directories, and the first of them is where they begin; the current directory if absent.
    """

    def __init__(
        self,
        binary: Path | None = None,
        kernel_path: Path | None = None,
        *,
        stall_s: float = STALL_S,
        show: Show = lambda progress: None,
        tell: Callable[[str], None] = lambda line: None,
        folders: Sequence[Path] | None = None,
    ) -> None:
        self._wanted = binary
        self._kernel = kernel_path
        self._stall_s = stall_s
        self._show = show
        self._tell = tell
        self._folders = folders

    def kernel(self) -> Path:
        """Built on demand."""
        if self._kernel is None:
            self._kernel = kernel.kernel(self._tell)
        return self._kernel

    def run(
        self,
        plan: Plan,
        program: Program,
        directory: Path,
        stop: threading.Event | None = None,
        *,
        controller: int | None = None,
    ) -> Run:
        """Runs `program` in the lab of `plan`; raises LabError when it could not be done. `controller`: a descriptor of
        the socket of an external congestion control, which becomes the kernel's standard input.

        Ctrl-C, and `stop`, end it early: what was measured until then is kept (`Run.interrupted`); Ctrl-C a second
        time, or no end within ten seconds, kills it.
        """
        if program.controller is None or controller is not None:
            return self._run(plan, program, directory, stop, controller)
        with controllers.running(program.controller, plan.seed, node_binary(self._wanted), directory) as beside:
            try:
                result = self._run(plan, program, directory, stop, beside.of_kernel.fileno())
            except LabError as error:
                raise beside.fault(error) or error from None
            if not result.interrupted:
                beside.completed()
            return result

    def _run(
        self, plan: Plan, program: Program, directory: Path, stop: threading.Event | None, controller: int | None
    ) -> Run:
        plan, own = kernel.of_plan(plan)
        binary, image = node_binary(self._wanted), own or self.kernel()
        check_path(directory.resolve())
        wall.check(program.needs)
        folders = [Path.cwd()] if self._folders is None else list(self._folders)
        node_overrides.check_namespaces(plan)
        services.check_programs(plan)
        program = node_overrides.prepared(plan, program)
        wanted = memory.need(plan, program)
        home = memory_homes.found(wanted.bytes, binary)
        memory.refuse(plan.lab, wanted, *home)
        begun = time.monotonic_ns()
        modules = [
            (each, kernel_modules.file_of(kernel_modules.built(each.source, image, binary)))
            for each in program.modules or ()
        ]
        states, without = (None, []) if program.modules is None else _states(modules)
        with (
            _prepared(directory, binary, modules, states) as (root, lock),
            guests.memory_place(home.directory) as memory_in,
        ):
            place = directory.resolve()
            _tell(directory / "plan.json", plans.to_json(plan))
            _tell(directory / "program.json", program.to_json())
            page = SharedPage(directory / PROGRESS)
            watch = Watch(page, program.expected_ns)
            last: RunProgress
            try:
                parameters = _parameters(plan, wanted.bytes, place, root, folders, controller)
                walls: list[str] = []
                if not wall.off():
                    walls = wall.options(plan, program, folders, place, (image, root))
                    walls += ["--memory", str(wanted.bytes), "--memory-in", str(memory_in)]
                command: list[Path | str] = [binary, "launch", *walls, "--", image, *parameters]
                with (
                    cpu.reserved() as held,
                    guests.guest(command, directory, lock, held.cpus, memory_in, controller) as guest,
                    deferred() as check,
                ):
                    asked, used = self._wait(guest, held, page, watch, plan, program, check, stop)
                    last = watch.progress()
            finally:
                page.close()
                wrong = run_leftovers.settle(directory)
        if wrong is not None:
            raise LabError(wrong)
        cost = Cost(time.monotonic_ns() - begun, last.virtual_ns, last.packets, wanted.bytes, *used)
        ended = _ended(directory, plan.lab, asked, program)
        ended = replace(ended, warnings=(*ended.warnings, *without))
        return Run(directory, image, ended, cost)

    def _wait(
        self,
        guest: subprocess.Popen[bytes],
        place: cpu.CpuLock,
        page: SharedPage,
        watch: Watch,
        plan: Plan,
        program: Program,
        check: Callable[[], None],
        stop: threading.Event | None,
    ) -> tuple[bool, GuestUsage]:
        """Until the guest has ended; true if it was asked to, and what it used.

        Raises LabError when its time stands still.
        """
        kill_at: float | None = None
        touched = passed_ns = 0
        making_s = MAKING_S if len(plan.nodes) > FEW_NODES or not program.modules else FEW_MADE_S
        patience_s = self._stall_s + SERVICE_S * sum(len(node.services) for node in plan.nodes)
        look_at = time.monotonic() + LOOK_S
        standstill = Standstill(watch, guest.pid)
        while True:
            if (usage := guests.usage(guest, POLL_S)) is not None:
                cpu_ns = round((usage.ru_utime + usage.ru_stime) * NS_PER_SECOND)
                read = page.read()
                # An older kernel and a program wait for each other at each entry, and for nothing else.
                entries = (read.entries if read is not None else 0) or usage.ru_nvcsw // 2
                return kill_at is not None, GuestUsage(cpu_ns, entries, touched)
            touched = max(touched, guests.touched_bytes(guest.pid))
            if time.monotonic() > look_at:
                if (cpus := place.moved()) is not None:
                    sessions.move(guest.pid, cpus)
                look_at = time.monotonic() + LOOK_S
            if kill_at is None:
                try:
                    check()
                except (KeyboardInterrupt, SystemExit):
                    kill_at = time.monotonic() + ENDS_S
                if stop is not None and stop.is_set():
                    kill_at = time.monotonic() + ENDS_S
                if kill_at is not None:
                    page.stop()
            elif time.monotonic() > kill_at:
                return True, GuestUsage(0, 0, touched)
            if (stalled := standstill.found(patience_s, making_s, MADE_NS)) is not None:
                raise LabError(_stalled(plan.lab, _modules(program), *stalled))
            progress = watch.progress()
            if (progress.virtual_ns or 0) < passed_ns:
                raise LabError(
                    f"lab {plan.lab}: a command began the virtual kernel anew (reboot), which would never end"
                )
            passed_ns = progress.virtual_ns or 0
            self._show(progress)


def begins_ns(plan: Plan) -> int:
    """The approximate time, since the virtual kernel started, at which the program begins: it waits for the wires first
    (init.rs)."""
    wires = sum(len(node.interfaces) for node in plan.nodes) // 2
    return MADE_NS * (1 + wires // WIRES_A_SECOND)


def check_path(directory: Path) -> Path:
    """The directory's absolute path, if the kernel's command line can carry it."""
    absolute = directory.absolute()
    text = str(absolute)
    if not _is_carried(text):
        raise LabError(
            f"{text}: the virtual kernel takes no directory with blanks, quotes, bytes that are no text or more than "
            f"{LONGEST_PATH} bytes in its path: run it from another directory"
        )
    return absolute


def _is_carried(text: str) -> bool:
    blank = any(character.isspace() or character in "\"'\\" for character in text)
    return not blank and text.isprintable() and len(os.fsencode(text)) <= LONGEST_PATH


def _parameters(
    plan: Plan, memory_bytes: int, directory: Path, root: Path, folders: Sequence[Path], controller: int | None
) -> list[str]:
    """The kernel's command line; KEY=VALUE pairs that it does not know become init's environment."""
    named = dict(zip(("EWAN_DIRECTORY", "EWAN_FOLDER"), map(str, folders), strict=False))
    carried = [f"{name}={path}" for name, path in named.items() if _is_carried(path)]
    return [
        f"mem={memory_bytes // memory.MIB}M",
        f"uml_dir={kernel_files_of(directory)}/",
        "umid=guest",
        "root=98:0",
        "rootfstype=hostfs",
        f"rootflags={root}",
        "ro",
        "init=/ewan-node",
        "time-travel=inf-cpu",
        f"time-travel-start={START_UNIX_NS}",
        "norandmaps",
        f"ewan_seed={plan.seed}",
        f"ewan_progress={directory / PROGRESS}",
        "con=null",
        "con0=fd:0,fd:1" if controller is None else "con0=null,fd:1",
        "ssl=null",
        "panic=-1",
        "quiet",
        f"EWAN_RUN={directory}",
        *carried,
        "--",
        "init",
    ]


def _states(modules: Sequence[tuple[KernelModule, Path]]) -> tuple[dict[str, tuple[StateField, ...]], list[str]]:
    """The layouts of the private states of the modules' controls, and a line for each that has none."""
    if not modules:
        return {}, []
    from ewan.labs.congestion import layout  # reads debug information, which no run without modules has

    return layout.of_modules(modules)


@contextlib.contextmanager
def _prepared(
    directory: Path,
    binary: Path,
    modules: Sequence[tuple[KernelModule, Path]],
    states: Mapping[str, tuple[StateField, ...]] | None,
) -> Iterator[tuple[Path, int]]:
    """Gives the guest's small root, and the lock on the directory; all that is no result is removed again, also what a
    command that was killed left there.

    The root lies beside the directory, in which the guest may write: the node binary in it is this machine's own.
    """
    root, uml = root_of(directory), kernel_files_of(directory)
    with contextlib.ExitStack() as stack:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context(occupied(directory))
            for path in (root, uml):
                run_leftovers.remove_tree(path)
                stack.callback(run_leftovers.remove_tree, path)
            for name in MOUNT_POINTS:
                (root / name).mkdir(parents=True)
            uml.mkdir()
            _put(binary, root / "ewan-node")
            (root / "modules").mkdir()
            for module, path in modules:
                shutil.copy(path, root / "modules" / f"{module.name}.ko")
            if states is not None:
                writing.write(root / "modules" / STATES, codec.compact(states))
        except OSError as error:
            raise LabError(writing.trouble(error, directory, "run it where you may write")) from None
        yield root, lock


def _tell(path: Path, content: bytes) -> None:
    """Writes what the guest reads. What an experiment has written there, and vouches for, is left as it is: whoever is
    killed here does not leave half of it."""
    try:
        if path.read_bytes() == content:
            return
    except FileNotFoundError:
        pass
    writing.write(path, content)


def _put(binary: Path, place: Path) -> None:
    """A second name for the binary; a copy on another file system, or if it is another user's."""
    try:
        place.hardlink_to(binary)
    except OSError:
        shutil.copy(binary, place)


def _ended(directory: Path, lab: str, asked: bool, program: Program) -> Ended:
    """The last message of init; LabError if that was an error, or if there was none."""
    try:
        ended = documents.read(Ended, directory / "ended.json")
    except (FileNotFoundError, documents.DocumentError):
        if asked:
            return Ended("killed", None, (), 0, "")
        why = one_line(_last_words(directory / "console.log"), MOST_WORDS)
        why = _of_module(program, why) or f"{why} ({directory / 'console.log'})"
        raise LabError(_full(directory, why) or f"lab {lab}: {why}") from None
    if ended.error:
        why = one_line(ended.error, MOST_WORDS)
        raise LabError(_full(directory, why) or f"lab {lab}: {why}")
    return ended


def _of_module(program: Program, why: str) -> str:
    """The fault of a module that the program loads, where the kernel's words are those of one; else empty."""
    faults = {
        "Segfault with no mm": "uses an address at which there is no memory, such as NULL",
        "Kernel mode fault at addr": "uses an address at which there is no memory, such as NULL",
        "Kernel mode signal 8": "divides by zero",
        "bpf_setsockopt: ": "calls what a module cannot do",
        "scheduling while atomic": "sleeps where a congestion control must not",
    }
    names = _modules(program)
    return next((f"{names} {fault}: {why}" for word, fault in faults.items() if names and word in why), "")


def _modules(program: Program) -> str:
    """The modules that a program loads; empty without."""
    return " or ".join(f"module {each.name}" for each in program.modules or ())


def _full(directory: Path, why: str) -> str:
    return writing.no_space(directory) if os.strerror(errno.ENOSPC) in why else ""


def _last_words(console: Path) -> str:
    """The first line at the console's end that gives a reason for the kernel's own, after a panic with the line before,
    which says what led to it; else the last line."""
    try:
        said, _ = end_of(console, MOST_SAID)
    except OSError:  # a command took it away
        said = ""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for before, line in itertools.pairwise(["", *lines]):
        if "Kernel panic" in line:
            return line if not before or before.startswith("{") else f"{before}; {line}"
        if line.startswith("ewan-node: "):
            return line
    return lines[-1] if lines else "the virtual kernel ended without a word"


def _stalled(lab: str, modules: str, still_ns: int, reading: ProgressReading) -> str:
    if modules:
        at = "" if reading is NOT_BEGUN else f" at {about(reading.virtual_ns, 'time', 6)}"
        return (
            f"lab {lab}: {modules} loops or sleeps, or a program works without ever waiting: virtual time has stood "
            f"still{at} for {about(still_ns, 'time', 2)} of wall time"
        )
    if reading is NOT_BEGUN:
        return f"lab {lab}: the virtual kernel has not begun for {about(still_ns, 'time', 2)}: look at its console.log"
    return (
        f"lab {lab}: virtual time has stood still at {about(reading.virtual_ns, 'time', 6)} for "
        f"{about(still_ns, 'time', 2)} of wall time: task {reading.pid} ({reading.task}) in the lab works without ever "
        "waiting, and time moves only when all wait: run a program that sleeps, or this one in the live clock"
    )
