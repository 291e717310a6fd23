#!/usr/bin/env bash
# Runs GDB's own tests, unmodified, against vplayd: those of reverse debugging, and
# the ones in named.txt. The sources come from Debian's gdb source package into a scratch folder
# ($VPLAY_GDBSUITE_SRC, src in $VPLAY_GDBSUITE unless set, and that is vplay-gdbsuite
# in the temporary folder); nothing of them is part of vplay.
#
#   tests/gdbsuite/run.sh [TESTS...]     e.g. step-reverse gdb.base/scope.exp
#
# Prints the totals of each file. Ends with 1 when a failure is not listed in
# expected.txt, or when one listed there for a file that ran does not occur.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${VPLAY_GDBSUITE:-${TMPDIR:-/tmp}/vplay-gdbsuite}
mkdir -p "$work"

# shellcheck source=tests/need/debian.sh
. "$root/tests/need/debian.sh"
install_suite gdbsuite || exit 2

src=${VPLAY_GDBSUITE_SRC:-$work/src}
"$here/fetch.sh" "$src"
suite=$src/gdb/testsuite

(cd "$root" && CGO_ENABLED=0 go build -trimpath -o "$work/vplayd" ./cmd/vplayd)
export VPLAYD=$work/vplayd VPLAY_GDBSERVER=$here/vplay-gdbserver VPLAY_GDBSUITE_CACHE=$work/recordings
mkdir -p "$VPLAY_GDBSUITE_CACHE"

# Tests of other machines, of gdb's own recording, and of its commands.
skip='precsave|^ppc|^s390|^rerun-prec'
tests=()
for t in "$@"; do
  case $t in */*) tests+=("${t%.exp}.exp") ;; *) tests+=("gdb.reverse/${t%.exp}.exp") ;; esac
done
if [ ${#tests[@]} = 0 ]; then
  for f in "$suite"/gdb.reverse/*.exp; do
    t=$(basename "$f")
    [[ $t =~ $skip ]] || tests+=("gdb.reverse/$t")
  done
  while read -r t; do tests+=("$t.exp"); done < <(grep -v '^#' "$here/named.txt" | grep .)
fi

cd "$work"
mkdir -p outputs temp cache
triplet=x86_64-pc-linux-gnu
cat >site.exp <<S
set srcdir "$suite"
set objdir "$work"
set tool gdb
set host_triplet $triplet
set target_triplet $triplet
set build_triplet $triplet
set GDB "$(command -v gdb)"
lappend boards_dir "$here"
lappend boards_dir "$suite/boards"
S

status=0
: >failures.txt
printf '%-42s %5s %5s %5s\n' test pass fail other
for t in "${tests[@]}"; do
  name=$(basename "$t" .exp)
  timeout "${VPLAY_GDBSUITE_TIMEOUT:-300}" runtest --tool gdb --target_board=vplay "$t" >"$name.out" 2>&1 </dev/null || true
  cp gdb.sum "$name.sum"
  cp gdb.log "$name.log"
  pass=$(grep -c '^PASS' "$name.sum" || true)
  fail=$(grep -c '^FAIL\|^ERROR\|^UNRESOLVED' "$name.sum" || true)
  other=$(grep -c '^KPASS\|^XFAIL\|^KFAIL\|^XPASS\|^UNTESTED\|^UNSUPPORTED' "$name.sum" || true)
  printf '%-42s %5d %5d %5d\n' "$t" "$pass" "$fail" "$other"
  grep '^FAIL\|^ERROR\|^UNRESOLVED' "$name.sum" | sed 's/^[A-Z]*: //; s/ (timeout)$//' >>failures.txt || true
done
awk '{ p += $1; f += $2 } END { printf "%-42s %5d %5d\n", "total", p, f }' <(
  for t in "${tests[@]}"; do
    s=$(basename "$t" .exp).sum
    echo "$(grep -c '^PASS' "$s") $(grep -c '^FAIL\|^ERROR\|^UNRESOLVED' "$s")"
  done
)

# expected.txt: reasons are comment lines, the names of tests are the others.
for t in "${tests[@]}"; do
  grep -F "$t: " "$here/expected.txt" | grep -v '^#' || true
done | sort -u >expected.now
sort -u failures.txt -o failures.txt
if new=$(comm -13 expected.now failures.txt) && [ -n "$new" ]; then
  printf 'failures that are not in expected.txt:\n%s\n' "$new"
  status=1
fi
if gone=$(comm -23 expected.now failures.txt) && [ -n "$gone" ]; then
  printf 'in expected.txt, but not failing:\n%s\n' "$gone"
  status=1
fi
exit $status
