#!/bin/sh
# Builds ewan-udt if needed and prints its path: a program without shared libraries, so that it runs in every node's root.
# Needs g++ and Debian's libudt-dev.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/images/cache.sh"
source=$root/generator/udt/ewan_udt.cpp
command -v g++ >/dev/null && [ -e /usr/include/udt/udt.h ] || { echo "udt: g++ or the UDT library is missing: apt install g++ libudt-dev" >&2; exit 2; }

flags="-std=c++17 -O2 -Wall -Wextra -static"
library=$(g++ -print-file-name=libudt.a)
key=$({ cat "$source" "$0" "$library" /usr/include/udt/udt.h; g++ --version; } | sha256sum | cut -c-16)
built=$(kept udt)/$key/ewan-udt
if ! whole "$built"; then
    mkdir -p "${built%/*}"
    # libudt calls getaddrinfo for sockets that it binds itself; ours are bound already.
    g++ $flags -o "$built.$$" "$source" -ludt -lpthread 2>"$built.$$.log" ||
        { cat "$built.$$.log" >&2; rm -f "$built.$$" "$built.$$.log"; exit 2; }
    rm -f "$built.$$.log"
    mv "$built.$$" "$built"
    note "$built"
fi
program=$root/target/release/ewan-udt
mkdir -p "${program%/*}"
cmp -s "$built" "$program" || { cp "$built" "$program.$$" && mv "$program.$$" "$program"; }
echo "$program"
