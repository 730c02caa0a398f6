#!/bin/sh
# Builds ewan-quic if needed and prints its path: a program without shared libraries, so that it runs in every node's root.
# Needs Rust and a C compiler; the versions of its libraries are those of Cargo.lock beside this.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/images/cache.sh"
command -v cargo >/dev/null && command -v cc >/dev/null || { echo "quic: cargo or a C compiler is missing: install Rust 1.91 or newer from rustup.rs, and gcc" >&2; exit 2; }
cd "$here"

rust=$(rustc -vV)
triple=$(echo "$rust" | sed -n 's/^host: //p')
key=$({ cat "$here/build.sh" Cargo.toml Cargo.lock src/*.rs "$root"/emulator/traffic/src/flows/law.rs "$root"/emulator/traffic/src/flows/schedule.rs "$root/.cargo/config.toml"; echo "$rust"; } | sha256sum | cut -c-16)
built=$(kept quic)/$key/ewan-quic
if ! whole "$built"; then
    echo "setup: building ewan-quic (about a minute, once)" >&2
    mkdir -p "${built%/*}"
    flags=
    for each in "$root=ewan" "${CARGO_HOME:-${HOME-}/.cargo}=cargo"; do flags="$flags'--remap-path-prefix=$each',"; done
    cargo build --release --locked --quiet --target "$triple" --target-dir "$root/target" \
        --config "target.'cfg(target_os = \"linux\")'.rustflags=[$flags]" || { echo "quic: cargo build failed (see above)" >&2; exit 2; }
    cp "$root/target/$triple/release/ewan-quic" "$built.$$"
    mv "$built.$$" "$built"
    note "$built"
fi
program=$root/target/release/ewan-quic
mkdir -p "${program%/*}"
cmp -s "$built" "$program" || { cp "$built" "$program.$$" && mv "$program.$$" "$program"; }
echo "$program"
