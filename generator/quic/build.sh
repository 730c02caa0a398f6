#!/bin/sh
# Builds ewan-quic and ewan-s2n-quic if needed and prints their paths: programs without shared libraries, so that they run in
# every node's root. Needs Rust and a C compiler; the versions of their libraries are those of the Cargo.lock of each.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/images/cache.sh"
command -v cargo >/dev/null && command -v cc >/dev/null || { echo "quic: cargo or a C compiler is missing: install Rust 1.91 or newer from rustup.rs, and gcc" >&2; exit 2; }

rust=$(rustc -vV)
triple=$(echo "$rust" | sed -n 's/^host: //p')
flags=
for each in "$root=ewan" "${CARGO_HOME:-${HOME-}/.cargo}=cargo"; do flags="$flags'--remap-path-prefix=$each',"; done
laws=$root/emulator/traffic/src/flows
# built NAME FOLDER TIME SOURCE...: the program of the crate in FOLDER, which is made of these, too.
built() {
    name=$1 folder=$2 takes=$3
    shift 3
    key=$({ cat "$here/build.sh" "$folder/Cargo.toml" "$folder/Cargo.lock" "$@" "$root/.cargo/config.toml"; echo "$rust"; } | sha256sum | cut -c-16)
    made=$(kept quic)/$key/$name
    if ! whole "$made"; then
        echo "setup: building $name ($takes, once)" >&2
        mkdir -p "${made%/*}"
        (cd "$folder" && cargo build --release --locked --quiet --target "$triple" --target-dir "$root/target" \
            --config "target.'cfg(target_os = \"linux\")'.rustflags=[$flags]") || { echo "quic: cargo build failed (see above)" >&2; exit 2; }
        cp "$root/target/$triple/release/$name" "$made.$$"
        mv "$made.$$" "$made"
        note "$made"
    fi
    program=$root/target/release/$name
    mkdir -p "${program%/*}"
    cmp -s "$made" "$program" || { cp "$made" "$program.$$" && mv "$program.$$" "$program"; }
    echo "$program"
}
built ewan-quic "$here" "about a minute" "$here"/src/*.rs "$laws/law.rs" "$laws/schedule.rs"
built ewan-s2n-quic "$here/s2n" "about two minutes" "$here"/s2n/src/*.rs "$here"/src/*.rs "$laws/law.rs" "$laws/schedule.rs"
