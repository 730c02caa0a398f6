"""The layout of the private state of a congestion control, from the debug information of its compiled module.

In: a module (.ko or .o) that was compiled with `-g`, and the control's name. Out: the variables of its state, for
`congestion_state` of a traffic request (labs/record/traffic.py). The state is the struct that the module defines itself
(in its own directory) and that is called `NAME_info`, else `NAME`, else the only one to which a local variable points,
as `struct bictcp *ca = inet_csk_ca(sk);` does. A source may say it: `/* congestion_state: struct bictcp */`.

Members of structs are called `OUTER.INNER`, elements of arrays `NAME[0]`. Values of an enumeration have words: of a
member whose type is one, or of a whole number, as in a bit-field, for which the module has an enumeration called as the
struct or the control and the member are, like `enum bbr_mode` for `mode` of `struct bbr`. What all words begin
with is left out. Pointers, padding (`unused`, `pad`) and long arrays are no variables.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.elf.elffile import ELFFile

from ewan.labs.base.codec import replace
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.record.traffic import StateField
from ewan.labs.runtime.program import KernelModule

NO_STATE = "none"
STATE_BYTES = 104
"""The room that the kernel has for the state (ICSK_CA_PRIV_SIZE)."""
MOST_ELEMENTS = 8
_KNOWN = re.compile(r"[\w.\[\]]+", re.ASCII)
_SAID = re.compile(rb"\bcongestion_state:\s*(?:struct\s+)?(\w+)")
_NO_VARIABLES = ("unused", "pad", "_")
_THROUGH = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type")
_SIGNED = (0x05, 0x06)
_WHOLE = (0x02, *_SIGNED, 0x07, 0x08)
"""DW_ATE_boolean, _signed, _signed_char, _unsigned, _unsigned_char."""


class LayoutError(ValueError):
    """A module has no layout; the message is one line that says what to write."""


def said(source: ModuleSource) -> str:
    """The struct that a source says its state is; empty where it says none."""
    found = next((found for text in source.files.values() if (found := _SAID.search(text))), None)
    return found[1].decode() if found else ""


def of_modules(modules: Iterable[tuple[KernelModule, Path]]) -> tuple[dict[str, tuple[StateField, ...]], list[str]]:
    """The layouts of the private states of the controls of modules, each with its compiled file, and a line for each
    control that has none; `/* congestion_state: none */` in a source wants none."""
    found: dict[str, tuple[StateField, ...]] = {}
    without: list[str] = []
    for module, path in modules:
        struct = said(module.source)
        for name in module.controls if struct != NO_STATE else ():
            try:
                found[name] = read(path, name, struct)
            except LayoutError as error:
                why = str(error).removeprefix(f"{path}: ")
                without.append(f"the series has no columns of the state of {name}: {module.source.file}: {why}")
    return found, without


@functools.lru_cache(maxsize=64)
def read(path: Path, name: str, struct: str = "") -> tuple[StateField, ...]:
    """The variables of the control's state in the order of their places; `struct`: the name of the struct, where it is
    none that the rule finds. LayoutError; OSError where the module cannot be read."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            if not elf.has_dwarf_info(strict=True):
                raise LayoutError(f"{path}: has no debug information: compile it with -g")
            return _of(_Module(elf.get_dwarf_info()), path, name, struct)
    except LayoutError:
        raise
    except (ELFError, DWARFError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise LayoutError(f"{path}: is no compiled module ({error or type(error).__name__})") from None


def _of(module: _Module, path: Path, name: str, struct: str) -> tuple[StateField, ...]:
    wanted = (struct,) if struct else (f"{name}_info", name)
    chosen = next((each for each in wanted if each in module.structs), None)
    if chosen is None and not struct and len(module.pointed) == 1:
        (chosen,) = module.pointed
    if chosen is None:
        known = ", ".join(module.structs) or "none"
        raise LayoutError(
            f"{path}: no struct is the state of {name}: call it {wanted[0]}, or write /* congestion_state: struct NAME "
            f"*/ into the source (it defines {known})"
        )
    die = module.structs[chosen]
    if (size := _number(die, "DW_AT_byte_size")) > STATE_BYTES:
        raise LayoutError(f"{path}: struct {chosen} has {size} bytes: a control has {STATE_BYTES}")
    fields = [field for field in _members(die, 0, "") if _KNOWN.fullmatch(field.name)]
    if not fields:
        raise LayoutError(f"{path}: struct {chosen} has no variables that are whole numbers")
    return tuple(_words(field, module, (chosen, name)) for field in fields)


class _Module:
    """The types that a module defines: structs and enumerations by their names, and structs that variables point to."""

    def __init__(self, debug: DWARFInfo) -> None:
        self.structs: dict[str, DIE] = {}
        self.enums: dict[str, DIE] = {}
        self.pointed: set[str] = set()
        for unit in debug.iter_CUs():
            source = _name(unit.get_top_DIE())
            if source.endswith((".mod.c", "module-common.c")):
                continue
            own = _own_files(debug, unit, source)
            for die in unit.get_top_DIE().iter_children():
                if _number(die, "DW_AT_decl_file", -1) not in own or not _name(die):
                    continue
                if die.tag == "DW_TAG_structure_type" and "DW_AT_declaration" not in die.attributes:
                    self.structs.setdefault(_name(die), die)
                elif die.tag == "DW_TAG_enumeration_type":
                    self.enums.setdefault(_name(die), die)
            self.pointed |= {name for name in _pointed(unit) if name in self.structs}


def _own_files(debug: DWARFInfo, unit: CompileUnit, source: str) -> set[int]:
    """The numbers of the files that lie in the directory of the unit's source."""
    program = debug.line_program_for_CU(unit)
    if program is None:
        return set()
    header, first = program.header, 0 if program.header["version"] >= 5 else 1
    place = _text(unit.get_top_DIE(), "DW_AT_comp_dir")
    home = Path(place, source).parent
    directories = [place] * first + [_decoded(each) for each in header["include_directory"]]
    return {
        number
        for number, entry in enumerate(header["file_entry"], first)
        if Path(place, directories[entry.dir_index], _decoded(entry.name)).parent == home
    }


def _pointed(unit: CompileUnit) -> Iterator[str]:
    """The structs that local variables of functions point to."""
    for die in unit.iter_DIEs():
        if die.tag == "DW_TAG_variable" and "DW_AT_type" in die.attributes:
            kind = _kind(die)
            if kind.tag == "DW_TAG_pointer_type" and "DW_AT_type" in kind.attributes:
                yield _name(_kind(kind))


def _members(struct: DIE, base: int, prefix: str) -> Iterator[StateField]:
    for member in struct.iter_children():
        if member.tag != "DW_TAG_member":
            continue
        name, kind = _name(member), _kind(member)
        if name.startswith(_NO_VARIABLES):
            continue
        bits = _number(member, "DW_AT_bit_size")
        if bits and (size := _number(kind, "DW_AT_byte_size")) in (1, 2, 4, 8):
            first = base * 8 + _first_bit(member, size)
            # In the word of its type, unless it is packed across two of these.
            at = first // 8 // size * size
            if first + bits > (at + size) * 8:
                at, size = first // 8, 8
            at = min(at, STATE_BYTES - size)
            yield StateField(prefix + name, at, size, _signed(kind), first - at * 8, bits)
        elif not bits:
            place = base + _number(member, "DW_AT_data_member_location")
            yield from _variables(kind, place, prefix + name)


def _variables(kind: DIE, place: int, name: str) -> Iterator[StateField]:
    """The variables of a type at a place: a struct and an array have several."""
    if kind.tag in ("DW_TAG_structure_type", "DW_TAG_union_type"):
        yield from _members(kind, place, f"{name}." if name else "")
    elif kind.tag == "DW_TAG_array_type":
        counts = [_elements(each) for each in kind.iter_children() if each.tag == "DW_TAG_subrange_type"]
        element = _kind(kind)
        if len(counts) == 1 and counts[0] <= MOST_ELEMENTS:
            for number in range(counts[0]):
                size = _number(element, "DW_AT_byte_size")
                yield from _variables(element, place + number * size, f"{name}[{number}]")
    elif kind.tag == "DW_TAG_enumeration_type":
        size = _number(kind, "DW_AT_byte_size")
        yield StateField(name, place, size, _signed(kind), values=_values(kind))
    elif kind.tag == "DW_TAG_base_type" and _number(kind, "DW_AT_encoding") in _WHOLE:
        size = _number(kind, "DW_AT_byte_size")
        yield from [StateField(name, place, size, _signed(kind))] * (size in (1, 2, 4, 8))


def _first_bit(member: DIE, size: int) -> int:
    """The first bit of a bit-field, from the struct's lowest; compilers before DWARF 4 count from the other end."""
    if "DW_AT_data_bit_offset" in member.attributes:
        return _number(member, "DW_AT_data_bit_offset")
    bits, from_top = _number(member, "DW_AT_bit_size"), _number(member, "DW_AT_bit_offset")
    return _number(member, "DW_AT_data_member_location") * 8 + size * 8 - from_top - bits


def _words(field: StateField, module: _Module, owners: Sequence[str]) -> StateField:
    """With words of the enumeration that is called as it is."""
    named = next((name for owner in owners if (name := f"{owner}_{field.name}") in module.enums), None)
    return field if field.values or named is None else replace(field, values=_values(module.enums[named]))


def _values(enum: DIE) -> dict[str, str]:
    words = {
        str(_number(each, "DW_AT_const_value")): _name(each)
        for each in enum.iter_children()
        if each.tag == "DW_TAG_enumerator"
    }
    first = next(iter(words.values()), "")
    shared = (first[: place + 1] for place in range(len(first) - 1, -1, -1) if first[place] == "_")
    cut = next((begin for begin in shared if all(word.startswith(begin) for word in words.values())), "")
    return {value: word.removeprefix(cut) or word for value, word in words.items()} if len(words) > 1 else words


def _elements(subrange: DIE) -> int:
    if "DW_AT_count" in subrange.attributes:
        return _number(subrange, "DW_AT_count")
    return _number(subrange, "DW_AT_upper_bound", -1) + 1


def _kind(die: DIE) -> DIE:
    """Its type, without names and qualifiers."""
    found = die.get_DIE_from_attribute("DW_AT_type")
    while found.tag in _THROUGH and "DW_AT_type" in found.attributes:
        found = found.get_DIE_from_attribute("DW_AT_type")
    return found


def _signed(kind: DIE) -> bool:
    if kind.tag == "DW_TAG_enumeration_type":
        return any(_number(each, "DW_AT_const_value") < 0 for each in kind.iter_children())
    return _number(kind, "DW_AT_encoding") in _SIGNED


def _number(die: DIE, attribute: str, default: int = 0) -> int:
    found = die.attributes.get(attribute)
    return found.value if found is not None and isinstance(found.value, int) else default


def _name(die: DIE) -> str:
    return _text(die, "DW_AT_name")


def _text(die: DIE, attribute: str) -> str:
    found = die.attributes.get(attribute)
    return "" if found is None else _decoded(found.value)


def _decoded(text: bytes | str) -> str:
    return text.decode(errors="replace") if isinstance(text, bytes) else text
