#!/usr/bin/env bash
# Compares the script heap of `vplayd run` with valgrind's memcheck on memcheck's own test programs: built by their own
# make files from Debian's source package in a scratch folder ($VPLAY_MEMCHECK, vplay-memcheck in the temporary
# folder unless set). Nothing of them is part of vplay.
#
#   tests/memcheck/run.sh [-v] [PROGRAMS...]     badrw doublefree
#
# Each program runs under valgrind, and is recorded, and the script looks at the recording. Prints a line per
# program: what both find, and what one alone does, by kind and line of the program's source (compare/main.go says what is
# compared). -v prints what they differ in as well. Ends with 1 when fewer than 20 programs agree.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${VPLAY_MEMCHECK:-${TMPDIR:-/tmp}/vplay-memcheck}
verbose=''
while getopts v o; do
  case $o in
    v) verbose=-v ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
# shellcheck source=tests/need/debian.sh
. "$root/tests/need/debian.sh"
install_suite memcheck || exit 2
mkdir -p "$work/src/valgrind"
if [ ! -e "$work/src/fetched" ]; then
  fetch_sources "$work/apt" bookworm valgrind
  tar -xf "$work"/apt/valgrind_*.orig.tar.* -C "$work/src/valgrind" --strip-components=1
  touch "$work/src/fetched"
fi
tests=$work/src/valgrind/memcheck/tests
[ -e "$tests/Makefile" ] || (cd "$work/src/valgrind" && ./configure -q --enable-only64bit) >"$work/configure.log" 2>&1
if [ $# = 0 ]; then
  mapfile -t programs < <(sed 's/#.*//; /^ *$/d' "$here/programs.txt")
else
  programs=("$@")
fi
make -k -C "$tests" "${programs[@]}" >"$work/make.log" 2>&1 || true
(cd "$root" && CGO_ENABLED=0 go build -trimpath -o "$work/bin/" ./cmd/vplayd ./tests/memcheck/compare)
"$work/bin/compare" $verbose -vplayd "$work/bin/vplayd" -folder "$tests" -scratch "$work" "${programs[@]}"
