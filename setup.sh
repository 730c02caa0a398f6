#!/bin/sh
# Sets up what the project needs: checked prerequisites, Debian packages, the Python environment from its
# lock file, the node binary; `setup.sh tests` also what the tests run, `images` and `containerlab` what builds those. Does
# nothing, quickly and silently, when all is there; `setup.sh asked` (make setup) also says what the command is; `setup.sh
# udt` and `mpi` install what generator/udt and generator/mpi are built with, `machine` what images/machine needs, `cluster`,
# `gym`, `notebook`, `quic` and `studio` the Python packages of requirements-NAME.lock, `studio` its page and `quic` its
# programs too,
# `lint` those whose types mypy checks, `check` those that tests without a lab import. Called by make.
set -eu
cd "$(dirname "$0")"
root=$(pwd)
. images/cache.sh

fail() { echo "setup: $*" >&2; exit 2; }
say() { echo "setup: $*" >&2; }

# Oldest versions that are known to work.
command -v python3 >/dev/null || fail "python3 is missing: install Python 3.11 or newer (Debian: apt install python3 python3-venv)"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$(python3 --version) is too old: install Python 3.11 or newer"
# What was built elsewhere, of these very sources, needs no compiler (images/bundle).
images/bundle/offer.sh
if ! images/node/build.sh --prebuilt >/dev/null; then
    or="or put a release bundle beside this tree (docs/start/install.md)"
    command -v cargo >/dev/null || fail "cargo is missing: install Rust 1.91 or newer from rustup.rs, $or"
    oldest=1.91
    cargo_version=$(cargo --version | cut -d' ' -f2)
    [ "$(printf '%s\n%s\n' "$oldest" "$cargo_version" | sort -V | head -n 1)" = "$oldest" ] ||
        fail "cargo $cargo_version is too old: install Rust $oldest or newer from rustup.rs, $or"
    command -v cc >/dev/null || fail "a C linker is missing: install gcc (Debian: apt install gcc), $or"
fi

# Tools that people and tests run inside nodes; for the tests also a machine with a stock kernel, which QEMU emulates.
tools="ip:iproute2 ping:iputils-ping"
# What the README's tour runs in nodes. Labs do without it.
useful="iperf3:iperf3"
[ "${1-}" != tests ] || tools="$tools $useful tc:iproute2 ethtool:ethtool ITGSend:d-itg flent:flent tcpdump:tcpdump vtysh:frr ovs-vsctl:openvswitch-switch dnsmasq:dnsmasq-base udhcpc:udhcpc nuttcp:nuttcp mmdebstrap:mmdebstrap patch:patch podman:podman
    clang:clang clang:libbpf-dev bpftool:bpftool
    ssh:openssh-client sudo:sudo nft:nftables iptables:iptables"
[ "${1-}" != images ] || tools="$tools mmdebstrap:mmdebstrap"
[ "${1-}" != containerlab ] || tools="$tools patch:patch"
case ${1-} in tests | studio) tools="$tools npm:npm node:nodejs" ;; esac
[ "${1-}" != tests ] || tools="$tools chromium:chromium"
case ${1-} in tests | udt) tools="$tools g++:g++ /usr/include/udt/udt.h:libudt-dev" ;; esac
case ${1-} in tests | machine) tools="$tools qemu-system-x86_64:qemu-system-x86 busybox:busybox-static dropbear:dropbear-bin iperf3:iperf3" ;; esac
[ "${1-}" != tests ] || tools="$tools ns:ns2 /usr/include/ns3/core-module.h:libns3-dev /usr/include/gsl/gsl_math.h:libgsl-dev pkg-config:pkg-config"
case ${1-} in tests | mpi) tools="$tools mpirun:openmpi-bin mpicc:libopenmpi-dev" ;; esac
case ${1-} in aarch64) tools="$tools aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu /usr/aarch64-linux-gnu/lib/libc.a:libc6-dev-arm64-cross qemu-aarch64-static:qemu-user-static" ;; esac
# A container engine: the one that answers, else Debian's, which the tests start for themselves.
[ "${1-}" != tests ] || docker version >/dev/null 2>&1 || tools="$tools dockerd:docker.io docker:docker.io"
# The packages of those of "program:package …" that are not there.
missing_of() {
    for tool in $1; do
        name=${tool%%:*}
        command -v "$name" >/dev/null || [ -e "/${name#/}" ] || [ -x "/usr/sbin/$name" ] || printf ' %s' "${tool#*:}"
    done
}
# As root, or by sudo where it may ask for a password or needs none. Offline: services that come with a package (Docker,
# FRRouting, Open vSwitch) are not started on this machine.
install_packages() {
    command -v apt-get >/dev/null || return 1
    as_root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || return 1
        as_root=sudo
        [ -t 0 ] || as_root="sudo -n"
    fi
    say "installing $*"
    $as_root apt-get -o Acquire::Retries=3 update -qq && $as_root env DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends $* >/dev/null
}
missing=$(missing_of "$tools")
# Looked at when the rest is set up, or by make setup: who cannot install it is not told at every command.
told=; [ -e .venv/.lock-hash ] && [ "${1-}" != asked ] || told=yes
wanted=; [ -z "$told$missing" ] || wanted=$(missing_of "$useful")
if [ -n "$missing$wanted" ] && ! install_packages $missing $wanted; then
    [ -z "$missing" ] || fail "missing:$missing$wanted: install them (on Debian as root: apt install$missing$wanted), then run this again"
    say "missing, for the README's tour:$wanted: a person with root rights installs it (Debian: apt install$wanted)"
fi

# Rust's library for the other architecture comes by rustup; a Rust of a distribution has its own way.
if [ "${1-}" = aarch64 ] && [ ! -d "$(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu" ]; then
    command -v rustup >/dev/null || fail "Rust has no library for aarch64-unknown-linux-gnu: install it (with rustup: rustup target add aarch64-unknown-linux-gnu)"
    say "Rust's library for aarch64"
    rustup --quiet target add aarch64-unknown-linux-gnu || fail "rustup could not fetch it (see above)"
fi

# One setup at a time: two makes in one tree wait for each other.
[ -e .setup.lock ] || (umask 077 && : >.setup.lock)
exec 9>.setup.lock
if command -v flock >/dev/null; then flock 9; fi

# The packages come while the binary is built; who ends this ends both.
case ${1-} in
    check) extras="cluster gym studio browser" ;;
    tests) extras="cluster gym studio browser docs quic examples" ;;
    lint) extras="gym studio browser" ;;
    cluster | docs | gym | notebook | quic | studio) extras=$1 ;;
    *) extras= ;;
esac
# What the environment has of a lock file is told by the hash of that file, and of requirements.lock, on which it stands.
hash_of() { cat "$@" | sha256sum | cut -d' ' -f1; }
is_installed() { [ "$(cat ".venv/.$1-hash" 2>/dev/null || true)" = "$2" ]; }
lock_hash=$(hash_of requirements.lock)
files= marks=
is_installed lock "$lock_hash" || marks=lock:$lock_hash
own_hash=$(hash_of pyproject.toml ewan/VERSION)
is_installed own "$own_hash" || marks="$marks own:$own_hash"
for extra in $extras; do
    extra_hash=$(hash_of requirements.lock "requirements-$extra.lock")
    is_installed "$extra" "$extra_hash" || files="$files requirements-$extra.lock" marks="$marks $extra:$extra_hash"
done
# installed OPTION...: pip installs this, and a TERM ends it too.
installed() {
    .venv/bin/pip install --quiet --disable-pip-version-check "$@" 2>.venv/.pip-errors & pip=$!
    trap 'kill "$pip" 2>/dev/null || true; exit 2' TERM
    status=0
    wait "$pip" || status=$?
    cat .venv/.pip-errors >&2
    if [ "$status" != 0 ]; then
        # What pip says where the index answers, and has no such version for this Python.
        lacking=$(sed -n 's/^ERROR: No matching distribution found for \([^ ;]*\).*/\1/p' .venv/.pip-errors | head -n 1)
        if [ -n "$lacking" ] && grep -q "require a different python version" .venv/.pip-errors; then
            fail "$lacking of requirements.lock$files is not for $(python3 --version): set up with another Python (3.11.2 and newer are known to work)"
        fi
        fail "pip could not install requirements.lock$files (see above); run make setup again when the network is back"
    fi
}
python_environment() {
    case $marks in " own:"*) ;; *) say "Python packages into .venv (versions from requirements.lock$files)" ;; esac
    if ! is_installed lock "$lock_hash"; then python3 -m venv .venv || fail "python3 -m venv failed (Debian: apt install python3-venv)"; fi
    options=
    is_installed lock "$lock_hash" && [ -z "$files" ] || for file in requirements.lock $files; do options="$options -r $file"; done
    [ -z "$options" ] || installed --require-hashes $options
    # `import ewan`, wherever a notebook stands, and the entry points of extras.
    installed --no-index --no-deps --no-build-isolation --editable .
    for mark in $marks; do echo "${mark#*:}" >".venv/.${mark%%:*}-hash"; done
}
# The command. Ctrl-C waits until Python can answer it (labs/base/interrupt.py); env takes a path with "=" for a variable.
launcher() {
    waiting=
    case $root in *=*) ;; *) if env --block-signal=INT sh -c : 2>/dev/null; then waiting="$(command -v env) --block-signal=INT,TERM,HUP "; fi ;; esac
    printf '#!/bin/sh\nexec %s"%s/.venv/bin/python" -P "%s/ewan/cli.py" "$@"\n' "$waiting" "$root" "$root"
}
packages=
if [ -n "$marks" ]; then
    python_environment & packages=$!
    trap 'status=$?; kill "$packages" 2>/dev/null || true; exit "$status"' EXIT
    trap 'exit 130' INT TERM
fi

# unpacked NAME PROGRAM PACKAGE...: what the tests run of packages that would start, or enable, a service if they were
# installed: into the cache, with a link target/NAME to it.
unpacked() {
    name=$1 program=$2
    shift 2
    ! command -v "${program##*/}" >/dev/null || return 0
    into=$(kept "$name")
    if [ ! -x "$into/$program" ]; then
        say "unpacking $* into $into"
        tests/unpack.sh "$into" "$@" || fail "could not download Debian's packages: $*"
    fi
    [ "$into" = "$root/target/$name" ] || { mkdir -p target; rm -rf "target/$name"; ln -s "$into" "target/$name"; }
}
if [ "${1-}" = tests ]; then
    unpacked prometheus usr/bin/prometheus prometheus
    unpacked sshd usr/sbin/sshd openssh-server libwrap0
    unpacked slurm usr/sbin/slurmd-wlm slurmd slurmctld slurm-client slurm-wlm-basic-plugins munge libmunge2 libhwloc15 libnuma1 libjson-c5 libdbus-1-3
    unpacked oar usr/lib/oar/oarsub oar-user oar-common liboar-perl libdbi-perl
fi

images/node/build.sh >/dev/null
[ "${1-}" != aarch64 ] || CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc images/node/build.sh --for aarch64-unknown-linux-gnu >&2

if [ -n "$packages" ]; then
    trap - EXIT
    wait "$packages" || exit 2
fi
command=$(launcher)
if [ "$(cat .venv/bin/ewan 2>/dev/null || true)" != "$command" ]; then
    printf '%s\n' "$command" >.venv/bin/ewan
    chmod +x .venv/bin/ewan
fi

[ "${1-}" != quic ] || { generator/quic/build.sh && generator/quic/aioquic.sh && { generator/quic/go.sh || echo "quic: quic-go is left out" >&2; }; } >/dev/null
case ${1-} in tests | studio) extras/studio/page/build.sh >/dev/null ;; esac
[ "${1-}" != tests ] || extras/studio/page/types.sh --install

if [ -n "$told" ] && ! command -v ewan >/dev/null; then
    say "done: the command is .venv/bin/ewan; make install puts it on your PATH as ewan"
fi
