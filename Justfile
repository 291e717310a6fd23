# Recipes of vplay. Without just: ./tests/run.sh tests everything, and
# `go build -trimpath ./cmd/vplayd` builds.

set shell := ["bash", "-euo", "pipefail", "-c"]

golangci := "v2.15.0"
benchstat := "latest"

# list the recipes
default:
    @just --list --unsorted

# everything that must hold before a commit
check: test lint generate-check

# build bin/vplayd
build:
    CGO_ENABLED=0 go build -trimpath -o bin/vplayd ./cmd/vplayd

# install what the tests need, vet, and test everything
test *ARGS:
    ./tests/run.sh {{ ARGS }}

# test with the race detector
race:
    go test -race -timeout 30m ./...

# python3's own tests as a whole and long forced ends, recorded and native
transparency:
    go test ./tests/record -run 'TestPython|TestBash|TestForcedEnds' -timeout 1h -v -transparency -long

# more real programs, recorded and verified: openssl, cc1, ghostscript, java, node, redis, ...
programs:
    . tests/need/debian.sh && install_suite programs
    go test ./tests/record -run 'TestMorePrograms|TestThreadPrograms|TestTreePrograms|TestServers|TestAttachServers|TestAgentLogs' -timeout 1h -v -programs

# Chromium and Firefox, whole, with all their processes: recorded, verified
browsers:
    . tests/need/debian.sh && install_suite browsers
    go test ./tests/record -run TestBrowsers -timeout 1h -v -browsers

# language runtimes and servers for as long each, with an end forced each 3 ms that they run: recorded, verified; random schedules: just forced 6s -forced-chaos
forced FOR="1m" *ARGS:
    . tests/need/debian.sh && install_suite programs
    go test ./tests/record -run TestForcedMinutes -timeout 4h -v -programs -forced-for {{ FOR }} {{ ARGS }}

# the command line's and gdb's tests with all code translated at first sight, and by the interpreter; rows, sequences and mutated code
# by generated code; the recorder's tests with the agent in each program
engines:
    VPLAY_JIT=all go test ./cmd/vplayd ./tests/e2e -timeout 1h
    VPLAY_JIT=0 go test ./cmd/vplayd ./tests/e2e -timeout 1h
    go test ./tests/differential -run 'TestSoak$' -translated -cases 10000000 -seed 7 -timeout 1h -v
    go test ./tests/differential -run TestSequencesAgainst -translated -cases 1000000 -seed 21 -timeout 1h -v
    go test ./replay/x86/jit -run TestMutatedCode -mutations 2000000 -mutationseed 1 -timeout 1h -v
    go test ./tests/record -timeout 1h -agent

# races that random schedules find and fair ones do not; every case with threads under SEEDS random schedules
races SEEDS="20":
    go test ./tests/record -timeout 2h -run TestRaces -nativeruns 1000 -plainruns 1000 -v
    go test ./tests/record -timeout 2h -run 'TestThreads/.*/chaos' -chaos-seeds {{ SEEDS }} -v

# bin/vplay.vsix, the extension for VS Code: install it with "code --install-extension"
vsix:
    npm install --prefix bin/vsce --ignore-scripts --no-audit --no-fund --silent "@vscode/vsce@$(sed -n 's/^vsce=//p' tests/vscode/fetch.sh)"
    gdbstub/dap/vscode/pack.sh bin/vsce/node_modules/.bin/vsce bin/vplay.vsix

# the extension in the real editor: every scene with its picture in FOLDER, and how long a step back takes
vscode FOLDER="/tmp/vplay-shots":
    . tests/need/debian.sh && install_suite vscode
    tests/vscode/fetch.sh "${XDG_CACHE_HOME:-$HOME/.cache}/vplay-tests/vscode"
    go test ./tests/vscode -timeout 30m -v -shots {{ FOLDER }} -long -latency 50

# random moves over 3 processes with 8 threads, each compared with single steps
moves N="10000" SEED="1":
    go test ./tests/e2e -run '^TestCrew$' -timeout 1h -v -crewmoves {{ N }} -crewseed {{ SEED }}

# both commands of the README in a minimal Debian that holds Go and nothing else
fresh:
    tests/fresh.sh

# the portable packages and vplayd as linux/arm64 (qemu-user) and windows/amd64 (wine)
cross *ARGS:
    tests/cross/run.sh {{ ARGS }}

# GDB's own tests against vplayd: just gdb-suite, just gdb-suite step-reverse gdb.base/callfuncs
gdb-suite *TESTS:
    tests/gdbsuite/run.sh {{ TESTS }}

# QEMU's and Valgrind's test programs, native, recorded and replayed: just foreign qemu/ amd64/aes
foreign *NAMES:
    tests/foreign/run.sh {{ NAMES }}

# the script locks and valgrind's helgrind on helgrind's test programs: just helgrind 'tc0*'
helgrind *NAMES:
    tests/helgrind/run.sh {{ NAMES }}

# the script locks on programs of Debian with threads: it is silent of most, and finds the races of some
locks:
    . tests/need/debian.sh && install_suite programs
    go test ./tests/e2e -run 'TestLocksScriptOnPrograms' -analyses -timeout 1h -v

# deviate, and the scripts heap, locks and uninit, on all programs of their tests
analyses:
    . tests/need/debian.sh && install_suite programs
    go test ./tests/e2e -run 'TestDeviate|TestHeapScript|TestLocksScript|TestUninit' -analyses -timeout 1h -v

# debug code over bc, compared with what bc prints of itself: just debug-code
debug-code:
    tests/debugcode/run.sh

# the script heap beside valgrind's memcheck on memcheck's own test programs: just memcheck -v badrw
memcheck *ARGS:
    tests/memcheck/run.sh {{ ARGS }}

# compare the emulator with this CPU, N cases
diff-cpu N="1000000" SEED="1":
    go test ./tests/differential -run TestSoak -timeout 10h -v -cases {{ N }} -seed {{ SEED }}

# change everything an instruction is not said to read, and compare with the CPU: just diff-directions 3000000
diff-directions N="1000000" SEED="1":
    go test ./tests/differential -run '^TestDirections$' -timeout 10h -v -cases {{ N }} -seed {{ SEED }}

# fuzz one target: just fuzz ./checkpoint FuzzOpen 60s
fuzz PKG TARGET TIME="30s":
    go test {{ PKG }} -run '^$' -fuzz '^{{ TARGET }}$' -fuzztime {{ TIME }} -fuzzminimizetime 100x

# lint with the pinned version
lint:
    go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@{{ golangci }} run ./...

# format everything
fmt:
    go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@{{ golangci }} fmt
    just --fmt --unstable

# write the generated files again
generate:
    go generate ./...

# fail when generated files are not current
generate-check: generate
    git diff --exit-code -- '*_gen.go' '*_gen_test.go'

# record the crash of `vplayd demo` again (x86-64 Linux)
demo: build
    tests/guest/demo/make.sh bin/vplayd cmd/vplayd/demo

# run the benchmarks into FILE
bench FILE="bench.txt":
    go test ./tests/bench -run '^$' -bench . -count 5 | tee {{ FILE }}

# how long a debugger waits, on a recording of 10^9 instructions
latency *ARGS:
    go test ./tests/bench -run '^$' -bench Latency -benchtime 1x -v -timeout 1h {{ ARGS }}

# execute the slices of N random values of each recording alone, and compare: RECORDINGS is a pattern with the whole path
slices RECORDINGS N="100" SEED="1":
    go test ./replay/analysis/slice -run TestSufficient -timeout 6h -v -recordings '{{ RECORDINGS }}' -values {{ N }} -seed {{ SEED }}

# compare Go's values with dlv core itself, and write the golden files again: after a change of Go or delve
go-values VERSION="v1.27.2":
    GOBIN="{{ justfile_directory() }}/bin" go install github.com/go-delve/delve/cmd/dlv@{{ VERSION }}
    go test ./dwarf -run TestAgainstDelve -timeout 30m -v -update -dlv "{{ justfile_directory() }}/bin/dlv"
    go test ./dwarf -run TestAgainstDelve -timeout 30m -v -toolchain go1.23.12 -dlv "{{ justfile_directory() }}/bin/dlv"

# count the programs that do not end as by themselves when their recorder is killed N times
kills N="170":
    . tests/need/debian.sh && install_suite programs
    go test ./tests/record -run TestKilledOutright -timeout 3h -v -programs -kills {{ N }}

# attach N times to a busy program of fifty threads, and let it go
attaches N="1000":
    go test ./tests/record -run TestAttachMany -timeout 3h -v -attaches {{ N }}

# attach to servers that clients have used for AFTER, record them for FOR, twice, let them go, and verify
attach-servers AFTER="1m" FOR="10s":
    . tests/need/debian.sh && install_suite programs
    go test ./tests/record -run TestAttachServers -timeout 3h -v -programs -agent -attach-after {{ AFTER }} -attach-for {{ FOR }}

# programs and vplayd at the limits of what they may have, with a program of THREADS threads
limits THREADS="4000":
    go test ./tests/record -run 'TestLimits|TestCopiesKilled|TestSmallRing' -timeout 3h -v -limit-threads {{ THREADS }}

# compare the system call table with this kernel, N calls from each of five seeds
fuzz-calls N="60000":
    for seed in 21 22 23 24 25; do go test ./checkpoint/abi -run TestFuzzKernel -timeout 30m -v -args -fuzzcalls {{ N }} -fuzzseed $seed; done

# compare answers about the past with a linear scan, N questions a recording
questions N="5000":
    go test ./tests/e2e -run TestQuestions -questions {{ N }} -timeout 1h -v

# vplay's replay beside this CPU and qemu-x86_64 (package qemu-user): just side-by-side --json; other programs: just side-by-side --more
side-by-side *ARGS:
    . tests/need/debian.sh && install_suite sidebyside
    go run ./tests/bench/sidebyside {{ ARGS }}

# what recording costs: programs and servers natively, recorded, and under strace, in alternation: just overhead --only gzip,redis --rounds 3 --json
overhead *ARGS:
    . tests/need/debian.sh && install_suite overhead
    go run ./tests/bench/overhead {{ ARGS }}

# how long a redis with much memory stands still at the borders between intervals, and what memory recording takes: just pauses --size 2048
pauses *ARGS:
    . tests/need/debian.sh && install_suite overhead
    go run ./tests/bench/pauses {{ ARGS }}

# what must be traced of ten programs for replay in bounded time, and what logs of first loads take: just traced --only gzip,bc --json
traced *ARGS:
    . tests/need/debian.sh && install_suite traced
    go run ./tests/bench/traced {{ ARGS }}

# compare two benchmark files
benchcmp OLD NEW:
    go run golang.org/x/perf/cmd/benchstat@{{ benchstat }} {{ OLD }} {{ NEW }}
