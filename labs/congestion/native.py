"""A TCP congestion control that is written as a BPF program, for a kernel without BPF's compiler: the C file of a
module that includes the program as it is, and registers what the program registers.

In: the program with the headers of its own, and the names that the kernel exports to modules. Out: the text of the C
file and of its Makefile; NativeError, one line with file and line, for what only BPF has. Structures and functions of
the kernel come from its own headers by emulator/kernel/tcp/native/program.h, where the helpers that a native program
has are defined.

A program may define functions and macros that the kernel's headers define as well (`fls64`, `before`), as it sees none
of those under BPF. The C file gives such functions another name and forgets such macros before it includes the program.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from ewan.labs.base.codec import Struct
from ewan.labs.base.errors import UserError
from ewan.labs.base.product import ROOT
from ewan.labs.congestion.source import CALLED_BY, STRUCTURE, ModuleSource, blanked

HEADERS = ROOT / "emulator/kernel/tcp/native"
"""The folder of `vmlinux.h`, `bpf/bpf_helpers.h` and so on, that stands first on the include path."""
_STATE = "keep the state of a connection in inet_csk_ca(sk), and what connections share in a static variable"
_FIELDS = "read and write the fields of tcp_sk(sk)"
_OPTIONS = ("bpf_getsockopt", "bpf_setsockopt")
_STORAGE = "BPF_MAP_TYPE_SK_STORAGE"
_INHERITED = "BPF_F_CLONE"
_INSTEAD = {
    "bpf_map_": _STATE,
    "bpf_spin_": "leave it out, as the socket is locked",
    "bpf_ringbuf_": "print by bpf_printk",
    "bpf_perf_event_output": "print by bpf_printk",
    "bpf_trace_printk": "write bpf_printk",
}
# The calls of struct tcp_congestion_ops in Linux 6.12: is something returned, and the arguments ("*": a pointer).
_CALLS = {
    "init": (False, ("struct sock *sk",)),
    "release": (False, ("struct sock *sk",)),
    "ssthresh": (True, ("struct sock *sk",)),
    "cong_avoid": (False, ("struct sock *sk", "u32 ack", "u32 acked")),
    "set_state": (False, ("struct sock *sk", "u8 state")),
    "cwnd_event": (False, ("struct sock *sk", "enum tcp_ca_event event")),
    "in_ack_event": (False, ("struct sock *sk", "u32 flags")),
    "pkts_acked": (False, ("struct sock *sk", "const struct ack_sample *sample")),
    "min_tso_segs": (True, ("struct sock *sk",)),
    "cong_control": (False, ("struct sock *sk", "u32 ack", "int flag", "const struct rate_sample *rs")),
    "undo_cwnd": (True, ("struct sock *sk",)),
    "sndbuf_expand": (True, ("struct sock *sk",)),
}
_CONFIGURED = ("bool", "_Bool", "int", "unsigned int", "long", "unsigned long", "u32", "__u32", "u64", "__u64")
# tcp_validate_congestion_control(): one of each row.
_NEEDED = (("ssthresh",), ("undo_cwnd",), ("cong_avoid", "cong_control"))
_NAME_MAX = 15
_MAPS = (".maps", "maps")
_DATA = ("license", "version", ".data", ".rodata", ".bss")
_OPS = (".struct_ops", ".struct_ops.link")
_LICENSES = ("GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL")

_SECTION = re.compile(r"\bSEC\s*\(\s*\"([^\"]*)\"\s*\)")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_FUNCTION = re.compile(r"\b(\w+)\s*\(([^(){};]*)\)\s*(?:__\w+\s*)*\{")
_FRAME = re.compile(r"\b(?:BPF_PROG|BPF_STRUCT_OPS)\s*\(\s*(\w+)\s*,?([^()]*)\)\s*\{")
_OLD_FRAME = re.compile(r"\bBPF_TCP_OPS_\d\s*\(\s*(\w+)\s*,\s*([^,()]*),?([^()]*)\)\s*\{")
_MEMBER = re.compile(r"\.(\w+)\s*=\s*(?:\(\s*void\s*\*\s*\)\s*)?&?\s*(\w+)")
_EXTERN = re.compile(r"\b(\w+)\s*\([^();{}]*\)\s*(?:__weak\s+)?__ksym\b")
_KCONFIG = re.compile(r"\bextern\s+([\w\s]+?)\s*\b(CONFIG_\w+)\s+__kconfig\b")
_CALLED = re.compile(r"\b(bpf_\w+)\s*\(")
_MAP = re.compile(r"\bstruct\s*\w*\s*\{[^{}]*\}\s*\w+\s*$")
_LAYOUT = re.compile(r"\b(preserve_access_index)\b|\bstruct\s+(\w+___\w+)")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_OF_A_STRUCTURE = re.compile(r"(?:->|\.)\s*(\w+)")
_LICENSE = re.compile(r"(?:SEC\s*\(\s*\"license\"\s*\)\s*=|\bMODULE_LICENSE\s*\()\s*\"([^\"]*)\"")


class NativeError(UserError):
    """A program that does not run natively: file, line, what to write instead."""


class _Source(Struct, frozen=True):
    """One file: its text, and the same without comments and strings; positions in both are equal."""

    name: str
    text: str
    code: str

    def refuse(self, position: int, message: str) -> NativeError:
        return NativeError(f"{self.name}:{self.text.count(chr(10), 0, position) + 1}: {message}")


class _Function(Struct, frozen=True):
    """A function that the kernel calls."""

    source: _Source
    position: int
    returns: bool
    arguments: tuple[str, ...]


def recipe() -> list[bytes]:
    """The contents of the files by which the C file of a program is made."""
    return [path.read_bytes() for path in (Path(__file__), *sorted(HEADERS.rglob("*.h")))]


def exported(symbols: str) -> frozenset[str]:
    """The functions and variables that a kernel exports to modules, of the text of its Module.symvers."""
    return frozenset(line.split("\t")[1] for line in symbols.splitlines() if line.count("\t") > 1)


def makefile(name: str, headers: Path = HEADERS) -> str:
    """The Makefile beside the C file of a module of this name."""
    return f"obj-m := {name}.o\n{name}-y := {name}.native.o\nccflags-y := -I{headers}\n"


def c_file(name: str) -> str:
    """The name of the C file of a module: the program may include one that is called as the module is."""
    return f"{name}.native.c"


def names(source: ModuleSource) -> list[str]:
    """The names of the congestion controls that `module` registers, as sockets ask for them. Raises NativeError."""
    files = _files(source)
    functions = {name: function for file in files for name, function in _frames(file)}
    return [name for _, name in _structures(files, functions)]


def module(source: ModuleSource, exports: Container[str]) -> str:
    """The C file `c_file(…)` of a program, which includes it. Raises NativeError.

    exports: what the kernel exports to modules."""
    files = _files(source)
    program = files[0]
    functions = {name: function for file in files for name, function in _frames(file)}
    defined = set(functions) | {name for file in files for name in _defined(file)}
    for file in files:
        _check_sections(file)
        _check_names(file, defined, exports)
    structures = [variable for variable, _ in _structures(files, functions)]
    if not structures:
        raise program.refuse(
            0, 'no congestion control is registered: write SEC(".struct_ops") struct tcp_congestion_ops NAME = {…};'
        )
    lines = ["/* Generated: the program below as a module. */", "#include <program.h>", ""]
    lines += [f"extern struct tcp_congestion_ops {name};" for name in structures]
    lines += _registration(structures, any(section in _MAPS for file in files for _, section in _sections(file)))
    lines += [f'MODULE_INFO(license, "{_license(files)}");', f'MODULE_INFO(description, "{Path(program.name).name}");']
    lines += _configuration(files)
    lines += _renamed(files, functions, exports)
    lines += ["#define __bpf__ 1", f'#include "{program.name}"', ""]
    return "\n".join(lines)


def _files(source: ModuleSource) -> list[_Source]:
    """The program and its own headers, but not copies of libbpf's and of the kernel's for BPF."""
    shims = {str(header.relative_to(HEADERS)) for header in HEADERS.rglob("*.h")}
    texts = {name: text.decode(errors="replace") for name, text in source.files.items() if name not in shims}
    return [_Source(name, text, blanked(text)) for name, text in texts.items()]


def _sections(source: _Source) -> Iterator[tuple[int, str]]:
    """Where a section is named, and its name; none of a comment."""
    return ((found.start(), found[1]) for found in _SECTION.finditer(blanked(source.text, strings=False)))


def _check_sections(source: _Source) -> None:
    for position, section in _sections(source):
        kind = section.partition("/")[0].rstrip("?")
        if section in _MAPS:
            found = _MAP.search(source.code, 0, position)
            if found is None or _STORAGE not in found.group():
                raise source.refuse(position, f'SEC("{section}"): a native module has no maps but {_STORAGE}: {_STATE}')
            if _INHERITED in found.group():
                raise source.refuse(position, f"{_INHERITED}: a native module's sockets inherit nothing: leave it out")
        elif kind not in ("struct_ops", *_OPS, *_DATA):
            raise source.refuse(
                position, f'SEC("{section}"): only congestion controls run natively: write SEC("struct_ops") or nothing'
            )
    for found in _LAYOUT.finditer(source.code):
        raise source.refuse(
            found.start(), f"{found[1] or found[2]}: the structures are the kernel's own: include vmlinux.h instead"
        )


def _check_names(source: _Source, defined: Container[str], exports: Container[str]) -> None:
    known = _helpers()
    for found in _EXTERN.finditer(source.code):
        name = found[1]
        if name not in known and name not in exports and name not in defined:
            raise source.refuse(
                found.start(1), f"{name}: this kernel does not export it to modules: write the function in the program"
            )
    for found in _CALLED.finditer(source.code):
        name = found[1]
        if name in _OPTIONS and "TCP_CONGESTION" not in source.code[found.end() : source.code.find(";", found.end())]:
            raise source.refuse(found.start(), f"{name}: a native module has it only for TCP_CONGESTION: {_FIELDS}")
        if name in known or name in defined or name in exports:
            continue
        instead = next((text for start, text in _INSTEAD.items() if name.startswith(start)), "")
        if not instead:
            instead = "write it by the kernel's headers, or by " + ", ".join(n for n in known if n.startswith("bpf_"))
        raise source.refuse(found.start(), f"{name}: a native module does not have it: {instead}")


@functools.cache
def _helpers() -> tuple[str, ...]:
    """The names of BPF's helpers and macros that program.h defines."""
    text = blanked((HEADERS / "program.h").read_text())
    return tuple(sorted({*_MACRO.findall(text), *(name for name, _ in _FUNCTION.findall(text))}))


def _defined(source: _Source) -> Iterator[str]:
    """The functions, but those that the kernel calls, and macros that a file defines."""
    yield from _MACRO.findall(source.code)
    yield from (name for _, name in _plain_functions(source))


def _plain_functions(source: _Source) -> Iterator[tuple[int, str]]:
    """The functions of a file's outermost level, but those in a frame of BPF."""
    depth = 0
    text = _DIRECTIVE.sub(lambda found: " " * len(found.group()), source.code)
    starts = {found.end() - 1: found for found in _FUNCTION.finditer(text)}
    for brace in re.finditer(r"[{}]", text):
        found = starts.get(brace.start())
        if depth == 0 and found and not found[1].startswith(("BPF_", "SEC", "__attribute")):
            yield found.start(), found[1]
        depth += 1 if brace.group() == "{" else -1


def _frames(source: _Source) -> Iterator[tuple[str, _Function]]:
    for found in _FRAME.finditer(source.code):
        before = source.code[: found.start()].rstrip()
        returns = not before.endswith("void")
        arguments = tuple(word.strip() for word in found[2].split(",") if word.strip())
        yield found[1], _Function(source, found.start(), returns, arguments)
    for found in _OLD_FRAME.finditer(source.code):
        words = [word.strip() for word in found[3].split(",") if word.strip()]
        arguments = tuple(f"{kind} {name}" for kind, name in zip(words[::2], words[1::2], strict=False))
        yield found[1], _Function(source, found.start(), found[2].strip() != "void", arguments)


def _structures(files: list[_Source], functions: Mapping[str, _Function]) -> list[tuple[str, str]]:
    """The variables to register, whose calls are those of the kernel, and the names of their congestion controls.
    What lacks a call that the kernel needs is left out beside one that is complete."""
    result: list[tuple[str, str]] = []
    incomplete: list[NativeError] = []
    for source in files:
        operations = [position for position, section in _sections(source) if section in _OPS]
        for position in operations:
            found = STRUCTURE.search(source.code, position)
            if found is None:
                raise source.refuse(position, "write struct tcp_congestion_ops NAME = {…}; after it")
            begin = found.start(2)
            members = [member[1] for member in _MEMBER.finditer(found[2])]
            lacks = next((needed[0] for needed in _NEEDED if not set(needed) & set(members)), None)
            if lacks:
                why = f"{found[1]} has no .{lacks}, and the kernel registers none without it: write one"
                incomplete.append(source.refuse(found.start(), why))
                continue
            for member in _MEMBER.finditer(found[2]):
                _check_call(source, begin + member.start(), member[1], member[2], functions)
            named = CALLED_BY.search(source.text, begin, found.end(2))
            name = named[1] if named else ""
            if not 0 < len(name) <= _NAME_MAX or name in (other for _, other in result):
                raise source.refuse(
                    named.start() if named else found.start(),
                    f'{found[1]}: write a .name = "…" of its own, of 1 to {_NAME_MAX} characters',
                )
            result.append((found[1], name))
    if incomplete and not result:
        raise incomplete[0]
    return result


def _check_call(source: _Source, position: int, member: str, name: str, functions: Mapping[str, _Function]) -> None:
    """A call whose arguments are not the kernel's, which a cast to void * hides from the compiler."""
    if member not in _CALLS:
        return
    returns, arguments = _CALLS[member]
    function = functions.get(name)
    if function is None:
        raise source.refuse(position, f".{member} = {name}: define it by BPF_PROG({name}, {', '.join(arguments)})")
    given = tuple("*" in argument for argument in function.arguments)
    kernels = tuple("*" in argument for argument in arguments)
    if given != kernels[: len(given)] or not given:
        raise function.source.refuse(
            function.position, f"the kernel calls .{member} otherwise: write BPF_PROG({name}, {', '.join(arguments)})"
        )
    if returns and not function.returns:
        raise function.source.refuse(function.position, f".{member} returns a number: write u32 BPF_PROG({name}, …)")


def _registration(structures: list[str], maps: bool) -> list[str]:
    every = ", ".join(f"&{name}" for name in structures)
    released = [
        "static void (*native_release_of[ARRAY_SIZE(native_ops)])(struct sock *sk);",
        "",
        "static void native_release(struct sock *sk)",
        "{",
        "\tfor (int number = 0; number < ARRAY_SIZE(native_ops); number++)",
        "\t\tif (inet_csk(sk)->icsk_ca_ops == native_ops[number] && native_release_of[number])",
        "\t\t\tnative_release_of[number](sk);",
        "\twhile (!native_storage_free(NULL, sk))",
        "\t\t;",
        "}",
        "",
    ]
    release = [
        "\t\tnative_release_of[number] = native_ops[number]->release;",
        "\t\tnative_ops[number]->release = native_release;",
    ]
    return [
        "",
        f"static struct tcp_congestion_ops *const native_ops[] = {{ {every} }};",
        "",
        *(released if maps else ()),
        "static void native_unregister(int number)",
        "{",
        "\twhile (number--)",
        "\t\ttcp_unregister_congestion_control(native_ops[number]);",
        "}",
        "",
        "int init_module(void)",
        "{",
        "\tfor (int number = 0; number < ARRAY_SIZE(native_ops); number++) {",
        "\t\tint error;",
        "",
        "\t\tnative_ops[number]->owner = THIS_MODULE;",
        *(release if maps else ()),
        "\t\terror = tcp_register_congestion_control(native_ops[number]);",
        "\t\tif (error) {",
        "\t\t\tnative_unregister(number);",
        "\t\t\treturn error;",
        "\t\t}",
        "\t}",
        "\treturn 0;",
        "}",
        "",
        "void cleanup_module(void)",
        "{",
        "\tnative_unregister(ARRAY_SIZE(native_ops));",
        "}",
        "",
    ]


def _license(files: list[_Source]) -> str:
    """The program's licence, with which the kernel's functions may be called."""
    for source in files:
        found = _LICENSE.search(blanked(source.text, strings=False))
        if found is not None and found[1] not in _LICENSES:
            raise source.refuse(found.start(), f'licence "{found[1]}": write one of {", ".join(_LICENSES)}')
        if found is not None:
            return found[1]
    raise files[0].refuse(0, 'no licence: write char _license[] SEC("license") = "GPL";')


def _configuration(files: list[_Source]) -> list[str]:
    """Variables of the kernel's configuration, whose names are macros in its headers."""
    result = []
    for source in files:
        for found in _KCONFIG.finditer(source.code):
            kind, name = found[1].strip(), found[2]
            if kind not in _CONFIGURED:
                raise source.refuse(found.start(), f"{name}: write it as a number or as bool")
            value = f"IS_ENABLED({name})" if kind.endswith(("bool", "_Bool")) else name
            result += [f"enum {{ native_{name} = {value} }};", f"#undef {name}", f"{kind} {name} = native_{name};"]
    return result


def _renamed(files: list[_Source], functions: Mapping[str, _Function], exports: Container[str]) -> list[str]:
    """Directives that let the program define what the kernel's headers define. A name that is also a member of a
    structure stays: the compiler tells where that is one too many."""
    members = {name for source in files for name in _OF_A_STRUCTURE.findall(source.code)}
    shims = set(_helpers())
    macros = {name for source in files for name in _MACRO.findall(source.code)}
    plain = {name for source in files for _, name in _plain_functions(source)}
    renamed = (plain | {name for name in functions if name in exports}) - members
    undefined = sorted(macros | (plain & shims) | renamed)
    return [
        *(f"#undef {name}" for name in undefined),
        *(f"#define {name} native_{name}" for name in sorted(renamed - macros)),
    ]
