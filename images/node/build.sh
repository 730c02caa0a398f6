#!/bin/sh
# Builds the node binary `ewan-node` if needed, and prints its path. `target/release/ewan-node` leads to it.
#
#   build.sh                 for this machine: from the cache where one of the same sources and compiler is there
#   build.sh --sources       prints the hash of the sources; builds nothing
#   build.sh --prebuilt      prints where a binary of these sources is that a bundle brought; status 1 where there is none
#   build.sh --for TRIPLE    for another machine, as aarch64-unknown-linux-gnu; its linker is named by Cargo's own variable
#
# The same sources and compiler give the same bytes in whatever directory: no place of this machine is in the binary. Of
# the bytes comes the name of a result in the store, so that two people's runs agree. A binary that a bundle brought is
# taken before one that is built here: it needs no compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/images/cache.sh"
cd "$root"

fail() { echo "node: $*" >&2; exit 2; }
say() { echo "setup: $*" >&2; }

sources=$({ cat "$here/build.sh"; find .cargo Cargo.* emulator \( -name '*.rs' -o -name '*.toml' -o -name '*.json' -o -name Cargo.lock \) -type f -exec sha256sum {} + | LC_ALL=C sort; } | sha256sum | cut -c1-16)

# found NAME: the binary of this name in the user's cache, or in the machine's, whose bytes are those that were noted.
found() {
    for place in "$(kept node)" "$(shared node)"; do
        [ -z "$place" ] || ! whole "$place/$1" || { printf '%s\n' "$place/$1"; return; }
    done
    return 1
}
# Who sets RUSTFLAGS, or wants no bundle, wants a binary of his own.
prebuilt() { [ -z "${RUSTFLAGS-}" ] && [ "${BUNDLE-}" != off ] && found "prebuilt-$sources"; }

# put FILE PLACE: whole or not at all.
put() { cp "$1" "$2.$$" && mv "$2.$$" "$2" && note "$2"; }

case ${1-} in
--sources) echo "$sources"; exit ;;
--prebuilt) prebuilt; exit ;;
--for) wanted=${2:?} ;;
*) wanted= ;;
esac

noted=target/release/ewan-node.key
# It is ours as long as both its file and what it is made of are those that were noted.
state() { echo "$1 $(stat -L -c '%i %Y %s' target/release/ewan-node 2>/dev/null || true)"; }
# Shows the binary $1 of the key $2, a path below target/, at one fixed place.
publish() {
    ln -sfn "../$1" target/release/ewan-node
    state "$2" >"$noted"
}
mkdir -p target/release
if [ -z "$wanted" ] && brought=$(prebuilt); then
    if [ "$(cat "$noted" 2>/dev/null || true)" != "$(state "prebuilt-$sources")" ]; then
        mkdir -p target/prebuilt
        put "$brought" target/prebuilt/ewan-node
        publish prebuilt/ewan-node "prebuilt-$sources"
    fi
    echo "$root/target/release/ewan-node"
    exit
fi

rust=$(rustc -vV)
node_key=$(echo "$rust" "$wanted" "${RUSTFLAGS-}" "$sources" | sha256sum | cut -c1-16)
# Cargo puts a cross-compiled layout below target/<triple>.
triple=${wanted:-$(echo "$rust" | sed -n 's/^host: //p')}
binary=target/$triple/release/ewan-node
if [ -n "$wanted" ] || [ "$(cat "$noted" 2>/dev/null || true)" != "$(state "$node_key")" ]; then
    mkdir -p "${binary%/*}"
    if cached=$(found "$node_key"); then
        put "$cached" "$binary"
    else
        [ -e "$binary" ] || say "building ewan-node (about a minute, once)"
        flags=
        for each in "$root=ewan" "${CARGO_HOME:-${HOME-}/.cargo}=cargo"; do flags="$flags'--remap-path-prefix=$each',"; done
        cargo build --release --locked --quiet -p ewan-node --target "$triple" \
            --config "target.'cfg(target_os = \"linux\")'.rustflags=[$flags]" || fail "cargo build failed (see above)"
        cached=$(kept node)/$node_key
        note "$binary"
        put "$binary" "$cached"
        # Those that were used last; what bundles brought is small in number and stays.
        ls -t "${cached%/*}" | grep -v -e '^prebuilt-' -e '\.sum$' | tail -n +9 | while read -r old; do rm -f "${cached%/*}/$old" "${cached%/*}/$old.sum"; done
    fi
    [ -n "$wanted" ] || publish "$triple/release/ewan-node" "$node_key"
fi
echo "$root/$([ -n "$wanted" ] && echo "$binary" || echo target/release/ewan-node)"
