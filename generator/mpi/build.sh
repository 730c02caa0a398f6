#!/bin/sh
# Builds ewan-mpi if needed and prints its path. It uses the MPI library of this machine. Needs Debian's libopenmpi-dev.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/images/cache.sh"
source=$root/generator/mpi/ewan_mpi.c
command -v mpicc >/dev/null || { echo "mpi: mpicc is missing: apt install openmpi-bin libopenmpi-dev" >&2; exit 2; }

key=$({ cat "$source" "$0"; mpicc --version; mpicc -show; } | sha256sum | cut -c-16)
built=$(kept mpi)/$key/ewan-mpi
if ! whole "$built"; then
    mkdir -p "${built%/*}"
    mpicc -std=gnu11 -O2 -Wall -Wextra -o "$built.$$" "$source" || { rm -f "$built.$$"; exit 2; }
    mv "$built.$$" "$built"
    note "$built"
fi
program=$root/target/release/ewan-mpi
mkdir -p "${program%/*}"
cmp -s "$built" "$program" || { cp "$built" "$program.$$" && mv "$program.$$" "$program"; }
echo "$program"
