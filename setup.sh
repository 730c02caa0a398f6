#!/bin/sh
# Sets up what the project needs: checked prerequisites, Debian packages, the Python environment from its
# lock file, the node binary; `setup.sh tests` also what the tests run. Does nothing, quickly and silently, when all
# is there. Called by make.
set -eu
cd "$(dirname "$0")"
root=$(pwd)

fail() { echo "setup: $*" >&2; exit 2; }
say() { echo "setup: $*" >&2; }

# Oldest versions that are known to work.
command -v python3 >/dev/null || fail "python3 is missing: install Python 3.11 or newer (Debian: apt install python3 python3-venv)"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$(python3 --version) is too old: install Python 3.11 or newer"
command -v cargo >/dev/null || fail "cargo is missing: install Rust 1.91 or newer from rustup.rs"
oldest=1.91
cargo_version=$(cargo --version | cut -d' ' -f2)
[ "$(printf '%s\n%s\n' "$oldest" "$cargo_version" | sort -V | head -n 1)" = "$oldest" ] ||
    fail "cargo $cargo_version is too old: install Rust $oldest or newer from rustup.rs"
command -v cc >/dev/null || fail "a C linker is missing: install gcc (Debian: apt install gcc)"

# Tools that people and tests run inside nodes; for the tests also a machine with a stock kernel, which QEMU emulates.
tools="ip:iproute2 ping:iputils-ping"
[ "${1-}" != tests ] || tools="$tools tc:iproute2 ethtool:ethtool iperf3:iperf3 ITGSend:d-itg flent:flent tcpdump:tcpdump busybox:busybox-static
    qemu-system-x86_64:qemu-system-x86 vtysh:frr ovs-vsctl:openvswitch-switch nuttcp:nuttcp mmdebstrap:mmdebstrap patch:patch podman:podman"
# A container engine: the one that answers, else Debian's, which the tests start for themselves.
[ "${1-}" != tests ] || docker version >/dev/null 2>&1 || tools="$tools dockerd:docker.io docker:docker.io"
missing=
for tool in $tools; do
    command -v "${tool%%:*}" >/dev/null || [ -x "/usr/sbin/${tool%%:*}" ] || missing="$missing ${tool#*:}"
done
if [ -n "$missing" ]; then
    command -v apt-get >/dev/null || fail "install these first:$missing"
    say "installing$missing"
    as_root=; [ "$(id -u)" = 0 ] || as_root=sudo
    # Offline: services that come with a package (Docker, FRRouting, Open vSwitch) are not started on this machine.
    $as_root apt-get -o Acquire::Retries=3 update -qq && $as_root env DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends $missing >/dev/null ||
        fail "could not install$missing: install them by hand"
fi

# Prometheus for the tests, unpacked from Debian's package: installed, it would start as a service.
if [ "${1-}" = tests ] && ! command -v prometheus >/dev/null && [ ! -x target/prometheus/usr/bin/promtool ]; then
    say "unpacking prometheus into target/prometheus"
    tests/dashboards/unpack.sh target/prometheus || fail "could not download Debian's package prometheus"
fi

# One setup at a time: two makes in one tree wait for each other.
exec 9>.setup.lock
if command -v flock >/dev/null; then flock 9; fi

lock_hash=$(sha256sum requirements.lock | cut -d' ' -f1)
if [ "$(cat .venv/.lock-hash 2>/dev/null || true)" != "$lock_hash" ]; then
    say "Python packages into .venv (versions from requirements.lock)"
    python3 -m venv .venv || fail "python3 -m venv failed (Debian: apt install python3-venv)"
    .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock ||
        fail "pip could not install requirements.lock (see above); run make setup again when the network is back"
    printf '#!/bin/sh\nexec "%s/.venv/bin/python" "%s/ewan.py" "$@"\n' "$root" "$root" >.venv/bin/ewan
    chmod +x .venv/bin/ewan
    echo "$lock_hash" >.venv/.lock-hash
fi

binary=target/release/ewan-node
[ -e "$binary" ] || say "building ewan-node (about a minute, once)"
# Cargo puts a cross-compiled layout below target/<triple>; a link at one fixed place hides that.
cargo build --release --locked --quiet -p ewan-node || fail "cargo build failed (see above)"
triple=$(rustc -vV | sed -n 's/^host: //p')
mkdir -p target/release
ln -sfn "../$triple/release/ewan-node" "$binary"
