"""Builds a kernel of one's own for the virtual clock: of a tree, of an archive, of a newer kernel of Debian's, or of
the default one's source with a series of patches.

Called by labs/kernels. In: the source, patches of one's own, and the words that start a command in the sandbox: a
stranger's tree executes its Makefiles. Out: the kernel, its configuration and its headers in a directory, and on
standard output a line of JSON that says what went in. Progress and faults (one line, status 2) go to standard error.
Below the working directory each kernel has the copy of its tree, so that a changed file costs seconds.

Where a patch of ours does not apply, one for speed or for more features is left out; without one that exact time needs,
the tree is refused. So are our congestion controls left out that do not compile for a tree, or that it has itself.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, NoReturn

from images.kernel import build, series, sources
from images.kernel.build import HERE, MODEL_OBJECT, OWN, say
from images.kernel.series import Patch, Text, Version
from images.kernel.sources import Source, SourceError

FAULT = "kernel: fault: "
"""The beginning of the line by which this program ends; other lines say what it does."""
FUZZ = 2
"""Lines at the ends of a hunk that a tree may have otherwise, as of `patch` itself."""
CONTROLS = {name.removeprefix("net/ipv4/tcp_")[:-2]: name for name in OWN.values() if name.startswith("net/ipv4/")}
"""Our congestion controls, each with its file."""
CONTROLS_PATCH = "build-our-congestion-controls"
# Without these a lab cannot be made, or its time is not exact; what else a tree does not know is left out.
ESSENTIAL = "64BIT UML_TIME_TRAVEL_SUPPORT STATIC_LINK HOSTFS HIGH_RES_TIMERS HZ_PERIODIC MODULES BLOCK BINFMT_ELF"
ESSENTIAL += " NET PACKET INET IPV6 NETDEVICES NET_CORE VETH BRIDGE NET_NS UTS_NS PID_NS TMPFS PROC_FS SYSFS EPOLL"
ESSENTIAL += " TIMERFD NET_SCHED NET_SCH_PSP NET_SCH_EWAN NET_SCH_NETEM NET_CLS_ACT INET_DIAG TCP_CONG_ADVANCED"
MOST_NAMES = 6


class Own(build.Build):
    """The build of one such kernel. `wall`: the words that start a command in the sandbox."""

    def __init__(self, place: Path, model: Path, wall: list[str]) -> None:
        fragments = [HERE / "fragment.config", place / "tree.config", place / "left-out.config"]
        super().__init__(place, place / "none", fragments, None, "none")
        self.wall = wall
        self.model_place = model
        self.pristine, self.patched = place / "pristine", place / "patched"
        self.left_out: dict[str, str] = {}  # congestion controls, each with the reason

    def make(self, log: IO[bytes], *arguments: str) -> subprocess.Popen[bytes]:
        """Starts make in the tree, in the sandbox."""
        temporary = self.tree / ".ewan-tmp"
        temporary.mkdir(exist_ok=True)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": str(temporary), **build.REPRODUCIBLE}
        # `linux` is another name of vmlinux, and in the sandbox no link can be made.
        wanted = ["vmlinux" if each == "linux" else each for each in arguments]
        command = ["make", "-C", str(self.tree), "ARCH=um", *wanted]
        if self.wall:
            command = [*self.wall, "--build", str(self.tree), "--", *command]
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def mirror(self, source: Source) -> str:
        """Makes the tree the source's, before any patch; only files whose bytes are others are written. Returns the
        SHA-256 of all."""
        note = self.target / "files.json"
        stamp = self.tree / ".ewan-source"
        kept = self.is_unpacked("")
        if not kept:
            for path in (self.tree, self.pristine):
                shutil.rmtree(path, ignore_errors=True)
            note.unlink(missing_ok=True)
            self.tree.mkdir(parents=True)
            stamp.write_text("")
            (self.tree / ".ewan-unpacked").write_text(build.unpacked_at(stamp))
        known: dict[str, list[Any]] = json.loads(note.read_text()) if note.exists() else {}
        patched = self.known_names()
        now: dict[str, list[Any]] = {}
        there = dict(sources.files(source.directory))
        for name in known.keys() - there.keys():
            (self.pristine / name if name in patched else self.tree / name).unlink(missing_ok=True)
        for name, found in there.items():
            path, before = source.directory / name, known.get(name)
            seen = [found.st_size, found.st_mtime_ns]
            if before is not None and before[:2] == seen:
                now[name] = before
                continue
            link = path.is_symlink()
            if not link and not path.is_file():
                continue  # a socket, or a device
            digest = f"-> {path.readlink()}" if link else build.sha256(path)
            now[name] = [*seen, digest]
            if before is not None and before[2] == digest:
                continue
            target = self.pristine / name if name in patched else self.tree / name
            within(target.parent, self.target).mkdir(parents=True, exist_ok=True)
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            if source.mine:
                path.rename(target)
                if not link:
                    os.utime(target)
            else:
                target.unlink(missing_ok=True)
                if link:
                    target.symlink_to(path.readlink())
                else:
                    shutil.copy(path, target)
                    target.chmod(target.stat().st_mode | 0o600)
        note.write_text(json.dumps(now))
        return sources.digest({name: entry[2] for name, entry in now.items()})

    def known_names(self) -> set[str]:
        """The files that a patch ever touched, whose originals are kept apart."""
        listed = self.pristine / ".names"
        return set(listed.read_text().split("\n")) - {""} if listed.exists() else set()

    def changed(self, own: list[Text], ours: list[Patch], version: Version, log: IO[bytes]) -> list[dict[str, str]]:
        """Applies one's own patches and ours to the tree, and returns what came of each of ours."""
        texts = [*own, *(text for patch in ours for text in patch.texts)]
        names = {*OWN.values(), MODEL_OBJECT}.union(*(text.names() for text in texts))
        names |= {patch.tree_has[0] for patch in ours if patch.tree_has}
        known = self.known_names()
        self.pristine.mkdir(exist_ok=True)
        for name in sorted(names - known):
            if (self.tree / name).is_file():
                build.copy(within(self.tree / name, self.tree), self.pristine / name)
        names |= known
        (self.pristine / ".names").write_text("\n".join(sorted(names)) + "\n")
        shutil.rmtree(self.patched, ignore_errors=True)
        self.patched.mkdir()
        for name in sorted(names):
            if (self.pristine / name).is_file():
                build.copy(within(self.pristine / name, self.pristine), self.patched / name)
        for text in own:
            if why := series.apply(text, self.patched, FUZZ):
                raise SourceError(f"{text.path.name} does not apply: {why}")
        result = [applied(patch, version, self.patched) for patch in ours]
        fatal = [each for each in result if each["state"] == "does not apply" and each["kind"] == "exactness"]
        if fatal:
            raise SourceError(cannot_run(version, fatal))
        if any(CONTROLS_PATCH in each["name"] and each["state"] != "applied" for each in result):
            self.left_out = dict.fromkeys(CONTROLS, "the patch that builds it does not apply")
        else:
            self.left_out = of_the_tree(self.patched, self.pristine)
        skipped = {CONTROLS[name] for name in self.left_out}
        model = model_of(self.model_place, log)
        for path, name in {**OWN, model: MODEL_OBJECT}.items():
            if name not in skipped:
                build.copy(path, self.patched / name)
        for name in sorted(names):
            here, there = self.patched / name, self.tree / name
            within(there.parent, self.tree)
            if not here.exists():
                there.unlink(missing_ok=True)
            elif not there.exists() or there.is_symlink() or here.read_bytes() != there.read_bytes():
                there.unlink(missing_ok=True)
                build.copy(here, there)
        return result

    def configured(self, log: IO[bytes]) -> list[str]:
        """Writes the configuration, and returns the options of ours that the tree has not."""
        wanted = self.fragment_of(0)
        there = "".join((self.tree / name).read_text() for name in ("net/ipv4/Kconfig", "net/sched/Kconfig"))
        more = re.findall(r"^config ((?:TCP_CONG|NET_SCH)_\w+)$", there, re.MULTILINE)
        lines = [f"CONFIG_{name}=y\n" for name in dict.fromkeys(more) if f"CONFIG_{name}=" not in wanted]
        self.fragments[1].write_text("".join(lines))
        self.fragments[2].write_text("".join(f"CONFIG_TCP_CONG_{name.upper()}=n\n" for name in self.left_out))
        (self.tree / ".ewan-fragment").write_text(self.fragment())
        if self.make(log, "KCONFIG_ALLCONFIG=.ewan-fragment", "KCONFIG_CONFIG=.config.new", "allnoconfig").wait():
            raise RuntimeError("the configuration failed")
        got = (self.tree / ".config.new").read_text()
        off = {f"TCP_CONG_{name.upper()}" for name in self.left_out}
        lost = [
            name
            for name, value in re.findall(r"^CONFIG_(\w+)=(\S+)", wanted, re.MULTILINE)
            if value != "n" and name not in off and f"\nCONFIG_{name}={value}\n" not in got
        ]
        if fatal := [name for name in lost if name in ESSENTIAL.split()]:
            raise SourceError(
                f"this tree cannot run in the virtual clock: its configuration has no {', '.join(fatal)} "
                "(unknown to it, or a dependency is missing)"
            )
        config = self.tree / ".config"
        if not config.exists() or config.read_text() != got:
            config.write_text(got)
        return lost

    def fragment_of(self, number: int) -> str:
        """The text of one of the fragments."""
        return self.fragments[number].read_text()

    def controls_that_compile(self, log: IO[bytes]) -> bool:
        """Compiles our congestion controls, and returns whether all of them could be; the others are in `left_out`."""
        objects = [f"{CONTROLS[name][:-2]}.o" for name in CONTROLS if name not in self.left_out]
        offset = self.log_path.stat().st_size
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        if not objects or not self.make(log, "-k", jobs, *self.flags(), *objects).wait():
            return True
        with self.log_path.open("rb") as file:
            file.seek(offset)
            said = file.read().decode(errors="replace")
        failed = {}
        for name, path in CONTROLS.items():
            if f"{path[:-2]}.o] Error" in said:
                first = re.search(rf"^(?:\./)?({re.escape(path)}:\d+):\d+: error: (.*)$", said, re.MULTILINE)
                failed[name] = f"{first[1]}: {first[2]}" if first else "it does not compile"
        if not failed:
            raise RuntimeError(f"compiling failed{first_error(said)}")
        self.left_out |= failed
        return False

    def made(self, log: IO[bytes]) -> list[str]:
        """Configures and compiles; returns the options that the tree has not."""
        lost = self.configured(log)
        if not self.controls_that_compile(log):
            lost = self.configured(log)
        try:
            self.compile(log)
        except RuntimeError as error:
            raise RuntimeError(f"{error}{first_error(self.log_path.read_text(errors='replace'))}") from None
        return lost


def model_of(work: Path, log: IO[bytes]) -> Path:
    """The link's model as an object, which all kernels of one's own share; it is compiled where its sources changed."""
    made, note = work / "model/ewan_model.o", work / "model/sources"
    key = sources.digest({str(path): build.sha256(path) for path in (*build.model_sources(), HERE / "build.py")})
    if not made.exists() or not note.exists() or note.read_text() != key:
        note.unlink(missing_ok=True)
        made = build.Build(work, work / "none", [], None).model(log)
        note.write_text(key)
    return made


def applied(patch: Patch, version: Version, files: Path) -> dict[str, str]:
    """Applies a patch of ours in the text that fits, and returns what came of it."""
    said = {"name": patch.name, "title": patch.title, "kind": patch.kind, "lost": patch.lost}
    if patch.tree_has is not None:
        name, text = patch.tree_has
        if (files / name).is_file() and text in (files / name).read_text(errors="replace"):
            return {**said, "state": "in the tree", "why": ""}
    first = ""
    for each in patch.texts_for(version):
        why = series.apply(each, files, FUZZ)
        if not why:
            return {**said, "state": "applied", "why": ""}
        first = first or why
    return {**said, "state": "does not apply", "why": first}


def cannot_run(version: Version, fatal: list[dict[str, str]]) -> str:
    """The line on a tree to which patches do not apply that exact time needs."""
    first, *more = fatal
    names = ", ".join(each["name"] for each in more[:MOST_NAMES])
    others = f"; nor do {names}{' and others' if len(more) > MOST_NAMES else ''}" if more else ""
    return (
        f"this Linux {'.'.join(map(str, version))} cannot run in exact simulated time: {first['name']} does not apply "
        f"({first['why']}), and without it: {first['lost']}{others}"
    )


def of_the_tree(patched: Path, pristine: Path) -> dict[str, str]:
    """Our congestion controls of whose name the tree has its own, which are taken out of the patched files again."""
    kconfig, makefile = patched / "net/ipv4/Kconfig", patched / "net/ipv4/Makefile"
    found = {}
    for name, path in CONTROLS.items():
        option = f"config TCP_CONG_{name.upper()}\n"
        if not (pristine / path).exists() and kconfig.read_text().count(option) < 2:
            continue
        found[name] = "the tree has its own"
        blocks = re.split(r"(?m)^(?=config |choice|endif|if )", kconfig.read_text())
        ours = next(each for each in blocks if each.startswith(option + "\tbool "))
        blocks.remove(ours)
        kconfig.write_text("".join(blocks))
        line = f"obj-$(CONFIG_TCP_CONG_{name.upper()}) += tcp_{name}.o\n"
        makefile.write_text(makefile.read_text().replace(line, "", 1))
    return found


def first_error(said: str) -> str:
    """The first message of the compiler or of make in a log, for the end of a line."""
    lines = re.findall(r"^(?:.*: error: .*|.*: fatal error: .*|ERROR: .*|make.*\*\*\* (?!\[).*)$", said, re.MULTILINE)
    return f": {lines[0]}" if lines else ""


def within(path: Path, place: Path) -> Path:
    """The path, where it leads to a place below `place`: a tree's links may lead anywhere."""
    if not path.resolve().is_relative_to(place.resolve()):
        raise SourceError(f"{path.name}: a symbolic link leads out of the tree")
    return path


def opened(options: argparse.Namespace) -> AbstractContextManager[Source]:
    """The source that the command line names."""
    work: Path = options.work
    if options.debian:
        (work / "archives").mkdir(exist_ok=True)
        return sources.debian(options.debian, work / "archives", work)
    if options.source:
        return sources.opened(options.source, work)
    return sources.default(options.default, work)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Builds it into `options.out`, and returns what went in."""
    begin = time.monotonic()
    place: Path = options.work / options.name
    place.mkdir(exist_ok=True)
    if shutil.disk_usage(place).free < build.GIGABYTES_NEEDED << 30 and not (place / "tree/vmlinux").exists():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)
    own = series.own(options.patches) if options.patches else []
    ours = series.read(HERE / "patches")
    made = Own(place, options.work, options.wall)
    with made.log_path.open("wb", buffering=0) as log:
        with opened(options) as source:
            said = str(options.source or source.what)
            version = sources.checked(source, said)
            say(f"copying what is new of Linux {'.'.join(map(str, version))}")
            digest = made.mirror(source)
        patches = made.changed(own, ours, version, log)
        if source.kind == "default" and all(each["state"] == "applied" for each in patches):
            made.profile = "used"  # its counts are of this source
            made.unpack_profile(log)
        for each in patches:
            if each["state"] == "does not apply":
                say(f"{each['name']} does not apply ({each['why']}), and is left out. {each['lost']}")
        lost = made.made(log)
        for name, why in made.left_out.items():
            say(f"congestion control {name} is left out: {why}")
        for name, target in {"vmlinux": "linux", ".config": "config"}.items():
            within(made.tree / name, made.tree)
            shutil.copy2(made.tree / name, options.out / target)
        build.write_sum(options.out / "linux")
        made.pack_headers(options.out / "headers.tar.xz", log)
    return {
        "version": ".".join(map(str, version)),
        "source": {
            "kind": source.kind,
            "what": source.what,
            "sha256": source.sha256 or digest,
            "commit": source.commit,
        },
        "own_patches": [{"name": text.path.name, "sha256": build.sha256(text.path)} for text in own],
        "patches": patches,
        "controls_left_out": made.left_out,
        "options_left_out": lost,
        "kernel_sha256": build.sha256(options.out / "linux"),
        "config_sha256": build.sha256(options.out / "config"),
        "seconds": round(time.monotonic() - begin, 1),
    }


def fail(what: str) -> NoReturn:
    """Ends this program."""
    print(f"{FAULT}{what}", file=sys.stderr)
    sys.exit(2)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="own", description="Builds a kernel of one's own.")
    parser.add_argument("--name", required=True)
    parser.add_argument("--work", type=Path, required=True, help="where trees and archives are kept")
    parser.add_argument("--default", type=Path, required=True, help="the cache of the default kernel")
    parser.add_argument("--out", type=Path, required=True, help="an empty directory for the kernel")
    parser.add_argument("--source", type=Path, help="a tree or an archive; the default kernel's source without it")
    parser.add_argument("--debian", help="the version of a linux-source package of Debian's")
    parser.add_argument("--patches", type=Path, help="a folder of patches of one's own")
    parser.add_argument("wall", nargs="*", help="the words that start a command in the sandbox")
    options = parser.parse_args()
    options.work = options.work.resolve()
    try:
        build.need(build.TOOLS)
        with build.lock(options.work):
            print(json.dumps(run(options)))
    except (SourceError, series.SeriesError) as error:
        fail(str(error))
    except RuntimeError as error:
        log = options.work / options.name / "build.log"
        if log.exists() and b"No space left on device" in log.read_bytes():
            fail(f"no space left in {options.work}: it needs {build.GIGABYTES_NEEDED} GB")
        fail(f"{error}: see {log}")
    except OSError as error:
        if error.errno == errno.ENOSPC:
            fail(f"no space left in {options.work}: it needs {build.GIGABYTES_NEEDED} GB")
        fail(f"{error.filename or options.work}: {error.strerror}")
    except KeyboardInterrupt:
        fail("interrupted; what is compiled so far is kept for the next time")


if __name__ == "__main__":
    main()
    sys.exit(0)
