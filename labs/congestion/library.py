"""The congestion controls that a user has added: sources, and the modules that are built of them.

In: C sources in the style of Linux's net/ipv4/tcp_*.c, with their headers, or BPF programs. Out: modules
for the virtual kernel, and BPF programs for this machine's. The library is the folder `ewan/congestion` of the user's
data directory (XDG_DATA_HOME); under sudo that of the user who called it.
"""

from __future__ import annotations

import functools
import re
import shutil
import tempfile
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from ewan.labs.base import cache, codec, documents, ownership, writing
from ewan.labs.base.codec import Document
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import HostFacts, compile
from ewan.labs.congestion import source, variables
from ewan.labs.congestion.external_program import NAME
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.record.traffic import StateField
from ewan.labs.runtime import kernel_modules
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import KernelModule, Program
from ewan.labs.runtime.virtual import Ended, VirtualRuntime
from ewan.labs.spec import parse

NOTE = "control.json"
_CONSOLE = re.compile(r" \(\S*/console\.log\)")
"""The place of a console that is removed with its kernel."""
_LAB = "topology: dumbbell\nrtt: 2ms\nwan: {rate: 100Mbit/s}\n"


class AddedControl(Document, tag="ewan-congestion/1"):
    """A congestion control of the library. `names`: those that sockets ask for; `file`: its source's name; `sha256`:
    of the source with its headers; `parameters`: the module's, each with its type. `kernel`: the added kernel for which
    it was written; None for the default one."""

    names: tuple[str, ...]
    file: str
    sha256: str
    parameters: dict[str, str]
    kernel: str | None = None


def folder(environment: Mapping[str, str]) -> Path | None:
    """The library's folder, which need not exist; None without a home."""
    return cache.data(environment, "congestion")


def added(environment: Mapping[str, str]) -> dict[str, AddedControl]:
    """The controls of the library by the name of their module, `tcp_mine`; a damaged one is a LabError."""
    place = folder(environment)
    return {} if place is None or not place.exists() else _added(place, place.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _added(place: Path, changed_ns: int) -> dict[str, AddedControl]:
    """The same of the library in `place`, which changes with each control that is added or removed."""
    found: dict[str, AddedControl] = {}
    for note in sorted(place.glob(f"*/{NOTE}")):
        try:
            control = documents.read(AddedControl, note)
        except documents.DocumentError as error:
            raise LabError(f"{error}: remove the folder {note.parent}, and add its source again") from None
        found[note.parent.name] = control
    return found


def add(
    path: Path,
    runtime: VirtualRuntime,
    binary: Path,
    built_in: Container[str],
    environment: Mapping[str, str],
    kernel: str | None = None,
) -> AddedControl:
    """Compiles a source, loads it into a virtual kernel, and puts it into the library with the names that the kernel
    has then; none of them may be among those `built_in`. `kernel`: the name of the runtime's, where it is an added one.
    A control of the same file is replaced; LabError leaves the library as it was."""
    if (library := folder(environment)) is None:
        raise LabError("there is no home for congestion controls: set XDG_DATA_HOME to a directory of yours")
    given = source.read(path)
    others = {name: module for module, each in added(environment).items() for name in each.names}

    def check_names(names: Iterable[str]) -> None:
        for name in names:
            if not re.fullmatch(r"[a-z][a-z0-9_-]{0,14}", name):
                raise LabError(
                    f'{path}: its congestion control "{name}": write at most 15 small letters, digits, - and _'
                )
            if name == NAME:
                raise LabError(f"{path}: the name {NAME} is kept for ewan transfer --program: write another name")
            if name in built_in:
                raise LabError(
                    f"{path}: the virtual kernel has a congestion control {name} already: write another name"
                )
            if others.get(name, given.name) != given.name:
                raise LabError(f"{path}: {others[name]}.c has the name {name} already: ewan cc remove {name}")

    check_names(source.names(given))
    built = kernel_modules.built(given, runtime.kernel(), binary)
    names = tuple(sorted(_started(runtime, (KernelModule(given),)).congestion_added))
    if not names:
        raise LabError(
            f"{path}: the kernel has no congestion control more when it is loaded: let its module_init call "
            "tcp_register_congestion_control"
        )
    check_names(names)
    control = AddedControl(names, given.file, given.digest, built.parameters, kernel)
    place = library / built.name
    made = [each for each in (library, *library.parents) if not each.exists()]
    try:
        _put(given, control, place)
    except OSError as error:
        raise LabError(writing.trouble(error, place, "make room there, or set XDG_DATA_HOME")) from None
    ownership.give_back(made, environment)
    ownership.give_back_tree(place, environment)
    return control


def _put(given: ModuleSource, control: AddedControl, place: Path) -> None:
    """Writes a control's folder, in the place of one that is there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".new-") as scratch:
        new = Path(scratch) / place.name
        for name, text in given.files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            writing.write(new / name, text)
        writing.write(new / NOTE, codec.document(control))
        if place.exists():
            place.rename(Path(scratch) / "old")
        new.rename(place)


def remove(name: str, environment: Mapping[str, str]) -> AddedControl:
    """Removes the control that sockets ask for by `name`; results of its runs stay."""
    for module, control in added(environment).items():
        if name in (*control.names, module):
            shutil.rmtree(_place(module, environment))
            return control
    known = ", ".join(sorted(names(environment))) or "none was added"
    raise LabError(f"cc remove {name}: the library has {known}")


def names(environment: Mapping[str, str]) -> set[str]:
    """The names of all added controls."""
    return {name for control in added(environment).values() for name in control.names}


def modules(wanted: Iterable[str], environment: Mapping[str, str]) -> tuple[KernelModule, ...] | None:
    """The modules that give a kernel the controls `wanted`; None where none of them was added by a user."""
    asked, found = set(wanted), []
    for module, control in added(environment).items():
        if asked.isdisjoint(control.names):
            continue
        path = _place(module, environment) / control.file
        given = source.read(path)
        if given.digest != control.sha256:
            raise LabError(f"{path} was changed: ewan cc add it again")
        found.append(KernelModule(given, control.names))
    return tuple(found) or None


def check(wanted: Iterable[KernelModule], runtime: VirtualRuntime, binary: Path) -> None:
    """LabError for the first module that does not compile, has not a parameter that it is given, or does not register
    its controls."""
    by_source: dict[str, KernelModule] = {}
    for module in wanted:
        kernel_modules.check(module, runtime.kernel(), binary)
        by_source.setdefault(f"{module.source.digest} {module.controls}", module)
    for module in by_source.values():
        in_kernel(runtime, (module,))


def check_states(program: Program, runtime: VirtualRuntime, binary: Path) -> None:
    """LabError where a program waits for a state that a control of its modules cannot have."""
    if program.traffic is None or not program.traffic.conditions or not program.modules:
        return
    from ewan.labs.congestion import layout  # reads debug information

    kernel = runtime.kernel()
    built = ((each, kernel_modules.built(each.source, kernel, binary)) for each in program.modules)
    layouts, without = layout.of_modules((each, kernel_modules.file_of(module)) for each, module in built)
    own: dict[str, tuple[StateField, ...]] = {name: () for each in program.modules for name in each.controls}
    if why := variables.check(program.traffic, own | layouts):
        raise LabError(f"when: {why}" + (f" ({without[0]})" if without else ""))


def in_kernel(runtime: VirtualRuntime, loaded: tuple[KernelModule, ...]) -> tuple[str, ...]:
    """The congestion controls that the virtual kernel says it has, with these modules."""
    return _started(runtime, loaded).congestion


def _started(runtime: VirtualRuntime, loaded: tuple[KernelModule, ...]) -> Ended:
    """Starts the virtual kernel with these modules, and ends it."""
    plan = compile(parse(_LAB, Path("cc.lab.yaml")), HostFacts((0,), (), "virtual"))
    with tempfile.TemporaryDirectory(prefix="ewan-cc-") as scratch:
        program = Program(longest_ns=NS_PER_SECOND, modules=loaded)
        try:
            result = runtime.run(plan, program, Path(scratch) / "run")
        except LabError as error:
            why = _CONSOLE.sub("", str(error).removeprefix(f"lab {plan.lab}: "))
            named = len(loaded) != 1 or loaded[0].name in why
            raise LabError(why if named else f"{loaded[0].source.file}: {why}") from None
        if result.interrupted:
            raise LabError("interrupted")
        return result.ended


def _place(module: str, environment: Mapping[str, str]) -> Path:
    """The folder of a control that was added."""
    library = folder(environment)
    assert library is not None, "it has controls"
    return library / module
