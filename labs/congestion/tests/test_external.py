"""The protocol of external controllers is the same in the kernel's module, in Python and on its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ewan.labs.base.product import ROOT
from ewan.labs.congestion import external_program
from ewan.labs.congestion.external import Channel, EventRecord, ProtocolError, WindowAnswer, pack, unpack
from ewan.labs.runtime.base import LabError

PAGE = ROOT / "docs/how-to/experiments/external-controller.md"
BYTES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
HEAD = ["magic", "version", "bytes"]


def in_c(name: str) -> list[tuple[int, str, int]]:
    """The fields of a struct of the module: offset, name and bytes."""
    found = re.search(rf"^struct {name} {{\n(.*?)^}};", external_program.SOURCE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    fields, place = [], 0
    for kind, field, count in re.findall(r"^\t(u\d+)\t(\w+)(?:\[(\d+)\])?;$", found[1], re.MULTILINE):
        size = BYTES[kind] * int(count or 1)
        assert place % BYTES[kind] == 0, field  # there is no padding
        fields.append((place, field, size))
        place += size
    return fields


def on_page(begin: str, end: str) -> list[tuple[int, str, int]]:
    """The fields of a table of the page."""
    table = PAGE.read_text().split(begin)[1].split(end)[0]
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (?:u(\d+)|(\d+) bytes) \|", table, re.MULTILINE)
    return [(int(place), name, int(bits or 0) // 8 or int(size)) for place, name, bits, size in rows]


def test_the_page_has_the_fields_of_the_module() -> None:
    assert on_page("A record has 160 bytes", "An answer has 48 bytes") == in_c("external_record")
    assert on_page("An answer has 48 bytes", "## Limits") == in_c("external_answer")


def test_python_has_the_fields_of_the_module() -> None:
    assert [name for _, name, _ in in_c("external_record")] == [*HEAD, *EventRecord._fields]
    assert [name for _, name, _ in in_c("external_answer")] == [*HEAD, "flow", *WindowAnswer._fields, "reserved"]
    answer = pack(7, WindowAnswer(1, 2, 30_000, 4, 5, 2))
    values = [int.from_bytes(answer[place : place + size], "little") for place, _, size in in_c("external_answer")]
    assert values == [0x4E415745, 1, 48, 7, 1, 2, 30_000, 4, 5, 2, 0]
    sent = b"".join(number.to_bytes(size, "little") for number, (_, _, size) in enumerate(in_c("external_record")))
    record = unpack(b"EWAN\1\0\xa0\0" + sent[8:])
    known = [value if isinstance(value, int) else value[0] for value in record]
    assert known == list(range(3, 3 + len(record)))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (WindowAnswer(cwnd_packets=-1), "cwnd_packets is -1: write a whole number from 1 to 2147483647"),
        (WindowAnswer(cwnd_packets=1 << 32), "cwnd_packets is 4294967296"),
        (WindowAnswer(cwnd_packets=float("nan")), "cwnd_packets is nan"),  # type: ignore[arg-type]
        (WindowAnswer(pacing_rate=1.5), "pacing_rate is 1.5"),  # type: ignore[arg-type]
        (WindowAnswer(interval_ns=1), "interval_ns is 1: write a whole number from 10000"),
        (WindowAnswer(ask=32), "ask is 32: write a whole number from 1 to 31"),
        (WindowAnswer(reduction=3), "reduction is 3"),
        (WindowAnswer(ssthresh_packets=1 << 31), "ssthresh_packets is 2147483648"),
        (WindowAnswer(pacing_rate=1 << 64), "pacing_rate is 18446744073709551616"),
    ],
)
def test_a_number_that_no_answer_can_have_is_refused(answer: WindowAnswer, why: str) -> None:
    with pytest.raises(ProtocolError, match=re.escape(why)):
        pack(0, answer)


def test_a_message_that_is_no_record_is_refused() -> None:
    for message in (b"hello", b"h" * 160):
        with pytest.raises(ProtocolError):
            unpack(message)


def test_a_program_that_nobody_serves_says_how_to_start_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EWAN_CONTROLLER", raising=False)
    with pytest.raises(ProtocolError, match="ewan transfer --program"):
        Channel()


def test_the_words_of_a_program(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.touch()
    assert external_program.of_user(f"{script} --gain 2").argv == (str(script), "--gain", "2")
    assert external_program.of_user("env python3 mine.py").argv == ("env", "python3", "mine.py")
    plain = tmp_path / "mine"
    plain.touch()
    for text, why in [
        ("", "write a program"),
        ('"', "no closing quotation: close the quotes"),
        (f"{tmp_path}/other.py", "no such file"),
        (f"{tmp_path}/other", "no such program"),
        (str(plain), "chmod"),
    ]:
        with pytest.raises(LabError, match=why):
            external_program.of_user(text)


def test_the_files_of_a_program(tmp_path: Path) -> None:
    folder = tmp_path / "scenario"
    (folder / "weights/old").mkdir(parents=True)
    (folder / "mine.py").write_text("1")
    (folder / "weights/a").write_text("2")
    (folder / "weights/old/b").write_text("3")
    found = external_program.files(folder, ["./mine.py", "weights"])
    assert found == {"mine.py": b"1", "weights/a": b"2", "weights/old/b": b"3"}
    (tmp_path / "other").touch()
    (folder / "link").symlink_to(tmp_path / "other")
    (folder / "large").write_bytes(bytes(external_program.MOST_BYTES + 1))
    for name, why in [
        ("missing", "there is no such file"),
        ("../other", "outside of the scenario's folder"),
        ("link", "outside of the scenario's folder"),
        ("large", "at most 4 MiB together"),
    ]:
        with pytest.raises(LabError, match=why):
            external_program.files(folder, [name])
