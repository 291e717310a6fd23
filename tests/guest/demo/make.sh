#!/bin/sh
# Makes the recording that is embedded in vplayd for "vplayd demo", of weather.c.
# Usage: make.sh VPLAYD FOLDER; weather.c is in FOLDER, where the others go.
# Needs gcc, objcopy and x86-64 Linux.
set -eu
vplayd=$(realpath "$1")
out=$(realpath "$2")
dir=/tmp/vplay-demo
rm -rf $dir
mkdir $dir
trap 'rm -rf $dir' EXIT
cp "$out/weather.c" $dir
cd $dir
gcc -g -O1 -static -fcf-protection=none -ffile-prefix-map=$dir=. -o weather weather.c
objcopy --only-keep-debug --compress-debug-sections weather weather.debug
strip weather
# No environment, so that nothing of this machine is in the file.
env -i "$vplayd" record -q --interval 5ms -o weather.vplay ./weather >/dev/null || true
"$vplayd" verify weather.vplay
cp weather.debug weather.vplay "$out"
