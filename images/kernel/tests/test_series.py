"""The series of patches as data, and what comes of it on trees that are not the default one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from images.kernel import own, series, sources
from images.kernel.build import HERE, ROOT, Build
from images.kernel.series import Patch, SeriesError, Text

HELLO = "--- a/hello.c\n+++ b/hello.c\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n"
SAID = "Subject: a change\nNeeded-for: {}\nWithout-it: Something is lost.\n\n---\n"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def patch_of(folder: Path, kind: str, text: str = HELLO) -> Patch:
    written(folder / "0001-hello.patch", SAID.format(kind) + text)
    return series.read(folder)[0]


def test_each_patch_says_what_it_is_for_and_those_for_exact_time_come_first() -> None:
    found = series.read(HERE / "patches")
    assert len(found) == len(list((HERE / "patches").glob("*.patch")))
    kinds = [series.KINDS.index(patch.kind) for patch in found[:26]]  # later ones were added at the end
    assert kinds == sorted(kinds)
    assert all(patch.lost.endswith(".") for patch in found)
    assert any(len(patch.texts) > 1 for patch in found)


def test_the_key_of_the_default_kernel_has_no_text_for_another(tmp_path: Path) -> None:
    build = Build(tmp_path, HERE / "patches", [], None)
    assert all(path.parent == HERE / "patches" for path in build.patches)


@pytest.mark.parametrize("head", ["Subject: x\n\n---\n", SAID.format("fun"), "Needed-for: speed\n\n---\n"])
def test_a_patch_that_does_not_say_what_it_is_for_is_refused(tmp_path: Path, head: str) -> None:
    written(tmp_path / "0001-x.patch", head + HELLO)
    with pytest.raises(SeriesError, match=r"0001-x.patch: write what it is for into its first lines"):
        series.read(tmp_path)


def test_a_text_for_a_newer_kernel_without_its_patch_is_refused(tmp_path: Path) -> None:
    patch_of(tmp_path, "speed")
    written(tmp_path / "7.3/0002-other.patch", HELLO)
    with pytest.raises(SeriesError, match=r"0002-other.patch: .* has no patch of this name"):
        series.read(tmp_path)


def test_the_text_that_fits_the_version_is_tried_first(tmp_path: Path) -> None:
    for version in ("6.18", "7.3"):
        written(tmp_path / version / "0001-hello.patch", HELLO)
    patch = patch_of(tmp_path, "speed")

    def order(*version: int) -> list[str]:
        return [text.path.parent.name for text in patch.texts_for(version)]

    assert order(6, 12, 1)[0] == tmp_path.name
    assert order(6, 19)[:2] == ["6.18", tmp_path.name]
    assert order(7, 3, 4)[:2] == ["7.3", "6.18"]


def test_a_patch_applies_whole_or_not_at_all(tmp_path: Path) -> None:
    files = tmp_path / "files"
    both = HELLO + HELLO.replace("hello", "other")
    text = Text(written(tmp_path / "both.patch", both))
    written(files / "hello.c", "one\ntwo\nthree\n")
    assert series.apply(text, files, 0) == "the tree has no other.c"
    written(files / "other.c", "one\nthree\nfour\n")
    assert series.apply(text, files, 0) == "other.c, hunk 1 at line 1"
    assert (files / "hello.c").read_text() == "one\ntwo\nthree\n"
    written(files / "other.c", "one\ntwo\nthree\n")
    assert series.apply(text, files, 0) == ""
    assert (files / "hello.c").read_text() == (files / "other.c").read_text() == "one\nzwei\nthree\n"
    assert series.apply(text, files, 0) == "hello.c has this change already"


def test_a_patch_changes_no_file_outside_of_the_tree(tmp_path: Path) -> None:
    text = Text(written(tmp_path / "out.patch", HELLO.replace("/hello.c", "/../hello.c")))
    (tmp_path / "files").mkdir()
    assert series.apply(text, tmp_path / "files", 0) == "../hello.c is no file of the tree"


def test_what_comes_of_a_patch_is_told(tmp_path: Path) -> None:
    files, patches = tmp_path / "files", tmp_path / "patches"
    patch = patch_of(patches, "exactness")
    written(files / "hello.c", "one\nthree\nfour\n")
    told = own.applied(patch, (6, 12), files)
    assert (told["state"], told["why"]) == ("does not apply", "hello.c, hunk 1 at line 1")
    written(patches / "7.3/0001-hello.patch", HELLO.replace(" one\n-two\n", "-one\n").replace("-1,3", "-1,2"))
    written(files / "hello.c", "one\nthree\n")
    assert own.applied(series.read(patches)[0], (6, 12), files)["state"] == "does not apply"
    has = SAID.replace("\n\n---", "\nNot-needed-with: hello.c: has it: \n\n---")
    written(patches / "0001-hello.patch", has.format("speed") + HELLO)
    written(files / "hello.c", "/* has it: here */\n")
    assert own.applied(series.read(patches)[0], (7, 3), files)["state"] == "in the tree"


FLAGS = """/* Wants to be told of CE. */
#define TCP_CONG_WANTS_CE_EVENTS\t0x4
#define TCP_CONG_MASK\t(TCP_CONG_NEEDS_ECN | \\
\t\t\t TCP_CONG_WANTS_CE_EVENTS)

static inline bool tcp_ca_needs_ecn(const struct sock *sk)
{
\tconst struct inet_connection_sock *icsk = inet_csk(sk);

\treturn icsk->icsk_ca_ops->flags & TCP_CONG_NEEDS_ECN;
}

static inline void tcp_ca_event(struct sock *sk, const enum tcp_ca_event event)
{
\tconst struct inet_connection_sock *icsk = inet_csk(sk);
}
"""


def test_ect_1_is_there_beside_a_patch_that_has_the_next_flag_of_congestion_controls(tmp_path: Path) -> None:
    """BBRv3 of Google has flag 4, and changes the functions of TCP that mark."""
    patch = next(each for each in series.read(HERE / "patches") if "ect-1" in each.name)
    header = written(tmp_path / "files/include/net/tcp.h", FLAGS)
    assert own.applied(patch, (6, 12), tmp_path / "files")["state"] == "applied"
    number = re.search(r"define TCP_CONG_ECT_1\s+(\w+)", header.read_text())
    assert number is not None
    assert int(number[1], 0) > 4


def test_a_series_of_ones_own_is_in_the_order_of_quilt(tmp_path: Path) -> None:
    for name in ("b.patch", "a.patch", "sub/c.diff"):
        written(tmp_path / name, HELLO)
    assert [text.path.name for text in series.own(tmp_path)] == ["a.patch", "b.patch"]
    written(tmp_path / "series", "# first\nsub/c.diff -p0\n\nb.patch # last\n")
    assert [(text.path.name, text.strip) for text in series.own(tmp_path)] == [("c.diff", 0), ("b.patch", 1)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("none.patch", "series:1: none.patch: there is no such file"),
        ("../out.patch", "series:1: ../out.patch: there is no such file"),
        ("a.patch -R", "series:1: -R: write the name of a patch, and -p0 or -p1 behind it"),
    ],
)
def test_a_series_that_cannot_be_read_is_refused_by_its_line(tmp_path: Path, line: str, why: str) -> None:
    written(tmp_path / "out.patch", HELLO)
    written(tmp_path / "patches/a.patch", HELLO)
    written(tmp_path / "patches/series", f"{line}\n")
    with pytest.raises(SeriesError, match=why):
        series.own(tmp_path / "patches")
    with pytest.raises(SeriesError, match="there is no patch in it"):
        series.own(written(tmp_path / "empty/x", "").parent)


MAKEFILE = "VERSION = 6\nPATCHLEVEL = 19\nSUBLEVEL = 0\n"


def tree(place: Path, *, um: bool = True, time: bool = True) -> Path:
    """A tree that looks like Linux's source, as far as that is looked at before anything is built."""
    written(place / "Makefile", MAKEFILE)
    if um:
        written(place / "arch/um/Kconfig", "config UML_TIME_TRAVEL_SUPPORT\n" if time else "config UML\n")
        (place / "arch/x86/um").mkdir(parents=True)
    return place


def refused(tmp_path: Path, *words: str) -> str:
    """The last line of a build that ends with status 2."""
    for name in ("work", "out"):
        (tmp_path / name).mkdir(exist_ok=True)
    command = [sys.executable, "-P", "-m", "images.kernel.own", "--name", "mine", "--work", str(tmp_path / "work")]
    command += ["--default", str(tmp_path / "kernel"), "--out", str(tmp_path / "out"), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    return done.stderr.splitlines()[-1].removeprefix(own.FAULT)


def test_what_is_no_source_of_linux_is_refused(tmp_path: Path) -> None:
    assert "there is no such file or directory" in refused(tmp_path, "--source", str(tmp_path / "none"))
    (tmp_path / "empty").mkdir()
    assert "is no source of Linux: it has no Makefile" in refused(tmp_path, "--source", str(tmp_path / "empty"))
    other = written(tmp_path / "other.tar.xz", "no archive at all")
    assert "is no archive that tar reads" in refused(tmp_path, "--source", str(other))
    with tarfile.open(tmp_path / "else.tar.gz", "w:gz") as archive:
        archive.add(written(tmp_path / "else/readme", "something else").parent, "else")
    assert "is no source of Linux" in refused(tmp_path, "--source", str(tmp_path / "else.tar.gz"))
    without = tree(tmp_path / "without", um=False)
    assert "Linux 6.19.0 has no arch/um" in refused(tmp_path, "--source", str(without))
    old = tree(tmp_path / "old", time=False)
    assert "has no simulated time (UML_TIME_TRAVEL_SUPPORT)" in refused(tmp_path, "--source", str(old))


def archive_of(path: Path, *members: tuple[str, bytes, str]) -> Path:
    """An archive of members: a name, its type and where it links to."""
    with tarfile.open(path, "w:gz") as archive:
        for name, kind, target in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
    return path


@pytest.mark.parametrize(
    ("name", "kind", "target", "why"),
    [
        ("../../out", tarfile.REGTYPE, "", "Member name contains '..'"),
        ("l/passwd", tarfile.LNKTYPE, "/etc/passwd", "Cannot hard link to"),
        ("l/Makefile", tarfile.FIFOTYPE, "", "is no source of Linux: it has no Makefile"),
    ],
)
def test_an_archive_with_what_is_no_file_of_a_tree_is_refused(
    tmp_path: Path, name: str, kind: bytes, target: str, why: str
) -> None:
    archive = archive_of(tmp_path / "strange.tar.gz", ("l/readme", tarfile.REGTYPE, ""), (name, kind, target))
    assert why in refused(tmp_path, "--source", str(archive))
    assert not list(tmp_path.glob("**/out/*"))


def test_an_archive_that_links_to_a_tree_takes_no_file_from_there(tmp_path: Path) -> None:
    source = tree(tmp_path / "tree")
    archive = archive_of(tmp_path / "link.tar.gz", ("linux", tarfile.SYMTYPE, str(source)))
    assert "is no source of Linux" in refused(tmp_path, "--source", str(archive))
    assert (source / "Makefile").read_text() == MAKEFILE


def test_a_tree_is_found_in_an_archive_beside_other_files(tmp_path: Path) -> None:
    source = tree(tmp_path / "tree")
    written(tmp_path / "readme", "ours")
    with tarfile.open(tmp_path / "both.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "readme", "readme")
        archive.add(source, "linux-6.19")
    assert "this Linux 6.19.0 cannot run" in refused(tmp_path, "--source", str(tmp_path / "both.tar.gz"))


def test_a_tree_without_a_place_for_exact_time_is_refused_with_what_would_be_lost(tmp_path: Path) -> None:
    line = refused(tmp_path, "--source", str(tree(tmp_path / "tree")))
    assert line.startswith(
        "this Linux 6.19.0 cannot run in exact simulated time: 0001-um-time-travel-with-a-resolution-of-1-ns.patch "
        "does not apply (the tree has no arch/um/include/linux/time-internal.h), and without it: The clock ticks in"
    )
    assert "; nor do 0002-" in line and line.endswith("and others")


def test_a_patch_of_ones_own_that_does_not_apply_is_named_with_its_piece(tmp_path: Path) -> None:
    written(tmp_path / "patches/0007-mine.patch", HELLO)
    source = tree(tmp_path / "tree")
    words = ("--source", str(source), "--patches", str(tmp_path / "patches"))
    assert refused(tmp_path, *words) == "0007-mine.patch does not apply: the tree has no hello.c"
    written(source / "hello.c", "one\nthree\nfour\n")
    assert refused(tmp_path, *words) == "0007-mine.patch does not apply: hello.c, hunk 1 at line 1"


def test_the_copy_of_a_tree_is_written_where_it_changed_and_nowhere_else(tmp_path: Path) -> None:
    source = tree(tmp_path / "tree")
    for name in ("a.c", "old.o", "include/generated/x.h", "folder/b.c"):
        written(source / name, "one")
    (source / "link").symlink_to("/etc/hostname")
    os.mkfifo(source / "pipe")
    made = own.Own(written(tmp_path / "work/mine/x", "").parent, tmp_path, [])
    kind = sources.Source(source, False, "tree", "tree")
    first = made.mirror(kind)
    assert (made.tree / "a.c").read_text() == "one" and (made.tree / "link").is_symlink()
    assert not (made.tree / "old.o").exists() and not (made.tree / "include").exists()
    assert not (made.tree / "pipe").exists()
    before = (made.tree / "folder/b.c").stat().st_mtime_ns
    assert made.mirror(kind) == first
    written(source / "a.c", "two")
    (source / "folder/b.c").touch()
    second = made.mirror(kind)
    assert second != first and (made.tree / "a.c").read_text() == "two"
    assert (made.tree / "folder/b.c").stat().st_mtime_ns == before  # make compiles nothing for it
    (source / "a.c").unlink()
    made.mirror(kind)
    assert not (made.tree / "a.c").exists()


def test_no_link_of_a_tree_leads_its_copy_elsewhere(tmp_path: Path) -> None:
    source = tree(tmp_path / "tree")
    (tmp_path / "outside").mkdir()
    (source / "net").symlink_to(tmp_path / "outside")
    line = refused(tmp_path, "--source", str(source))
    assert "cannot run" in line or "a symbolic link leads out of the tree" in line
    assert list((tmp_path / "outside").iterdir()) == []


def test_the_commit_of_a_tree_is_read_without_git(tmp_path: Path) -> None:
    assert sources.commit(tmp_path) == ""
    number = "0123456789" * 4
    written(tmp_path / ".git/HEAD", "ref: refs/heads/mine\n")
    written(tmp_path / ".git/packed-refs", f"# pack-refs\n{number} refs/heads/mine\n")
    assert sources.commit(tmp_path) == number
    written(tmp_path / "other/.git", "gitdir: ../.git/worktrees/other\n")
    written(tmp_path / ".git/worktrees/other/HEAD", "ref: refs/heads/mine\n")
    written(tmp_path / ".git/worktrees/other/commondir", "../..\n")
    assert sources.commit(tmp_path / "other") == number
    written(tmp_path / ".git/HEAD", "\n")
    assert sources.commit(tmp_path) == ""


def test_a_control_that_the_tree_has_itself_is_its_own(tmp_path: Path) -> None:
    patched, pristine = tmp_path / "patched", tmp_path / "pristine"
    theirs = 'config TCP_CONG_PRAGUE\n\ttristate "TCP Prague"\n\thelp\n\t  Theirs.\n\n'
    ours = 'config TCP_CONG_PRAGUE\n\tbool "TCP Prague"\n\thelp\n\t  Ours.\n\n'
    written(patched / "net/ipv4/Kconfig", f"config A\n\tbool\n\n{ours}config B\n\tbool\n\n{theirs}endif\n")
    line = "obj-$(CONFIG_TCP_CONG_PRAGUE) += tcp_prague.o\n"
    written(patched / "net/ipv4/Makefile", line * 2)
    written(pristine / "net/ipv4/tcp_prague.c", "theirs")
    assert own.of_the_tree(patched, pristine) == {"prague": "the tree has its own"}
    text = (patched / "net/ipv4/Kconfig").read_text()
    assert "Theirs." in text and "Ours." not in text and "config A" in text and "config B" in text
    assert (patched / "net/ipv4/Makefile").read_text() == line


def test_the_first_message_of_a_compiler_is_told() -> None:
    said = "  CC x.o\nnet/x.c:3:1: error: no such thing\nmake[2]: *** [x.o] Error 1\n"
    assert own.first_error(said) == ": net/x.c:3:1: error: no such thing"
    assert own.first_error(json.dumps("nothing")) == ""
