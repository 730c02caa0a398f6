"""A program of its own: registers the congestion controls of a compiled BPF program until its standard input ends.

In: the path of an object file. Out, on standard output: the line `registered`, or `refused` and the kernel's word; on
standard error what libbpf says. The kernel forgets them when this process ends, however it does (links of struct_ops,
Linux 6.4). Nothing of this project is imported: the process starts quickly, and has its own libbpf.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

LIBBPF = "libbpf.so.1"
STRUCT_OPS_MAP, STRUCT_OPS_LINK = 26, 44
"""BPF_MAP_TYPE_STRUCT_OPS, and BPF_STRUCT_OPS as the type of a link."""
LINK = 1 << 13
"""BPF_F_LINK: what is registered lives as long as its link."""
LINKS_SINCE = 2
"""The minor version of libbpf 1 that makes these links itself."""


def functions() -> ctypes.CDLL:
    """libbpf with the types of the functions used."""
    library = ctypes.CDLL(LIBBPF, use_errno=True)
    pointer, number, unsigned = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32
    for name, result, arguments in (
        ("bpf_object__open_file", pointer, (ctypes.c_char_p, pointer)),
        ("bpf_object__load", number, (pointer,)),
        ("bpf_object__next_map", pointer, (pointer, pointer)),
        ("bpf_map__type", number, (pointer,)),
        ("bpf_map__fd", number, (pointer,)),
        ("bpf_map__set_map_flags", number, (pointer, unsigned)),
        ("bpf_map__attach_struct_ops", pointer, (pointer,)),
        ("bpf_link_create", number, (number, number, number, pointer)),
        ("libbpf_minor_version", unsigned, ()),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def register(path: str) -> int:
    """Registers what the object has, but structures that lack a call beside a complete one; 0, or an error number."""
    libbpf = functions()
    program = libbpf.bpf_object__open_file(os.fsencode(path), None)
    if not program:
        return ctypes.get_errno()
    structures, each = [], libbpf.bpf_object__next_map(program, None)
    while each:
        if libbpf.bpf_map__type(each) == STRUCT_OPS_MAP:
            libbpf.bpf_map__set_map_flags(each, LINK)
            structures.append(each)
        each = libbpf.bpf_object__next_map(program, each)
    if (error := libbpf.bpf_object__load(program)) < 0:
        return -int(error)
    errors = [_attach(libbpf, each) for each in structures]
    if errno.EEXIST in errors:
        return errno.EEXIST
    return 0 if 0 in errors else max(errors, default=0)


def _attach(libbpf: ctypes.CDLL, structure: int) -> int:
    ctypes.set_errno(0)
    if not libbpf.bpf_map__attach_struct_ops(structure):
        return ctypes.get_errno()
    if libbpf.libbpf_minor_version() >= LINKS_SINCE:
        return 0
    link = libbpf.bpf_link_create(libbpf.bpf_map__fd(structure), 0, STRUCT_OPS_LINK, None)
    return 0 if link >= 0 else ctypes.get_errno()


def main() -> None:
    """Registers, says so, and waits."""
    try:
        error = register(sys.argv[1])
        answer = "registered" if error == 0 else f"refused {os.strerror(error)}"
    except (OSError, AttributeError) as missing:
        answer = f"refused {missing}"
    print(answer, flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
