#!/bin/sh
# Builds the agent: ../agent.bin, or the file named. With Debian 12's gcc and binutils the result is
# the file that is committed, byte for byte (TestBlob).
set -eu
out=$(realpath -m "${1:-$(dirname "$0")/../agent.bin}")
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
flags="-std=gnu11 -O2 -Wall -Wextra -Werror -ffreestanding -fno-builtin -nostdlib -fPIE -mgeneral-regs-only -mno-red-zone
	-fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none -fvisibility=hidden -fno-tree-loop-distribute-patterns
	-fno-jump-tables -mfsgsbase -ffile-prefix-map=$PWD=."
# shellcheck disable=SC2086
gcc $flags -c -o "$dir/agent.o" agent.c
# shellcheck disable=SC2086
gcc $flags -c -o "$dir/entry.o" entry.S
ld -T agent.ld -static -nostdlib --no-warn-rwx-segments -z noexecstack -o "$dir/agent.elf" "$dir/entry.o" "$dir/agent.o"
objcopy -O binary -j .text "$dir/agent.elf" "$out"
chmod -x "$out"
