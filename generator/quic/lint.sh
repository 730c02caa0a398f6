#!/bin/sh
# clippy, gofmt and go vet for the programs of QUIC. s2n-quic takes two minutes to check with its cryptography: sources that passed with this
# compiler are not checked again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/images/cache.sh"
cd "$here"
cargo clippy --release --locked --quiet --target-dir "$root/target" -- -D warnings
key=$({ cat s2n/Cargo.toml s2n/Cargo.lock s2n/src/*.rs src/*.rs "$root"/emulator/traffic/src/flows/law.rs "$root"/emulator/traffic/src/flows/schedule.rs; cargo clippy --version; } | sha256sum | cut -c-16)
passed=$(kept quic-lint)/$key
if [ ! -e "$passed" ]; then
    (cd s2n && cargo clippy --release --locked --quiet --target-dir "$root/target" -- -D warnings)
    : >"$passed"
fi
cd go
found=$(gofmt -l .)
[ -z "$found" ] || { echo "quic: gofmt changes $found: run gofmt -w generator/quic/go" >&2; exit 1; }
GOFLAGS=-mod=readonly go vet .
