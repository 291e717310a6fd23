package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint"
	realgdb "vplay/tests/gdb"
	"vplay/tests/processes"
)

// recordedPID returns the process that a recording is about.
func recordedPID(t *testing.T, path string) int32 {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	return rec.Manifest().PID
}

// TestInferiors attaches gdb to the processes of a recording: each has its own threads, symbols
// and breakpoints, and moves by itself, or with the others.
func TestInferiors(t *testing.T) {
	t.Parallel()
	race := compile(t, "race", "-O0", "-pthread")
	deep := compile(t, "recursion", "-O0")
	first, second := race.record(t), deep.record(t)
	a, b := recordedPID(t, first), recordedPID(t, second)
	symbols := filepath.Join(race.dir, "symbols")
	if err := os.Rename(filepath.Join(deep.dir, "symbols", "recursion"), filepath.Join(symbols, "recursion")); err != nil {
		t.Fatal(err)
	}
	both := filepath.Join(t.TempDir(), "both.vplay")
	processes.Merge(t, both, first, second)
	addr := serve(t, both, "--symbols", symbols)
	out := realgdb.Batch(t, "target extended-remote "+addr, fmt.Sprint("attach ", a), "add-inferior", "inferior 2", fmt.Sprint("attach ", b),
		"info inferiors", "info threads", "thread apply all bt 2", "info sharedlibrary", "thread 1.2", "reverse-stepi", "x/i $pc", "info threads",
		"inferior 2", "break misconfigure", "reverse-continue", "next", "print limit", "info threads",
		"inferior 1", "print count", "monitor processes",
		// With this one time goes for all: the second process has ended before the first one begins, and
		// does not begin before it has.
		"set schedule-multiple on", "thread 1.1", "tbreak race.c:main", "reverse-continue", "thread 2.1", "print $pc", "print limit",
		"delete", "tbreak recursion.c:main", "reverse-continue", "thread 1.1", "x/i $pc", "info threads",
		"detach inferiors 2", "info inferiors")
	expect(t, out, places(t, race, "race", []string{
		`LINE:CRASH`, `Switching to inferior 2`, `Thread 2.1 "recursion" received signal SIGSEGV`,
		fmt.Sprint(`  1 +process `, a, ` .*race`), fmt.Sprint(`\* 2 +process `, b, ` .*recursion`),
		`  1.1 +Thread [0-9.]+ "race" .*LINE:CRASH`, `  1.2 +Thread [0-9.]+ "adder-1"`, `  1.3 +Thread [0-9.]+ "adder-2"`, `\* 2.1 +Thread [0-9.]+ "recursion" .*descend`,
		`Thread 2.1 `, `#1 .*descend \(n=\d+\) at .*recursion.c:12`, `Thread 1.3 `, `adder \(arg=0x2\)`, `Thread 1.2 `, `adder \(arg=0x1\)`, `Thread 1.1 `, `main \(\) at .*LINE:CRASH`,
		`libc.so.6`, `Switching to thread 1.2`, `=> 0x[0-9a-f]+ .*syscall`, `\* 1.2 +Thread`, `2.1 +Thread .*descend`,
		`Switching to inferior 2`, `Thread 2.1 "recursion" hit Breakpoint 1, misconfigure`, `= -1`, `  1.2 +Thread`, `\* 2.1 +Thread .*misconfigure`,
		`Switching to inferior 1`, `= \d+`, fmt.Sprint(`\* `, a, ` .*race +killed by SIGSEGV`), fmt.Sprint(`  `, b, ` .*recursion +killed by SIGSEGV`),
		`Thread 1.1 "race" hit Temporary breakpoint \d.*, main`, `Switching to thread 2.1`, `<descend\+`, `= -1`,
		`Thread 2.1 "recursion" hit Temporary breakpoint \d.*, main`, `Switching to thread 1.1`, `#0 .*ld-linux`, `\* 1.1 +Thread .*ld-linux`, `  2.1 +Thread .*main \(\)`,
		fmt.Sprint(`Inferior 2 \(process `, b, `\) detached`), fmt.Sprint(`\* 1 +process `, a), `  2 +<null>`,
	})...)
}

// TestReplayInferiors starts gdb by vplayd replay, which attaches to all processes, and asks
// about the one that is selected.
func TestReplayInferiors(t *testing.T) {
	t.Parallel()
	g := compile(t, "recursion", "-O0")
	other := compile(t, "nullptr", "-O0")
	both := filepath.Join(t.TempDir(), "both.vplay")
	processes.Merge(t, both, g.record(t), other.record(t))
	args := []string{"replay", "--no-local-files", "--symbols", filepath.Join(g.dir, "symbols"), both, "--", "-nx", "-batch"}
	for _, c := range []string{
		"info inferiors", "info threads", "vplay threads", "inferior 2", "info threads", "vplay threads", "vplay seek begin", "vplay inferiors 77", "vplay processes",
	} {
		args = append(args, "-ex", c)
	}
	out, err := exec.CommandContext(limited(t, 60*time.Second), vplayd, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	expect(t, string(out), `\* 1 +process \d+ .*recursion`, `  2 +process \d+ .*nullptr`, `\* 1.1 +Thread .*descend`, `  2.1 +Thread`, `\* \d+ +recursion`,
		`Switching to inferior 2`, `\* \d+ +nullptr`, `ld-linux`, `77 is no process of the recording`, `\* \d+ .*nullptr +killed`)
}

// TestFirstInferior connects without attaching: gdb has the process that the recording is
// about. Its user is told that there are others, and has them after vplay inferiors.
func TestFirstInferior(t *testing.T) {
	t.Parallel()
	g := compile(t, "recursion", "-O0")
	first := g.record(t)
	symbols := filepath.Join(g.dir, "symbols")
	other := compile(t, "nullptr", "-O0")
	both := filepath.Join(t.TempDir(), "both.vplay")
	processes.Merge(t, both, first, other.record(t))
	out := gdb(t, serve(t, both, "--symbols", symbols), "info inferiors", "info threads", "monitor processes")
	expect(t, out, fmt.Sprint(`\* 1 +process `, recordedPID(t, first)), `\* 1 +Thread .*descend`, `\* \d+ .*recursion`, `  \d+ .*nullptr`)
	if strings.Contains(out, "inferior 2") {
		t.Errorf("gdb has another process:\n%s", out)
	}
	out = gdb(t, serve(t, both, "--symbols", symbols), loadCommands, "reverse-stepi", "stepi", "vplay when", "vplay inferiors", "info inferiors", "vplay when", "inferior 2", "info threads")
	expect(t, out, `is one of 2 in the recording: .*vplay inferiors`, `^\d+:\d+`, fmt.Sprint(`\* 1 +process `, recordedPID(t, first)), `  2 +process \d+`, `^\d+:\d+`, `Switching to inferior 2`, `\* 2.1`)
	if strings.Count(out, "is one of 2") != 1 {
		t.Errorf("that there are others is not told once:\n%s", out)
	}
}
