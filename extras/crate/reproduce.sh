#!/bin/sh
# Checks this crate, repeats its experiment with ewan, and compares. The last line of the output is one of
#   identical                  every result is the same to the byte (virtual clock)
#   equal within U             no metric differs by more than its expanded uncertainty (live clock)
#   differs, here: WHAT        the first difference
# Exit status: 0, 0 and 1; 2 for what is to be put right first. The new results go to results/ where this is started.
#
#   ./reproduce.sh             with `ewan` of the PATH
#   EWAN=/path/to/ewan ./reproduce.sh
#   ./reproduce.sh --trust     executes its commands without asking, also where nobody can be asked
set -u
export LC_ALL=C CDPATH=
commit=@COMMIT@
repository=@REPOSITORY@
version=@VERSION@

fail() { printf 'reproduce.sh: %s\n' "$*" >&2; exit 2; }

crate=$(cd -- "$(dirname -- "$0")" && pwd) || fail "its own directory cannot be entered"

if command -v sha256sum >/dev/null; then
    sums="sha256sum -c"
elif command -v shasum >/dev/null; then
    sums="shasum -a 256 -c"
else
    sums=
fi
# shellcheck disable=SC2086  # a program with its options
if [ -n "$sums" ] && ! said=$(cd -- "$crate" && $sums SHA256SUMS 2>&1); then
    wrong=$(printf '%s\n' "$said" | grep -v ': OK$' | head -n 1)
    fail "${wrong:-SHA256SUMS cannot be read}: the crate is changed or damaged: take another copy"
fi

if [ -n "${EWAN-}" ]; then
    command -v -- "$EWAN" >/dev/null || fail "EWAN=$EWAN: there is no such program: name ewan, like EWAN=~/ewan/.venv/bin/ewan"
elif command -v ewan >/dev/null; then
    EWAN=ewan
elif [ -n "$repository" ] && [ -n "$commit" ]; then
    fail "ewan is not on the PATH: (git clone '$repository' ewan && cd ewan && git checkout $commit && make setup)" \
        "&& EWAN=\"\$PWD/ewan/.venv/bin/ewan\" '$0'"
else
    fail "ewan is not on the PATH: clone its repository${repository:+ ($repository)}, check out" \
        "${commit:-version $version}, run make setup there, then EWAN=DIRECTORY/.venv/bin/ewan '$0'"
fi

said=$("$EWAN" rerun "$crate" "$@")
status=$?
last=$(printf '%s\n' "$said" | tail -n 1)
printf '%s\n' "$said"
case $status:$last in
    0:identical | "0:equal within U" | "1:differs, here: "*) exit "$status" ;;
esac
fail "ewan exp rerun ended with status $status and without a comparison (see above)"
