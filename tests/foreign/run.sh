#!/usr/bin/env bash
# Runs other projects' tests of x86-64 emulation natively and recorded, and
# compares: QEMU's tests/tcg and Valgrind's none/tests, built by their own make
# files from Debian's source packages in a scratch folder ($VPLAY_FOREIGN,
# vplay-foreign in the temporary folder unless set). Nothing of them is part of
# vplay. Programs for 32 bits are left out, those of QEMU's i386 folder that
# compile for x86-64 are in.
#
#   tests/foreign/run.sh [-t SECONDS] [-k] [NAMES...]    qemu/sha1 amd64/ 'qemu/test-i386-f*'
#   tests/foreign/run.sh -l                              list the programs
#
# -t bounds each run of a program (300), and a tenth of its replay; -k keeps the
# recordings. A name is a pattern of the shell; one that ends in a slash stands for
# the whole folder.
#
# Prints a line per program, with the result:
#
#   ok                output and exit code are the native ones, vplayd verify finds
#                     no difference, and the replayed program writes the same
#                     output again (see replayed)
#   partly            the same, but the recording ends early; the detail says why
#   refused           replay stops at what it does not emulate, and names it; or
#                     record says why it does not record
#   diverged, differs, failed, too slow, does not compile
#
# The detail "varies" says that two native runs differ, so that the recorded one
# is not compared with them; "but addresses" that only addresses do, which can
# differ as there is no vDSO; "in another order" that the same lines were written, by threads that
# do not wait for each other; "children write too" that unrecorded processes have
# a part in the output.
#
# Ends with 1 when a result other than ok is not in expected.txt, or when one that
# is there does not occur.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${VPLAY_FOREIGN:-${TMPDIR:-/tmp}/vplay-foreign}
limit=300 keep='' list=''
while getopts t:kl o; do
  case $o in
    t) limit=$OPTARG ;;
    k) keep=1 ;;
    l) list=1 ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
names=("$@")
mkdir -p "$work"
# shellcheck source=tests/foreign/build.sh
. "$here/build.sh"
fetch
build

programs >"$work/programs.txt"
if [ -n "$list" ]; then
  cut -f1 "$work/programs.txt"
  exit
fi

(cd "$root" && CGO_ENABLED=0 go build -trimpath -o "$work/bin/" ./cmd/vplayd ./tests/foreign/replayed)
# Recording hides AVX-512 and transactions; glibc is told the same natively, or
# its variants for them would make the difference.
tunables=glibc.cpu.hwcaps=-AVX512F,-AVX512BW,-AVX512CD,-AVX512DQ,-AVX512VL,-FMA4,-RTM
fixed='' # addresses that are the same in each run, where the system lets us
setarch -R true 2>/dev/null && fixed='setarch -R'

# wanted says whether program $1 was asked for.
wanted() {
  local pattern
  [ ${#names[@]} = 0 ] && return
  for pattern in "${names[@]}"; do
    # shellcheck disable=SC2053
    [[ $1 == $pattern || $pattern == */ && $1 == $pattern* ]] && return
  done
  return 1
}

# launch runs "$@" in the program's folder with a small environment, its output
# in $1.out and $1.err; prints the exit code, 124 when time is up.
launch() {
  local base=$1 code=0
  shift
  (cd "$folder" && env -i PATH=/usr/bin:/bin LANG=C HOME=/nonexistent TMPDIR="$work/tmp" GLIBC_TUNABLES="$tunables" \
    timeout -k 5 "$limit" "$@" <"$stdin" >"$base.out" 2>"$base.err") 2>/dev/null || code=$?
  echo $code
}

# same compares two files. Without a vDSO the dynamic linker needs less memory,
# and what is mapped later stands elsewhere; apart compares all but addresses.
same() { cmp -s "$1" "$2"; }
anyorder() { cmp -s <(sort "$1") <(sort "$2"); }
apart() { cmp -s <(sed 's/0x[0-9a-f]\{6,\}/ADDRESS/g' "$1") <(sed 's/0x[0-9a-f]\{6,\}/ADDRESS/g' "$2"); }

# suite says whether the recorded program's output is what the suite has written
# down for it: yes or no, nothing where it has nothing.
suite() {
  local base=${name#*/} filter='' f has=''
  case $name in
    qemu/*) set -- "$work/src/qemu/tests/tcg/x86_64/$base.ref" "$work/src/qemu/tests/tcg/i386/$base.ref" ;;
    *)
      filter=$(sed -n 's/^stdout_filter: *//p' "$folder/$base.vgtest" 2>/dev/null) || true
      set -- "$folder/$base".stdout.exp*
      ;;
  esac
  for f; do
    [ -e "$f" ] || continue
    has=1
    if (cd "$folder" && ${filter:+./}${filter:-cat} <"$r.recorded.out" 2>/dev/null) | cmp -s - "$f"; then
      echo yes
      return
    fi
  done
  [ -z "$has" ] || echo no
}

# verify replays the recording twice at once: vplayd verify, and replayed, which
# keeps what the emulated program writes. Sets result and detail.
verify() {
  local code=0 code2=0 other
  timeout -k 5 $((limit * 10)) "$work/bin/replayed" "$r.vplay" "$r.replayed.out" "$r.replayed.err" >"$r.children" 2>"$r.note" &
  other=$!
  timeout -k 5 $((limit * 10)) "$work/bin/vplayd" verify -j 1 "$r.vplay" >"$r.verify" 2>&1 || code=$?
  wait $other || code2=$?
  case $code,$code2 in
    0,0) result=ok ;;
    3,*)
      detail=$(grep -m1 '^interval ' "$r.verify" | sed 's/^interval.* s: replay: //')
      case $detail in *'is not emulated'*) result=refused ;; *) result=diverged ;; esac
      ;;
    *124*) result='too slow' ;;
    *) result=failed detail="verify ends with $code, $(tail -1 "$r.verify"); replayed with $code2, $(tail -1 "$r.note")" ;;
  esac
}

# judge runs one program and sets result, detail and written (see suite).
judge() {
  local r=$work/run/${name//\//.} native again recorded out options=(--keep always --no-slim --keep-seconds 1000 --ring-bytes 4294967296)
  detail='' written=''
  if [ ! -x "$folder/$program" ]; then
    result='does not compile'
    return
  fi
  # The program whose subject it is.
  [ "$name" = qemu/vsyscall ] && options+=(--vsyscall)
  rm -f "$r".*
  # shellcheck disable=SC2086
  {
    native=$(launch "$r.native" $fixed "./$program" "${args[@]}")
    again=$(launch "$r.again" $fixed "./$program" "${args[@]}")
    recorded=$(launch "$r.recorded" $fixed "$work/bin/vplayd" record "${options[@]}" -o "$r.vplay" -- "./$program" "${args[@]}")
  }
  out=$(sed -n 's/^vplayd: \(nothing recorded: \|recording ended early: \|error: \)//p' "$r.recorded.err" | head -1)
  sed -i '/^vplayd: /d' "$r.recorded.err"
  local varies=''
  same "$r.native.out" "$r.again.out" && same "$r.native.err" "$r.again.err" && [ "$native" = "$again" ] || varies=1
  if [ ! -s "$r.vplay" ]; then
    result=refused detail=${out:-"exit code $recorded"}
    return
  fi
  verify
  [ "$result" = ok ] || return 0
  written=$(suite)
  if [ -n "$out" ]; then
    result=partly detail=$out
  fi
  if [ -n "$varies" ]; then
    detail=${detail:+$detail, }varies
  elif [ "$native" != "$recorded" ]; then
    result=differs detail="exit code $recorded, natively $native"
    return
  elif same "$r.native.out" "$r.recorded.out" && same "$r.native.err" "$r.recorded.err"; then
    :
  elif apart "$r.native.out" "$r.recorded.out" && apart "$r.native.err" "$r.recorded.err"; then
    detail="${detail:+$detail, }but addresses"
  elif anyorder "$r.native.out" "$r.recorded.out" && anyorder "$r.native.err" "$r.recorded.err"; then
    detail="${detail:+$detail, }in another order"
  else
    result=differs detail=output
    return
  fi
  emulated
}

# emulated compares what the emulator wrote with what the recorded run wrote, of a
# recording that ended early the part that is there.
emulated() {
  local stream mine=''
  for stream in out err; do
    if [ "$result" = partly ]; then
      cmp -s -n "$(stat -c %s "$r.replayed.$stream")" "$r.replayed.$stream" "$r.recorded.$stream" || mine="$mine $stream"
    else
      same "$r.replayed.$stream" "$r.recorded.$stream" || mine="$mine $stream"
    fi
  done
  [ -z "$mine" ] && return
  if grep -qx children "$r.children"; then
    detail="${detail:+$detail, }children write too"
  else
    result=differs detail="emulated$mine"
  fi
}

# tally prints a line of counts of the words on standard input.
tally() { sort | uniq -c | sort -rn | awk '{ c = $1; $1 = ""; printf "%s%s %d", s, $0, c; s = "," } END { print "" }'; }

main() {
  mkdir -p "$work/run" "$work/tmp"
  : >"$work/results.txt"
  printf '%-32s %-16s %6s  %s\n' program result s detail
  while IFS=$'\t' read -r name folder program stdin line; do
    wanted "$name" || continue
    eval "args=($line)"
    began=$(date +%s%N)
    judge
    printf '%-32s %-16s %6.1f  %s\n' "$name" "$result" "$((($(date +%s%N) - began) / 100000000))e-1" "$detail"
    printf '%s\t%s\t%s\t%s\n' "$name" "$result" "$written" "$detail" >>"$work/results.txt"
    [ -n "$keep" ] || rm -f "$work/run/${name//\//.}.vplay"
  done <"$work/programs.txt"
  printf '%d programs:%s\n' "$(wc -l <"$work/results.txt")" "$(cut -f2 "$work/results.txt" | tally)"
  awk -F'\t' '$2 == "partly" || $2 == "refused" { print $2 ": " $4 }' "$work/results.txt" | sed 's/ at [^ ]* (rip [^)]*):\( [A-Z0-9]*\) \[[^]]*\]/\1/; s/, varies$//; s/, but addresses$//' | sort | uniq -c
  printf 'output as the suite has it written down: %s\n' "$(cut -f3 "$work/results.txt" | sed '/^$/d' | tally)"

  # expected.txt: reasons are comment lines; the others are NAME RESULT, and
  # behind it a word of /proc/cpuinfo when only CPUs that have it give that.
  status=0
  sed '/^#/d; /^$/d' "$here/expected.txt" | while IFS=$'\t' read -r name result on; do
    [ -z "$on" ] || grep -qwm1 -- "$on" /proc/cpuinfo || continue
    if wanted "$name"; then printf '%s\t%s\n' "$name" "$result"; fi
  done | sort -u >"$work/expected.now"
  awk -F'\t' '$2 != "ok" { print $1 "\t" $2 }' "$work/results.txt" | sort -u >"$work/failures.txt"
  if new=$(comm -13 "$work/expected.now" "$work/failures.txt") && [ -n "$new" ]; then
    printf 'not in expected.txt:\n%s\n' "$new"
    status=1
  fi
  if gone=$(comm -23 "$work/expected.now" "$work/failures.txt") && [ -n "$gone" ]; then
    printf 'in expected.txt, but otherwise now:\n%s\n' "$gone"
    status=1
  fi
  return $status
}

main "$@"; exit
