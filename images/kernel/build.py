"""Builds the virtual kernel: Debian's source, our patches and configuration in, one static program out.

Called through build.sh. Standard output carries one line, the kernel's path; progress and errors (one line,
status 2) go to standard error. Everything is kept below target/kernel: `cache` holds the source package, `tree`
the patched source with its objects, so that a changed patch costs seconds, `<key>/linux` each finished kernel and
`linux` a link to the latest. The key is the hash of all that goes in. A kernel takes its place only when it is
complete, so a failing or interrupted build leaves the old one as it was. Beside it stands `headers.tar.xz`: all that
a build of a module for this kernel reads.
"""

import argparse
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import IO, Literal, NoReturn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGE = "linux-source-6.12"
VERSION = "6.12.117-1~deb12u1"
INSTALLED = Path("/usr/src/linux-source-6.12.tar.xz")
OWN = {
    ROOT / "emulator/kernel/psp/sch_psp.c": "net/sched/sch_psp.c",
    ROOT / "emulator/kernel/psp/pkt_sch_psp.h": "include/uapi/linux/pkt_sch_psp.h",
    ROOT / "emulator/kernel/ewan/sch_ewan.c": "net/sched/sch_ewan.c",
    ROOT / "emulator/kernel/ewan/ewan_model.h": "net/sched/ewan_model.h",
    ROOT / "emulator/kernel/ewan/pkt_sch_ewan.h": "include/uapi/linux/pkt_sch_ewan.h",
    ROOT / "emulator/kernel/tcp/tcp_fast.c": "net/ipv4/tcp_fast.c",
    ROOT / "emulator/kernel/tcp/tcp_ghstcp.c": "net/ipv4/tcp_ghstcp.c",
    ROOT / "emulator/kernel/tcp/tcp_bbr3.c": "net/ipv4/tcp_bbr3.c",
    ROOT / "emulator/kernel/tcp/tcp_prague.c": "net/ipv4/tcp_prague.c",
}
# The link's model, one object that Rust's compiler makes.
MODEL = ROOT / "emulator/kernel/ewan"
MODEL_SOURCES = [MODEL, ROOT / "emulator/model"]
MODEL_OBJECT = "net/sched/ewan_model.o_shipped"
TOOLS = {  # command: Debian package
    "gcc": "gcc",
    "ld": "binutils",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "xz": "xz-utils",
    "tar": "tar",
    "patch": "patch",
}
# What is never compiled for this architecture: two thirds of the source's bytes. Kconfig reads all of its files.
OTHERS = "alpha arc arm arm64 csky hexagon loongarch m68k microblaze mips nios2 openrisc parisc powerpc"
OTHERS += " riscv s390 sh sparc xtensa"
NOT_NEEDED = [
    *(f"*/arch/{name}/*.{ending}" for name in OTHERS.split() for ending in ("[chS]", "dts*")),
    *(f"*/drivers/{name}/*.[ch]" for name in ("gpu", "media", "staging", "infiniband", "scsi", "iio", "usb")),
    *(f"*/{name}/*.[ch]" for name in ("drivers/net/ethernet", "drivers/net/wireless", "sound")),
    *(f"*/{name}/*" for name in ("Documentation/devicetree", "Documentation/translations", "tools/testing")),
]
# A build of a module reads these parts of the tree, but for what was compiled there and what no module of a transport
# includes.
HEADERS = ["Makefile", ".config", "Module.symvers", "include", "scripts"]
HEADERS += [f"arch/um/{name}" for name in ("Makefile", "Makefile-skas", "Makefile-os-Linux", "include", "scripts")]
HEADERS += [f"arch/x86/{name}" for name in ("Makefile", "Makefile.um", "Makefile_32.cpu", "include", "um")]
NO_HEADERS = ["*.o", "*.a", "*.cmd", "*.gcda", "scripts/gdb", "scripts/coccinelle", "scripts/kconfig"]
NO_HEADERS += [f"include/{name}" for name in ("drm", "dt-bindings", "media", "rdma", "scsi", "soc", "sound", "video")]
GIGABYTES_NEEDED = 3
STARTS_S = 60
KEPT = 8  # finished kernels, those that were used last
PROFILE = HERE / "profile.tar.xz"  # how often what was executed, by object; make_profile.py makes it
# A function that has changed since, or that was not executed, is compiled as without a profile.
BY_PROFILE = "-fprofile-use -fprofile-correction -fprofile-partial-training -Wno-missing-profile -Wno-coverage-mismatch"
COUNTING = "-fprofile-generate -fprofile-update=single"
# libgcov and the kernel both have a function mangle_path; the kernel's comes first, and does not mind.
LINKED_COUNTING = "--coverage -Wl,-u,__gcov_dump -Wl,--allow-multiple-definition"
# Nothing of the day, the user, the host or the number of builds goes into the kernel.
REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "2025-01-01 00:00:00 UTC",
    "KBUILD_BUILD_USER": "ewan",
    "KBUILD_BUILD_HOST": "ewan",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
    "TZ": "UTC",
}


def fail(what: str) -> NoReturn:
    print(f"kernel: {what}", file=sys.stderr)
    sys.exit(2)


def say(what: str) -> None:
    print(f"kernel: {what}", file=sys.stderr, flush=True)


def need(commands: dict[str, str]) -> None:
    """Installs what is missing where that can be done without a question, else says what to install."""
    missing = sorted({package for command, package in commands.items() if not shutil.which(command)})
    if not missing:
        return
    wanted = "apt install " + " ".join(missing)
    as_root: list[str] | None = [] if os.geteuid() == 0 else None
    if as_root is None and shutil.which("sudo"):
        asks = subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode != 0
        as_root = None if asks and not sys.stdin.isatty() else ["sudo"]
    if as_root is None or not shutil.which("apt-get"):
        fail(f"{', '.join(missing)} missing: {wanted}")
    say(f"installing {' '.join(missing)}")
    for step in (["update", "-qq"], ["install", "-y", "-qq", *missing]):
        command = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *step]
        if subprocess.run(command, stdout=sys.stderr).returncode:
            fail(f"could not install {' '.join(missing)}: {wanted}")


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


SUM = ".sum"  # labs/runtime/whole.py says what is in it


def write_sum(path: Path, digest: str = "") -> None:
    """Notes SHA-256, size, time of change and inode of a file beside it."""
    found = path.stat()
    text = f"{digest or sha256(path)} {found.st_size} {found.st_mtime_ns} {found.st_ino}\n"
    new = path.with_name(f".{path.name}{SUM}.{os.getpid()}")
    new.write_text(text)
    new.replace(path.with_name(path.name + SUM))


def whole(path: Path) -> bool:
    """Return whether a file's bytes are those that were noted. While size, time and inode are as noted, the bytes count
    as unchanged. A file without a note only has to be present and not empty."""
    try:
        found = path.stat()
        digest, *known = path.with_name(path.name + SUM).read_text().split()
    except FileNotFoundError:
        return path.exists() and path.stat().st_size > 0
    except OSError:
        return False
    if known == [str(found.st_size), str(found.st_mtime_ns), str(found.st_ino)]:
        return True
    if sha256(path) != digest:
        say(f"{path} is damaged: its bytes are not those that were noted")
        return False
    with contextlib.suppress(OSError):
        write_sum(path, digest)
    return True


def damage(deb: Path, wanted: str) -> str:
    """The fault of a package that was downloaded; empty if it matches the archive's signed index. If apt knows no such
    index, all of the package must be readable.
    """
    shown = subprocess.run(["apt-cache", "show", wanted], capture_output=True, text=True).stdout
    version = deb.name.split("_")[1].replace("%3a", ":")
    for stanza in shown.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if re.match(r"[A-Z][\w-]*: ", line))
        if fields.get("Version") == version and "SHA256" in fields:
            return "" if sha256(deb) == fields["SHA256"] else "not what the archive's index says"
    read = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return "" if read.returncode == 0 else "cut short"


class Source:
    """Debian's source archive: its version and hash, and how to stream it."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.note = cache / "source"  # "version sha256" of the archive the tree was made of
        self.known = ""  # for whoever asks what another archive would come to
        self.deb = next(iter(sorted(cache.glob(f"{PACKAGE}_{VERSION}_*.deb"))), None)
        if self.deb and not whole(self.deb):
            self.deb = None

    def identity(self) -> str:
        """Version and hash; fetches the package when this is not known yet."""
        if self.known:
            return self.known
        if self.note.exists() and self.note.read_text().startswith(f"{VERSION} "):
            return self.note.read_text().strip()
        version = VERSION
        if not self.deb and INSTALLED.exists():
            version, archive = "installed", INSTALLED
        else:
            archive, version = self.fetch()
        identity = f"{VERSION} {version} {sha256(archive)}"
        self.note.write_text(identity + "\n")
        return identity

    def settle(self) -> None:
        """Before a build: notes the archive that will be unpacked, where a bundle brought a note without it."""
        if not self.deb and not self.note.read_text().startswith(f"{VERSION} installed "):
            self.note.unlink()
            self.identity()

    def fetch(self) -> tuple[Path, str]:
        if self.deb:
            return self.deb, VERSION
        if not shutil.which("apt-get"):
            fail(f"no source: put {INSTALLED.name} of Debian's {PACKAGE} into {INSTALLED.parent}")
        need({"dpkg-deb": "dpkg"})
        known = subprocess.run(["apt-cache", "show", PACKAGE], capture_output=True).returncode == 0
        if not known and os.geteuid() == 0:
            subprocess.run(["apt-get", "update", "-qq"], stdout=sys.stderr)
        for wanted in (f"{PACKAGE}={VERSION}", PACKAGE):
            say(f"downloading {wanted} (150 MB)")
            # Beside its place: what a full disk cuts off never has the package's name in the cache.
            with tempfile.TemporaryDirectory(dir=self.cache, prefix=".download-") as aside:
                command = ["apt-get", "download", "-q", wanted]
                got = subprocess.run(command, cwd=aside, capture_output=True, text=True)
                found = sorted(Path(aside).glob(f"{PACKAGE}_*.deb"))
                if got.returncode == 0 and found and damage(found[0], wanted):
                    fail(f"{found[0].name}: {damage(found[0], wanted)}: check the network, and run this again")
                if got.returncode == 0 and found:
                    self.deb = self.cache / found[0].name
                    write_sum(found[0])
                    found[0].replace(self.deb)
                    found[0].with_name(found[0].name + SUM).replace(self.deb.with_name(self.deb.name + SUM))
            if self.deb:
                version = self.deb.name.split("_")[1].replace("%3a", ":")
                if wanted == PACKAGE:
                    say(f"note: version {VERSION} is not to be had, taking {version}")
                return self.deb, version
        reason = (got.stderr.strip().splitlines() or ["unknown reason"])[-1]
        fail(f"apt-get download {PACKAGE} failed ({reason}): check the network and /etc/apt/sources.list")

    def unpack(self, into: Path, log: IO[bytes]) -> None:
        excludes = [f"--exclude={pattern}" for pattern in NOT_NEEDED]
        tar = ["tar", "-x", "-J", "-f", "-", "--strip-components=1", "-C", str(into), *excludes]
        if not self.deb and not INSTALLED.exists():
            self.fetch()
        if not self.deb:
            with INSTALLED.open("rb") as archive:
                done = [subprocess.run(tar, stdin=archive, stderr=log).returncode]
        else:
            outer = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(self.deb)], stdout=subprocess.PIPE, stderr=log)
            member = f"./usr/src/{INSTALLED.name}"
            inner = subprocess.Popen(
                ["tar", "-x", "-O", "-f", "-", member], stdin=outer.stdout, stdout=subprocess.PIPE, stderr=log
            )
            done = [subprocess.run(tar, stdin=inner.stdout, stderr=log).returncode, inner.wait(), outer.wait()]
        if any(done):
            if self.deb and (why := damage(self.deb, PACKAGE)):
                self.deb.unlink(missing_ok=True)
                self.note.unlink(missing_ok=True)
                raise RuntimeError(f"{self.deb.name} was {why} and is removed: run this again to have it downloaded")
            raise RuntimeError("unpacking the source failed")


Profile = Literal["used", "made", "none"]


class Build:
    """One kernel: `fragments` are the files with its options, of which the last one decides."""

    def __init__(
        self, target: Path, patches: Path, fragments: list[Path], lock: IO[str] | None, profile: Profile = "used"
    ) -> None:
        self.target = target
        self.profile = profile
        self.fragments = fragments
        self.lock = lock
        self.tree = target / "tree"
        self.log_path = target / "build.log"
        self.patches = sorted(patches.glob("*.patch"))
        self.source = Source(target / "cache")

    @staticmethod
    def finished(target: Path, patches: Path, fragments: list[Path], profile: Profile) -> Path | None:
        """The kernel of today's sources, if it is there; fetches nothing."""
        build = Build(target, patches, fragments, None, profile)
        return target / build.key() / "linux" if build.source.note.exists() else None

    def fragment(self) -> str:
        return "".join(path.read_text() for path in self.fragments)

    def key(self) -> str:
        """The hash of source, configuration, patches and the build itself."""
        parts = [self.source.identity(), self.fragment()]
        parts += [path.read_text() for path in (*self.patches, *OWN, *model_sources(), HERE / "build.py")]
        parts += self.flags()
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def flags(self) -> list[str]:
        """For make: how the profile is used. Its hash makes make compile anew what a new one is for."""
        if self.profile == "made":
            return [f"EWAN_PROFILE={COUNTING}", f"LD_FLAGS_CMDLINE={LINKED_COUNTING}"]
        if self.profile == "used":
            return [f"EWAN_PROFILE={BY_PROFILE} -DEWAN_PROFILE_{sha256(PROFILE)[:16]}"]
        return []

    def is_unpacked(self, identity: str) -> bool:
        """Return whether the tree is of this source and was unpacked at this very place. make relies on the times of
        files. Those of a tree that was copied or restored from a cache, or made by a clock that was ahead, are not
        reliable."""
        try:
            stamp, note = self.tree / ".ewan-source", (self.tree / ".ewan-unpacked").read_text()
            objects = [path for path in (self.tree / "vmlinux", self.tree / ".config") if path.exists()]
            ahead = any(path.stat().st_mtime > time.time() for path in objects)
            return stamp.read_text() == identity and note == unpacked_at(stamp) and not ahead
        except FileNotFoundError:
            return False

    def sync(self, log: IO[bytes], anew: bool) -> None:
        """Makes the tree Debian's source plus patches, touching only files that change: make rebuilds little.

        `anew`: it is unpacked again, without the objects of earlier builds.
        """
        identity = self.source.identity()
        if anew or not self.is_unpacked(identity):
            say("unpacking the source")
            fresh = self.target / "tree.new"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            self.source.unpack(fresh, log)
            (fresh / ".ewan-source").write_text(identity)
            (fresh / ".ewan-unpacked").write_text(unpacked_at(fresh / ".ewan-source"))
            shutil.rmtree(self.tree, ignore_errors=True)
            shutil.rmtree(self.target / "pristine", ignore_errors=True)
            fresh.rename(self.tree)
        # Originals of every file that a patch ever touched; a file of which there is none was made by a patch.
        pristine, patched = self.target / "pristine", self.target / "patched"
        shutil.rmtree(patched, ignore_errors=True)
        patched.mkdir()
        names = {*OWN.values(), MODEL_OBJECT}
        for patch in self.patches:
            names |= set(re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE))
        listed = pristine / ".names"
        known = set(listed.read_text().split()) if listed.exists() else set()
        for name in sorted(names - known):
            if (self.tree / name).exists():
                copy(self.tree / name, pristine / name)
        pristine.mkdir(exist_ok=True)
        listed.write_text("\n".join(sorted(names | known)) + "\n")
        for name in sorted(names | known):
            if (pristine / name).exists():
                copy(pristine / name, patched / name)
        for patch in self.patches:
            with patch.open("rb") as file:
                command = ["patch", "-p1", "--no-backup-if-mismatch", "--fuzz=0", "-s", "-d", str(patched)]
                if subprocess.run(command, stdin=file, stdout=log, stderr=log).returncode:
                    raise RuntimeError(f"{patch.name} does not apply")
        for path, name in {**OWN, self.model(log): MODEL_OBJECT}.items():
            copy(path, patched / name)
        for name in sorted(names | known):
            ours, theirs = patched / name, self.tree / name
            if not ours.exists():
                theirs.unlink(missing_ok=True)
            elif not theirs.exists() or ours.read_bytes() != theirs.read_bytes():
                copy(ours, theirs)

        if self.profile == "used":
            self.unpack_profile(log)

    def unpack_profile(self, log: IO[bytes]) -> None:
        """Puts the counts beside the sources that they are of."""
        for old in self.tree.rglob("*.gcda"):
            old.unlink()
        if subprocess.run(["tar", "-xJf", PROFILE, "-C", self.tree], stdout=log, stderr=log).returncode:
            raise RuntimeError(f"{PROFILE.name} cannot be unpacked")

    def model(self, log: IO[bytes]) -> Path:
        """The link's model as one object, in which nothing is left that no C function calls."""
        say("compiling the link's model")
        built = self.target / "model"
        source = one_workspace(built / "source")
        # No place of this machine is in the object's texts.
        flags = ["-Crelocation-model=static", "-Cno-redzone=yes", f"--remap-path-prefix={source}=ewan"]
        flags.append(f"--remap-path-prefix={os.environ.get('CARGO_HOME', Path.home() / '.cargo')}=cargo")
        environment = {**os.environ, "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags), "CARGO_TARGET_DIR": str(built)}
        command = ["cargo", "build", "--release", "--locked", "--target", "x86_64-unknown-linux-gnu"]
        if subprocess.run(command, cwd=source, env=environment, stdout=log, stderr=log).returncode:
            raise RuntimeError("compiling the link's model failed")
        archive = built / "x86_64-unknown-linux-gnu/release/libewan_kernel.a"
        called = re.findall(r"\b(ewan_(?:lane|change|flow|frame)_\w+)\(", (MODEL / "ewan_model.h").read_text())
        wanted = [word for name in called for word in ("-u", name)]
        model = built / "ewan_model.o"
        # Rust's library mentions what unwinds, which C's library has too; and it holds a copy of itself for compilers.
        commands = (
            ["ld", "-r", "--gc-sections", *wanted, "-o", str(model), str(archive)],
            ["objcopy", "--redefine-sym=_Unwind_Resume=ewan_unwind", "-R.llvmbc", "-R.llvmcmd", str(model)],
        )
        if any(subprocess.run(each, stdout=log, stderr=log).returncode for each in commands):
            raise RuntimeError("linking the link's model failed")
        return model

    def make(self, log: IO[bytes], *arguments: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **REPRODUCIBLE, "ARCH": "um"}
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "KCFLAGS", "CFLAGS", "LDFLAGS"):
            environment.pop(name, None)
        command = ["make", "ARCH=um", *arguments]
        # make holds the lock as long as it lives, even where this process was killed.
        return subprocess.Popen(
            command,
            cwd=self.tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(self.lock.fileno(),) if self.lock else (),
        )

    def configure(self, log: IO[bytes]) -> None:
        (self.tree / ".ewan-fragment").write_text(self.fragment())
        new = ["KCONFIG_ALLCONFIG=.ewan-fragment", "KCONFIG_CONFIG=.config.new", "allnoconfig"]
        if self.make(log, *new).wait():
            raise RuntimeError("the configuration failed")
        got = (self.tree / ".config.new").read_text()
        lost = []
        for name, value in dict(re.findall(r"^(CONFIG_\w+)=(\S+)", self.fragment(), re.MULTILINE)).items():
            there = re.search(rf"^{name}=(\S+)", got, re.MULTILINE)
            if (there.group(1) if there else "n") != value:
                lost.append(f"{name}={value}")
        if lost:
            raise RuntimeError(
                f"{self.fragments[-1].name}: {', '.join(lost)} lost (unknown, or a dependency is missing)"
            )
        config = self.tree / ".config"
        if not config.exists() or config.read_text() != got:
            config.write_text(got)

    def compile(self, log: IO[bytes]) -> None:
        jobs = str(len(os.sched_getaffinity(0)))
        begin, said = time.monotonic(), 0.0
        offset = self.log_path.stat().st_size
        make = self.make(log, f"-j{jobs}", *self.flags(), "linux", "modules")
        try:
            with self.log_path.open("rb") as reader:
                reader.seek(offset)
                objects, folder = 0, b""
                while True:
                    ended = make.poll() is not None
                    for line in reader:
                        if found := re.match(rb"\s+(?:CC|AS|AR|LD)\s+(\S+)", line):
                            objects, folder = objects + 1, found.group(1)
                    passed = time.monotonic() - begin
                    if ended:
                        break
                    if passed - said >= 3:
                        said = passed
                        say(f"{objects} objects in {passed:.0f} s, {folder.decode()}")
                    time.sleep(0.2)
        finally:
            if make.poll() is None:
                make.terminate()
                make.wait()
        if make.returncode:
            raise RuntimeError("compiling failed")

    def pack_headers(self, archive: Path, log: IO[bytes]) -> None:
        """Writes the parts of the tree that a build of a module reads; the same tree gives the same bytes."""
        names = [name for name in HEADERS if (self.tree / name).exists()]
        order = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]
        tar = ["tar", "-cJf", str(archive), *order, *(f"--exclude={name}" for name in NO_HEADERS), *names]
        environment = {**os.environ, "XZ_OPT": "-3"}
        if subprocess.run(tar, cwd=self.tree, env=environment, stdout=log, stderr=log).returncode:
            raise RuntimeError("packing the headers failed")

    def run(self, key: str) -> Path:
        """The finished kernel; the link points at it."""
        begin = time.monotonic()
        if shutil.disk_usage(self.target).free < GIGABYTES_NEEDED << 30 and not (self.tree / "vmlinux").exists():
            fail(f"no space: {self.target} needs {GIGABYTES_NEEDED} GB")
        with self.log_path.open("wb", buffering=0) as log:
            try:
                for anew in (False, True):
                    self.sync(log, anew)
                    self.configure(log)
                    self.compile(log)
                    if not (why := panic(self.tree / "linux")):
                        break
                    say(f"the kernel does not start: {why}")
                else:
                    raise RuntimeError(f"the kernel does not start: {why}")
                scratch = self.target / f"{key}.new"
                shutil.rmtree(scratch, ignore_errors=True)
                scratch.mkdir()
                for name in ("linux", ".config"):
                    shutil.copy2(self.tree / name, scratch / name.lstrip("."))
                write_sum(scratch / "linux")
                self.pack_headers(scratch / "headers.tar.xz", log)
                shutil.rmtree(self.target / key, ignore_errors=True)
                scratch.rename(self.target / key)
            except (RuntimeError, OSError) as error:
                full = isinstance(error, OSError) and error.errno == errno.ENOSPC
                if full or b"No space left on device" in self.log_path.read_bytes():
                    fail(f"no space left in {self.target}: it needs {GIGABYTES_NEEDED} GB")
                fail(f"{error}: see {self.log_path}")
        self.publish(key)
        say(f"built in {time.monotonic() - begin:.0f} s: {self.target / key / 'linux'}")
        return self.target / key / "linux"

    def publish(self, key: str) -> None:
        link = self.target / "linux"
        if link.is_symlink() and str(link.readlink()) == f"{key}/linux":
            return
        new = self.target / "linux.new"
        new.unlink(missing_ok=True)
        new.symlink_to(f"{key}/linux")
        new.rename(link)
        kernels = sorted(self.target.glob("*/linux"), key=last_use)
        for old in [path for path in kernels if re.fullmatch("[0-9a-f]{16}", path.parent.name)][:-KEPT]:
            if old.parent.name != key:
                shutil.rmtree(old.parent, ignore_errors=True)


def unpacked_at(stamp: Path) -> str:
    """The properties of a file that change when it is copied: its inode, and its change time."""
    found = stamp.stat()
    return f"{found.st_ino} {found.st_ctime_ns}"


def panic(kernel: Path) -> str:
    """Why this kernel cannot run /bin/true as its first process; empty where it can, or where this host starts none."""
    with tempfile.TemporaryDirectory() as place:
        command: list[str | Path] = [
            kernel,
            "mem=64M",
            f"uml_dir={place}/",
            "root=98:0",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
        ]
        command += [
            "init=/bin/true",
            "time-travel=inf-cpu",
            "con=null",
            "con0=null,fd:1",
            "ssl=null",
            "panic=-1",
            "quiet",
        ]
        try:
            ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=STARTS_S)
        except subprocess.TimeoutExpired:
            return f"it has not ended after {STARTS_S} s"
    # It ends with its first process: with exit code 0 if that ran to its end.
    reasons = [line for line in ran.stdout.splitlines() if "panic" in line or "segfault" in line]
    return "" if "exitcode=0x00000000" in " ".join(reasons) else "; ".join(reasons)


def used(kernel: Path) -> None:
    """Notes the time of its last use, by which the oldest are removed; in a cache of others it stays as it is."""
    with contextlib.suppress(OSError):
        if not kernel.with_name(kernel.name + SUM).exists():
            write_sum(kernel)
        os.utime(kernel.with_name(kernel.name + SUM))


def last_use(kernel: Path) -> float:
    """The time of a kernel's last use, in seconds since 1970."""
    note = kernel.with_name(kernel.name + SUM)
    return (note if note.exists() else kernel).stat().st_mtime


def model_sources() -> list[Path]:
    """The sources of the model's object; tests and examples are not part of it."""
    return sorted(
        path for folder in MODEL_SOURCES for path in (*(folder / "src").rglob("*.rs"), *folder.glob("Cargo.*"))
    )


def one_workspace(place: Path) -> Path:
    """The model's crates, copied into a workspace of their own: Cargo names a crate outside of the workspace by its
    absolute path, which would order the functions in the object."""
    shutil.rmtree(place, ignore_errors=True)
    crate = ROOT / "emulator/model"
    for path in model_sources():
        model = crate in path.parents
        copy(path, place / ("model" / path.relative_to(crate) if model else path.relative_to(MODEL)))
    manifest = place / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace('"../../model"', '"model"'))
    common = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    own = tomllib.loads((crate / "Cargo.toml").read_text())
    package = {"name": own["package"]["name"], **{key: common["package"][key] for key in ("version", "edition")}}
    lines = ["[package]", *(f"{key} = {json.dumps(value)}" for key, value in package.items()), "[dependencies]"]
    for name, each in own["dependencies"].items():
        said = common["dependencies"][name]
        table = {"version": said} if isinstance(said, str) else said
        features = [*table.get("features", ()), *each.get("features", ())]
        pairs = (f"{key} = {json.dumps(value)}" for key, value in {**table, "features": features}.items())
        lines.append(f"{name} = {{ {', '.join(pairs)} }}")
    (place / "model/Cargo.toml").write_text("\n".join(lines) + "\n")
    return place


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def lock(target: Path) -> IO[str]:
    """Only a user who may open the file may hold the lock."""
    path = target / ".lock"
    path.touch(mode=0o600)
    path.chmod(0o600)
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another build is running: waiting for it")
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def main() -> None:
    parser = argparse.ArgumentParser(prog="build.sh", description="Builds the virtual kernel if needed.")
    parser.add_argument("--path", action="store_true", help="never build: print this source's kernel, or status 1")
    parser.add_argument("--last", action="store_true", help="never build: print the kernel built last, or status 1")
    parser.add_argument("--debug", action="store_true", help="the kernel that watches itself: KASAN, lockdep")
    parser.add_argument(
        "--counting", action="store_true", help="the kernel that counts what is executed (make_profile.py)"
    )
    parser.add_argument("--patches", type=Path, default=HERE / "patches", help="folder of the patches")
    parser.add_argument("--shared", type=Path, help="another such place, which is only read")
    parser.add_argument("--target", type=Path, default=ROOT / "target/kernel", help="where everything is kept")
    options = parser.parse_args()
    target: Path = options.target.resolve()
    fragments = [HERE / name for name in ("fragment.config", *(("debug.config",) if options.debug else ()))]
    places = [target, *([options.shared] if options.shared else [])]
    profile: Profile = "made" if options.counting else "none" if options.debug else "used"
    finished = [Build.finished(place, options.patches, fragments, profile) for place in places]
    found = [place / "linux" for place in places] if options.last else [each for each in finished if each]
    ready = next((each for each in found if each.exists() and whole(each.resolve())), None)
    if options.path or options.last:
        if ready is None:
            sys.exit(1)
        used(ready)
        print(ready.resolve())
        return
    if ready and target not in ready.parents:
        print(ready)
        return
    try:
        (target / "cache").mkdir(parents=True, exist_ok=True)
        with lock(target) as held:
            build = Build(target, options.patches, fragments, held, profile)
            if not build.source.note.exists():
                need(TOOLS)  # before 150 MB are downloaded
            key = build.key()
            kernel = target / key / "linux"
            if kernel.exists() and whole(kernel):
                used(kernel)
                build.publish(key)
            else:
                need(TOOLS)
                if not build.tree.exists():
                    build.source.settle()
                kernel = build.run(key := build.key())
    except OSError as error:
        fail(f"{error.filename or target}: {error.strerror}")
    except KeyboardInterrupt:
        fail("interrupted; what is built so far is kept, and so is the old kernel")
    print(kernel)


if __name__ == "__main__":
    main()
