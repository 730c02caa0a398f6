"""Filters of packets in the language of pcap-filter(7), compiled by libpcap itself for the kernel's packet filter.

In: a filter's text. Out: the instructions as `ewan-node capture` reads them; FilterError with libpcap's own words. The
library is the system's, through its stable C interface (libpcap 1.x): tcpdump and Wireshark use the same one.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools

from ewan.labs.base.errors import UserError

SNAP_BYTES = 262_144
"""The length to which an accepted packet is cut: libpcap's own maximum."""
_ETHERNET = 1
_OPTIMISED = 1
_ANY_NETMASK = 0xFFFFFFFF
_ERROR_BYTES = 256
_LOOPBACK = b"lo"
# Debian's name of the library, and everybody else's: where no compiler is, `find_library` may find neither.
_SONAMES = ("libpcap.so.1", "libpcap.so.0.8")


class FilterError(UserError):
    """No filter, or none that can be compiled here: one line."""


class _Instruction(ctypes.Structure):
    """struct bpf_insn"""

    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    """struct bpf_program"""

    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.POINTER(_Instruction)))


def compiled(text: str) -> str:
    """The program of a filter, "code jt jf k" for each instruction, commas between them; "" of an empty text."""
    if not text.strip():
        return ""
    if "\0" in text or not text.isascii():
        raise FilterError(f"filter {text!r}: has characters that no filter has: write it as in pcap-filter(7)")
    pcap = _library()
    handle = _handle(pcap)
    try:
        program = _Program()
        arguments = (ctypes.byref(program), text.encode(), _OPTIMISED, ctypes.c_uint32(_ANY_NETMASK))
        if pcap.pcap_compile(handle, *arguments) != 0:
            why = ctypes.string_at(pcap.pcap_geterr(handle)).decode(errors="replace")
            raise FilterError(f'filter "{text}": {why} (libpcap): see pcap-filter(7)')
        try:
            found = (program.instructions[index] for index in range(program.length))
            return ",".join(f"{each.code} {each.jt} {each.jf} {each.k}" for each in found)
        finally:
            pcap.pcap_freecode(ctypes.byref(program))
    finally:
        pcap.pcap_close(handle)


def _handle(pcap: ctypes.CDLL) -> int:
    """One of this kernel, for which `vlan` finds the tags that it keeps beside packets; without root, of no kernel."""
    words = ctypes.create_string_buffer(_ERROR_BYTES)
    live = pcap.pcap_create(_LOOPBACK, words)
    if live:
        pcap.pcap_set_snaplen(ctypes.c_void_p(live), SNAP_BYTES)
        if pcap.pcap_activate(ctypes.c_void_p(live)) >= 0 and pcap.pcap_datalink(ctypes.c_void_p(live)) == _ETHERNET:
            return int(live)
        pcap.pcap_close(ctypes.c_void_p(live))
    return int(pcap.pcap_open_dead(_ETHERNET, SNAP_BYTES))


@functools.cache
def _library() -> ctypes.CDLL:
    found = ctypes.util.find_library("pcap")
    for name in (*((found,) if found else ()), *_SONAMES):
        try:
            pcap = ctypes.CDLL(name)
        except OSError:
            continue
        pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
        pcap.pcap_create.argtypes, pcap.pcap_create.restype = (text, text), pointer
        pcap.pcap_open_dead.argtypes, pcap.pcap_open_dead.restype = (number, number), pointer
        pcap.pcap_set_snaplen.argtypes = pointer, number
        for function in (pcap.pcap_activate, pcap.pcap_datalink, pcap.pcap_close, pcap.pcap_freecode):
            function.argtypes = (pointer,)
        pcap.pcap_geterr.argtypes, pcap.pcap_geterr.restype = (pointer,), pointer
        pcap.pcap_compile.argtypes = pointer, pointer, text, number, ctypes.c_uint32
        return pcap
    raise FilterError("a filter needs libpcap, and it is not here: apt install libpcap0.8 (Fedora: libpcap)")
