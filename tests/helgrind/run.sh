#!/usr/bin/env bash
# Compares the script locks with Valgrind's helgrind, on helgrind's own test
# programs: built from Debian's source package in a scratch folder
# ($VPLAY_HELGRIND, vplay-helgrind in the temporary folder unless set). Nothing of
# them is part of vplay.
#
#   tests/helgrind/run.sh [NAMES...]    tc01_simple_race 'hg0*'
#
# Each program runs under valgrind --tool=helgrind, and is recorded and looked at
# by vplayd run locks. compare.py prints a line for each: the kinds of what both
# have found, with the source lines, and whether they agree. Ends with 1 when the
# programs that differ are not those of expected.txt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${VPLAY_HELGRIND:-${TMPDIR:-/tmp}/vplay-helgrind}
mkdir -p "$work"
# shellcheck source=tests/need/debian.sh
. "$root/tests/need/debian.sh"

# fetch installs what is needed and gets the source package.
fetch() {
  install_suite helgrind || exit 2
  [ -e "$work/src/fetched" ] && return
  mkdir -p "$work/src/valgrind"
  fetch_sources "$work/apt" bookworm valgrind
  tar -xf "$work"/apt/valgrind_*.orig.tar.* -C "$work/src/valgrind" --strip-components=1
  touch "$work/src/fetched"
}

# The programs: those about races and the order of locks. Left out are those
# about the wrong use of functions (tc09, tc10, tc12, tc18, tc20, tc22, tc23, cond_*,
# pth_*, bar_bad), about Valgrind's annotations (annotate_*), about options of
# helgrind (free_is_write, hg03, t2t), and those that end by a deadlock (hg02).
checked=(
  hg01_all_ok hg04_race hg05_race2 hg06_readshared
  locked_vs_unlocked1 locked_vs_unlocked2 locked_vs_unlocked3 stackteardown tls_threads
  tc01_simple_race tc02_simple_tls tc03_re_excl tc04_free_lock tc05_simple_race tc06_two_races tc07_hbl1 tc08_hbl2
  tc11_XCHG tc13_laog1 tc14_laog_dinphils tc15_laog_lockdel tc16_byterace tc17_sembar tc19_shadowmem tc21_pthonce tc24_nonzero_sem bar_trivial
)

# build compiles a program as Valgrind's make files do, without its configuration.
build() {
  local tests=$work/src/valgrind/helgrind/tests
  [ -e "$work/bin/$1" ] && return
  mkdir -p "$work/bin" "$work/include"
  : >"$work/include/config.h"
  : >"$work/src/valgrind/config.h"
  gcc -g -O -w -pthread -Wno-error -DHAVE_PTHREAD_BARRIER=1 -DVGO_linux=1 -DVGA_amd64=1 -DVGP_amd64_linux=1 -I"$work/include" -I"$work/src/valgrind" -I"$work/src/valgrind/include" -o "$work/bin/$1" "$tests/$1.c" >>"$work/build.log" 2>&1
}

# look runs a program in both ways.
look() {
  local out=$work/out/$1
  mkdir -p "$out"
  (cd "$out" && timeout -k 5 300 valgrind --tool=helgrind --xml=yes --xml-file=helgrind.xml "$work/bin/$1" >/dev/null 2>&1) </dev/null || true
  timeout -k 5 100 "$work/vplayd" record -q --keep always --force -o "$out/rec.vplay" -- "$work/bin/$1" >/dev/null 2>"$out/record.err" </dev/null || true
  timeout -k 5 600 "$work/vplayd" run --json --memory 2000 locks "$out/rec.vplay" >"$out/locks.json" 2>"$out/locks.err" || true
  rm -f "$out/rec.vplay"
}

fetch
(cd "$root" && go build -o "$work/vplayd" ./cmd/vplayd)
chosen=()
for p in "${checked[@]}"; do
  for name in "${@:-*}"; do
    # shellcheck disable=SC2053 # a pattern
    [[ $p == $name ]] || continue
    if build "$p"; then look "$p"; fi
    chosen+=("$p")
    break
  done
done
exec python3 "$here/compare.py" "$work/out" "$here/expected.txt" "${chosen[@]}"
