#!/usr/bin/env bash
# The operand stack of bc at each instruction that it interprets, by debug code, compared with what bc itself prints
# where it is compiled to do so (DEBUG of 4, bc/execute.c): the same lines, for bc compiled with -O0
# and with -O2. The source is Debian's, with its patches, fetched and built in a scratch folder
# ($VPLAY_DEBUGCODE, vplay-debugcode in the temporary folder unless set). Nothing of it is part of vplay.
#
#   tests/debugcode/run.sh [VPLAYD]
#
# Prints a line for each: how many instructions and lines there were, and how long it took. Ends with 1 where lines differ, an
# interval does not replay exactly, or a write to bc's memory is not told with its line.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${VPLAY_DEBUGCODE:-${TMPDIR:-/tmp}/vplay-debugcode}
mkdir -p "$work"
# shellcheck source=tests/need/debian.sh
. "$root/tests/need/debian.sh"
install_suite debugcode || exit 2
vplayd=${1:-$work/vplayd}
[ $# -gt 0 ] || (cd "$root" && go build -o "$vplayd" ./cmd/vplayd)
export BC_LINE_LENGTH=0 # lines are not broken

# build NAME CFLAGS... builds bc in its own folder. What was generated is newer than what it is made of, so that make
# asks for no automake and no yacc: of bc.y the patches change messages alone.
build() {
  local name=$1 patch
  shift
  [ ! -e "$work/$name/built" ] || return 0
  rm -rf "${work:?}/$name"
  mkdir "$work/$name"
  (
    cd "$work/$name"
    tar -xf "$work"/apt/bc_*.orig.tar.gz --strip-components=1
    tar -xf "$work"/apt/bc_*.debian.tar.*
    while read -r patch; do patch -s -p1 <"debian/patches/$patch"; done <debian/patches/series
    touch aclocal.m4 && sleep 1 && touch configure config.h.in Makefile.in ./*/Makefile.in doc/*.info bc/bc.c bc/scan.c dc/*.c
    MAKEINFO=true ./configure -q CFLAGS="$*"
    make -s -C lib
    make -s -C bc bc
    touch built
  ) >"$work/$name.log" 2>&1 || { echo "bc is not built: $work/$name.log" >&2; exit 2; }
}

[ -e "$work/apt/sources.list" ] || fetch_sources "$work/apt" bookworm bc
build O0 -g -O0
build O2 -g -O2
build print -g -O0
# The whole of bc with DEBUG of 4 would print its parser's work, too.
(cd "$work/print/bc" && rm -f execute.o bc && make -s bc CFLAGS="-g -O0 -DDEBUG=4") >>"$work/print.log" 2>&1

# lines prints those of instructions and of their stacks.
lines() { grep -aE '^func=|^  [0-9]+ = |^empty' "$1"; }

(cd "$work" && ./print/bc/bc "$here/program.b" </dev/null) >"$work/print.out"
line=$(grep -n 'switch ( inst )' "$work/O0/bc/execute.c" | cut -d: -f1)
sed "s/LINE/$line/" "$here/trace.c" >"$work/trace.c"
bad=0
for level in O0 O2; do
  rec=$work/$level.vplay
  (cd "$work" && "$vplayd" record -q --force --keep always --slim now -o "$rec" -- "$work/$level/bc/bc" "$here/program.b") </dev/null >"$work/$level.own"
  began=$(date +%s.%N)
  "$vplayd" debug-code --symbols "$work/$level/bc" "$work/trace.c" "$rec" >"$work/$level.out" 2>"$work/$level.err" || bad=1
  took=$(awk "BEGIN {print $(date +%s.%N) - $began}")
  if ! cmp <(lines "$work/print.out") <(lines "$work/$level.out"); then
    echo "$level: the stacks differ: $work/print.out, $work/$level.out" >&2
    bad=1
  fi
  grep -q 'replayed exactly' "$work/$level.err" || bad=1
  echo "$level: $(lines "$work/$level.out" | grep -c '^func') instructions, $(lines "$work/$level.out" | wc -l) lines, $took s: $(tail -1 "$work/$level.err")"
  printf 'VPLAY_AT(execute.c, %s) {\n\tif (ex_stack)\n\t\tex_stack->s_num->n_refs++;\n}\n' "$line" >"$work/write.c"
  if "$vplayd" debug-code --symbols "$work/$level/bc" "$work/write.c" "$rec" >/dev/null 2>"$work/write.err" ||
    ! grep -q 'write\.c:3: debug code may not write to the program.s memory' "$work/write.err"; then
    cat "$work/write.err" >&2
    bad=1
  fi
done
exit $bad
