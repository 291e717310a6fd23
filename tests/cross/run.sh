#!/usr/bin/env bash
# Builds the tests of the portable packages and vplayd for linux/arm64 and
# windows/amd64, and runs them here by qemu-user and wine: everything but the
# comparison with the CPU, which those systems cannot ask. vplayd must print the
# same about a recording as the native one does. See RATIONALE.md.
#
#   tests/cross/run.sh [arm64|windows] [PACKAGE...]
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD

systems=()
packages=()
for a in "$@"; do
  case $a in
    arm64 | windows) systems+=("$a") ;;
    *) packages+=("${a#./}") ;;
  esac
done
[ ${#systems[@]} -gt 0 ] || systems=(arm64 windows)
all=${#packages[@]}
[ "$all" -gt 0 ] || packages=(replay/x86 replay/mem tests/differential checkpoint checkpoint/abi checkpoint/corefile loader dwarf gdbstub gdbstub/dap cmd/vplayd)

# shellcheck source=tests/need/debian.sh
. tests/need/debian.sh
for s in "${systems[@]}"; do
  install_suite "$s"
done

tmp=$(mktemp -d)
export WINEDEBUG=-all WINEPREFIX=$tmp/wine
trap 'wineserver -k 2>/dev/null || true; rm -rf "$tmp"' EXIT
unset VPLAY_REQUIRE_ALL DISPLAY

# What cannot run, by system: package, tests, and why.
excluded() {
  case $1:$2 in
    arm64:checkpoint) echo "^TestKilledWriter\$" "starts the test binary, which the kernel cannot run" ;;
    arm64:gdbstub) echo "^TestGDBPipe\$" "gdb starts the test binary, which the kernel cannot run" ;;
    arm64:cmd/vplayd) echo "^TestScripts\$" "starts vplayd, which the kernel cannot run" ;;
    windows:gdbstub) echo "^(TestGDBUnixSocket|TestListen)\$" "wine 8 has no unix sockets" ;;
    windows:cmd/vplayd) echo "^TestScripts\$/^(serve|notrecording)\$" "they want the texts of Unix errors" ;;
  esac
}

# wine 8 lacks two things that Go's run time asks of Windows 10: a DLL with
# random numbers, here one that forwards to the old function, and deleting files
# while they are open, for which Go has a switch of its own tests.
prepareWindows() {
  wineboot -i >/dev/null 2>&1
  printf 'LIBRARY bcryptprimitives.dll\nEXPORTS\nProcessPrng = advapi32.SystemFunction036\n' >"$tmp/prng.def"
  as -o "$tmp/prng.o" /dev/null
  ld -m i386pep --dll -e 0 -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" "$tmp/prng.o" "$tmp/prng.def"
  local f
  f=$(go env GOROOT)/src/internal/syscall/windows/at_windows.go
  sed 's/^var TestDeleteatFallback bool/var TestDeleteatFallback = true/' "$f" >"$tmp/at_windows.go"
  printf '{"Replace": {"%s": "%s"}}\n' "$f" "$tmp/at_windows.go" >"$tmp/overlay.json"
}

failed=0
now() { date +%s%N; }

# build SYSTEM OUT PACKAGE "build" or "test -c"
build() {
  local system=$1 out=$2 pkg=$3
  shift 3
  case $system in
    native) go "$@" -o "$out" "$pkg" ;;
    arm64) GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go "$@" -o "$out" "$pkg" ;;
    windows) GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go "$@" -overlay "$tmp/overlay.json" -o "$out" "$pkg" ;;
  esac
}

# run SYSTEM PROGRAM arguments...
run() {
  local system=$1
  shift
  case $system in
    native) "$@" </dev/null ;;
    arm64) qemu-aarch64 "$@" </dev/null ;;
    windows) wine "$@" </dev/null ;;
  esac
}

# testPackage SYSTEM PACKAGE prints one line, and what failed.
testPackage() {
  local system=$1 pkg=$2 bin=$tmp/$1.test.exe log=$tmp/log skip why start status=ok
  read -r skip why <<<"$(excluded "$system" "$pkg")"
  build "$system" "$bin" "./$pkg" test -c || {
    echo "$system $pkg: does not build"
    failed=1
    return
  }
  start=$(now)
  (cd "$pkg" && run "$system" "$bin" -test.v -test.timeout 30m ${skip:+-test.skip "$skip"}) >"$log" 2>&1 || status=FAILED
  printf '%-8s %-20s %-7s %4d s  %5d passed %3d failed %3d skipped%s\n' "$system" "$pkg" "$status" $((($(now) - start) / 1000000000)) \
    "$(grep -c -- '--- PASS' "$log")" "$(grep -c -- '--- FAIL' "$log")" "$(grep -c -- '--- SKIP' "$log")" "${skip:+; not run: $skip ($why)}"
  if [ $status != ok ]; then
    grep -B8 -- '--- FAIL' "$log" | head -60
    failed=1
  fi
}

# sameOutput SYSTEM compares what vplayd prints about the demo's recording.
sameOutput() {
  local system=$1 verb out
  build "$system" "$tmp/$system.vplayd.exe" ./cmd/vplayd build
  for verb in "verify weather.vplay" "info weather.vplay" "dump weather.vplay" demo; do
    for s in native "$system"; do
      # shellcheck disable=SC2086
      (cd "$tmp/demo" && run "$s" "$tmp/$s.vplayd.exe" $verb 2>&1) | tr -d '\r' |
        sed -E 's/[0-9.]+ ?(ns|µs|ms|s)\b|[0-9.]+ M\/s|[0-9.]+ M (insn|instructions)\/s|\([^)]*CPU[^)]*\)/T/g; s/127\.0\.0\.1:[0-9]+/ADDRESS/g; s/\\/\//g' >"$tmp/$s.out" || true
    done
    out=same
    cmp -s "$tmp/native.out" "$tmp/$system.out" || out=DIFFERENT
    printf '%-8s vplayd %-22s %s (%d lines)\n' "$system" "$verb" "$out" "$(wc -l <"$tmp/native.out")"
    if [ $out != same ]; then
      diff "$tmp/native.out" "$tmp/$system.out" | head -20 || true
      failed=1
    fi
  done
}

mkdir "$tmp/demo"
cp cmd/vplayd/demo/weather.vplay "$tmp/demo"
build native "$tmp/native.vplayd.exe" ./cmd/vplayd build
for s in "${systems[@]}"; do
  if [ "$s" = windows ]; then
    prepareWindows
  fi
  if [ "$all" -eq 0 ]; then
    sameOutput "$s"
  fi
  for p in "${packages[@]}"; do
    testPackage "$s" "$p"
  done
done
exit $failed
