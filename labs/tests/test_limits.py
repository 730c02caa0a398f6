"""What hostile or broken files meet: one line that names the place, at once, and nothing of other files' contents."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ewan.labs.base import reading
from ewan.labs.base.units import Rate, UnitError
from ewan.labs.base.values import Count
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import direction
from ewan.labs.spec import DescriptionError, Spec, load

pytestmark = pytest.mark.slow

AT_ONCE_S = 3  # of CPU; what is refused takes a fraction of it
HOST = HostFacts(cpus=(0, 1), networks=())


def refusal_of(file: Path) -> str:
    begun = time.process_time()
    with pytest.raises(DescriptionError) as refusal:
        load(file)
    assert time.process_time() - begun < AT_ONCE_S
    assert len(str(refusal.value).splitlines()) == 1
    assert str(refusal.value).isprintable()
    return str(refusal.value).removeprefix(f"{file.parent}/")


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / "x.lab.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def laughs(times: int) -> str:
    """Nine aliases of nine aliases of …"""
    first = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    return "\n".join([*first, *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, times))])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (laughs(9), "holds more than 100000 values: write fewer"),
        ("a: &a [*a]", "x.lab.yaml:1: contains itself (an alias): write it out"),
        ("[" * 50_000, "x.lab.yaml:1: is nested more than 50 deep: write fewer brackets or indentations"),
        ("[" * 5_000 + "]" * 5_000, "x.lab.yaml:1: is nested more than 50 deep"),
        ("a:\n" + "".join(" " * depth + "- \n" for depth in range(1, 200)), "is nested more than 50 deep"),
        ("\n".join(f"key{n}: 1" for n in range(150_000)), "holds more than 100000 values: write fewer"),
        ("topology: star\nseed: " + "9" * 5_000, 'x.lab.yaml:2: seed "999'),
        ("topology: star\nrtt: " + "9" * 5_000 + "ms", "write a duration as"),
        ("topology: {star: {arms: ٣}}", "write a whole number from"),
        ("topology: star\nrtt: ١٠٠ms", 'write a duration as "100ms"'),
        ('topology: star\nname: "a\\nb"', 'x.lab.yaml:2: name "a b": write a name of small letters'),
        ('topology: star\nname: "a\\u001b[31mb"', 'x.lab.yaml:2: name "a?[31mb": write a name'),
        ('topology: star\n"a\\nb": 1', "x.lab.yaml:2: a b"),
        (f"topology: star\n{'k' * 900}: 1", "unknown key"),
        ("topology: star\nname: \udcff".encode("utf-8", "surrogateescape"), "is not text in UTF-8"),
        ("topology: star\x00", "write YAML in UTF-8"),
        ("topology: star".encode("utf-16"), "is not text in UTF-8"),
        ("topology: star # Größe".encode("latin-1"), "is not text in UTF-8"),
        ("root:*:19000:0:99999:7", "x.lab.yaml:1: description: a description consists of keys"),
    ],
    ids=lambda value: None if isinstance(value, str) and len(value) < 40 else "",
)
def test_what_is_too_much_or_no_text_is_refused_in_one_line(text: str | bytes, message: str, tmp_path: Path) -> None:
    said = refusal_of(written(tmp_path, text))
    assert message in said
    assert len(said) < 400


def test_a_file_of_50_mb_is_refused_by_its_size(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    os.truncate(file, 50 << 20)
    assert "is larger than 4 MiB, the most that is read" in refusal_of(file)


def odd_files(folder: Path) -> dict[str, Path]:
    found = {"fifo": folder / "fifo.yaml", "directory": folder / "directory.yaml", "device": folder / "zero.yaml"}
    os.mkfifo(found["fifo"])
    found["directory"].mkdir()
    found["device"].symlink_to("/dev/zero")
    return found


ODD = {"fifo": "is not a regular file", "directory": "is a directory", "device": "is not a regular file"}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("key", ["loss: {pattern: {file: NAME}}", "delay: {table: NAME}", "trace: {file: NAME}", ""])
def test_only_regular_files_are_read(kind: str, key: str, tmp_path: Path) -> None:
    file = odd_files(tmp_path)[kind]
    if key:
        file = written(tmp_path, f"topology: star\nwan: {{{key.replace('NAME', file.name)}}}")
    assert ODD[kind] in refusal_of(file)


def test_a_table_of_delays_is_refused_by_its_size(tmp_path: Path) -> None:
    (tmp_path / "d.txt").touch()
    os.truncate(tmp_path / "d.txt", 17 << 20)
    said = refusal_of(written(tmp_path, "topology: star\nwan: {delay: {table: d.txt}}"))
    assert "d.txt: is larger than 16 MiB" in said


def test_tables_on_many_links_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each direction of each link has its own copy in the plan."""
    monkeypatch.setattr(direction, "MOST_TABLED", 10)
    (tmp_path / "d.txt").write_text("1ms\n2ms\n")
    (tmp_path / "t.csv").write_text("time,loss\n0s,1%\n1s,2%\n2s,\n")
    traced = written(tmp_path, "topology: {star: {arms: 3}}\nwan: {trace: {file: t.csv}}")
    with pytest.raises(DescriptionError, match="have 12 delays and losses from tables and rows of traces"):
        compile(load(traced), HOST)
    for key in ("delay: {table: d.txt}", "loss: {pattern: '01'}"):
        file = written(tmp_path, f"topology: {{star: {{arms: 3}}}}\nwan: {{{key}}}")
        with pytest.raises(DescriptionError, match="arm3 and the links before it have 12 delays and losses"):
            compile(load(file), HOST)


def test_a_table_of_a_million_delays_is_read_in_seconds(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("".join(f"{number}.5us\n" for number in range(2**20)))
    begun = time.process_time()
    assert load(written(tmp_path, "topology: star\nwan: {delay: {table: d.txt}}"))
    assert time.process_time() - begun < 2 * AT_ONCE_S
    with (tmp_path / "d.txt").open("a") as file:
        file.write("1ms\n" * 10 + "\n" * 2**20)
    assert "d.txt has 2097162 lines: write at most 1048576 delays" in refusal_of(tmp_path / "x.lab.yaml")


def test_errors_show_nothing_of_files_that_are_no_descriptions(tmp_path: Path) -> None:
    secret = tmp_path / "shadow"
    secret.write_text("root:$y$j9T$secret:19000:0:99999:7:::\n")
    with pytest.raises(DescriptionError, match=r"its name does not end in \.yaml: write the path of a description"):
        load(secret)
    for key in ("loss: {pattern: {file: shadow}}", "delay: {table: shadow}", "trace: {file: shadow}"):
        assert "secret" not in refusal_of(written(tmp_path, f"topology: star\nwan: {{{key}}}"))
    secret.write_text("10\n")
    said = refusal_of(written(tmp_path, "topology: star\nwan: {delay: {table: shadow}}"))
    assert 'shadow:1: "10": write a duration as "10ms"' in said, "what may be a delay is shown"


def test_numbers_are_of_bounded_length_and_of_ascii_digits() -> None:
    for text in ("9" * 5_000, "٣", "1" * 41):
        with pytest.raises(ValueError, match="write a whole number"):
            Count(0, 2**63).parse(text)
        with pytest.raises(UnitError):
            Rate.parse(f"{text}bit/s")
    assert Rate.parse("1000.5kbit/s").bps == 1_000_500


def test_a_file_whose_contents_the_kernel_makes_up_is_refused() -> None:
    with pytest.raises(OSError, match="is not a regular file"):
        reading.read_bytes("/proc/self/smaps", 10)


def test_a_path_with_nul_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="is no path"):
        reading.read_bytes("a\0b")


def test_an_ordinary_file_with_aliases_is_read(tmp_path: Path) -> None:
    text = "topology: {star: {arms: 2}}\nlinks:\n  arm1: &slow {rate: 1Mbit/s}\n  arm2: *slow\n"
    spec: Spec = load(written(tmp_path, text))
    assert {link.forward.rate_bps for link in compile(spec, HOST).links} == {1_000_000}
