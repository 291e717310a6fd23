package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestThreads goes from a crash that a lost update has led to back to the store of another
// thread: gdb lists the threads with their names, shows each one's frames, and goes over the
// switches between them, both ways.
func TestThreads(t *testing.T) {
	t.Parallel()
	g := compile(t, "race", "-O0", "-pthread")
	addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
	out := gdb(t, addr, loadCommands, "info threads", "thread apply all bt", "watch head", "reverse-continue", "bt 1", "p n->by", "info threads",
		"delete", "thread 2", "bt 2", "thread 3", "vplay last-write head", "vplay threads", "vplay seek begin", "info threads", "echo @\\n",
		fmt.Sprint("tbreak ", g.line(t, "READ")), "continue", "p name", fmt.Sprint("tbreak ", g.line(t, "CRASH")), "continue", "info threads", "p count")
	expect(t, out, places(t, g, "race", []string{
		`\* 1 +Thread [0-9.]+ "race" .*main .*LINE:CRASH`, `  2 +Thread [0-9.]+ "adder-1"`, `  3 +Thread [0-9.]+ "adder-2"`,
		`Thread 3 .*adder-2`, `in adder \(arg=0x2\)`, `Thread 2 .*adder-1`, `in adder \(arg=0x1\)`, `Thread 1 .*race`, `main \(\) at .*LINE:CRASH`,
		`Switching to Thread`, `Thread [23] "adder-[12]" hit Hardware watchpoint 1: head`, `Old value`, `New value`, `adder \(arg=0x[12]\) at .*LINE:STORE`,
		`#0 .*adder .*LINE:STORE`, `= [12]`, `\* [23] +Thread [0-9.]+ "adder-[12]" .*adder .*LINE:STORE`,
		`Switching to thread 2`, `#\d .*adder \(arg=0x1\)|#0 `, `Switching to thread 3`,
		`\d+:\d+\.\d+ .*adder.*LINE:STORE`, `  \d+  race +in a system call`, `\* \d+  adder-[12] +runs`, `\* 1 +Thread [0-9.]+ "race".*ld-linux`, `^@`,
		`Thread \d "adder-1" hit Temporary breakpoint`, `= "adder-1`, `Thread 1 "race" hit Temporary breakpoint`, `\* 1 +Thread`, `  \d +Thread`, `  \d +Thread`, `= 40`,
	})...)
}

// TestSeekToOtherThread moves to the crash of another thread than the one that gdb steps for it:
// the thread that has crashed is the one that gdb names.
func TestSeekToOtherThread(t *testing.T) {
	t.Parallel()
	g := compile(t, "elsewhere", "-O0", "-pthread")
	addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
	out := gdb(t, addr, loadCommands, "info threads", "vplay seek 50%", "info threads", "echo @\\n", "vplay seek crash", "info threads", "echo @\\n", "thread 1", "vplay seek end", "bt 1")
	expect(t, out, places(t, g, "elsewhere", []string{
		`\* 2 +Thread`, `\* 1 +Thread`, `^@`, `Thread [23] "elsewhere" received signal SIGSEGV`, `LINE:CRASH`, `\* [23] +Thread`, `^@`,
		`Switching to thread 1`, `Thread [23] "elsewhere" received signal SIGSEGV`, `#0 .*worker .*LINE:CRASH`,
	})...)
	if strings.Contains(out, "Thread 1 \"elsewhere\" received") {
		t.Errorf("gdb says that the first thread has crashed:\n%s", out)
	}
}

// TestStepThread steps threads that do not run at this moment, forward and backward: the
// process runs until it is their turn, or the recording ends. Functions are called in them,
// too.
func TestStepThread(t *testing.T) {
	t.Parallel()
	g := compile(t, "race", "-O0", "-pthread")
	addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
	out := gdb(t, addr,
		"thread 2", "print (long)malloc(5) > 0", "info threads", "print $_siginfo.si_signo", "thread 1", "print $_siginfo.si_signo",
		"info threads", "reverse-stepi", "info threads", "thread 2", "thread apply all bt 1", "reverse-stepi", "x/i $pc", "info threads", "stepi",
		"thread 3", "reverse-stepi", "x/i $pc",
		"tbreak main", "reverse-continue", fmt.Sprint("tbreak ", g.line(t, "READ")), "continue", "next", "next", "next", "info threads",
		"set scheduler-locking on", "thread 1", "stepi", "info threads", "set scheduler-locking step", "stepi", "reverse-stepi", "info threads")
	expect(t, out, places(t, g, "race", []string{
		`Switching to thread 2`, `= 1`, `\* 2 +Thread`, `= 0`, `Switching to thread 1`, `= 11`,
		`\* 1 +Thread`, `\* 1 +Thread`, `Switching to thread 2`, `Thread 1 .*race`, `=> 0x[0-9a-f]+ .*syscall`, `\* 2 +Thread`,
		`Thread 1 "race" received signal SIGSEGV`, `LINE:CRASH`, `Switching to thread 3`, `=> 0x[0-9a-f]+ .*syscall`,
		`Thread 1 "race" hit Temporary breakpoint`, `Thread \d "adder-1" hit Temporary breakpoint`, `sched_yield`, `STORE`, `count\+\+`, `\* \d +Thread [0-9.]+ "adder-1" `,
		`Switching to thread 1`, `\* 1 +Thread [0-9.]+ "race"`, `\* 1 +Thread [0-9.]+ "race"`,
	})...)
}

// TestLockedThread continues one thread with scheduler-locking on. The others run as recorded,
// and the breakpoints that they come to do not stop it: gdb, which takes them for stopped,
// ends with an internal error at a stop of theirs.
func TestLockedThread(t *testing.T) {
	t.Parallel()
	g := compile(t, "race", "-O0", "-pthread")
	addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
	read := fmt.Sprint("break ", g.line(t, "READ"))
	out := gdb(t, addr, loadCommands, "vplay seek begin", read, "continue", "info threads", "set scheduler-locking on", "thread 1", "bt 2", "continue",
		"print $_thread", "print count", "continue", "thread 4", "bt 2", "reverse-continue", "print $_thread", "reverse-continue", "print $_thread", "print name", "thread 1", "reverse-continue")
	expect(t, out, places(t, g, "race", []string{
		`Thread \d "adder-1" hit Breakpoint 1`, `adder-1`, `Switching to thread 1`, `Thread 1 "race" received signal SIGSEGV`, `main \(\) at .*LINE:CRASH`,
		`= 1`, `= 40`, `No more reverse-execution history`, `Switching to thread 4`,
		`Thread 4 "adder-1" hit Breakpoint 1`, `= 4`, `Thread 4 "adder-1" hit Breakpoint 1`, `= 4`, `= "adder-1`, `Switching to thread 1`, `No more reverse-execution history`,
	})...)
}

// TestStepAlone steps a thread alone that waits for its turn, while others come to breakpoints:
// with scheduler-locking on these are passed over. When gdb steps it alone only to get it over
// a breakpoint, they are hit.
func TestStepAlone(t *testing.T) {
	t.Parallel()
	g := compile(t, "race", "-O0", "-pthread")
	addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
	read := fmt.Sprint("break ", g.line(t, "READ"), " if count >= 30") // when the first thread waits for both
	at := []string{loadCommands, "set scheduler-locking off", "delete", "vplay seek begin", read, "continue", "thread apply all bt 1", "thread 1"}
	out := gdb(t, addr, slices.Concat(at, []string{"set scheduler-locking on", "stepi", "print $_thread", "print count", "reverse-stepi", "print $_thread", "echo @\\n"},
		at, []string{"break *$pc", "continue", "print $_thread != 1", "print count < 40"})...)
	expect(t, out, places(t, g, "race", []string{
		`Thread \d "adder-\d" hit Breakpoint 1`, `Thread 1 .*race`, `Switching to thread 1`, `= 1`, `= 40`, `= 1`, `^@`,
		`Thread \d "adder-\d" hit Breakpoint 2`, `Switching to thread 1`, `Breakpoint 3 at`, `Thread \d "adder-\d" hit Breakpoint 2`, `= 1`, `= 1`,
	})...)
	if strings.Contains(out, "internal-error") {
		t.Errorf("gdb ends with an internal error:\n%s", out)
	}
}

// TestBreakAtThreadExit breaks at the SYSCALL with which a thread ends. gdb 13 steps the thread alone
// over it, and would hang for ever after if the thread were gone then; the others go on. With
// scheduler-locking on no thread runs any more.
func TestBreakAtThreadExit(t *testing.T) {
	t.Parallel()
	g := compile(t, "leave", "-O0", "-pthread")
	addr := serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols")
	end := fmt.Sprint("tbreak ", g.line(t, "END"))
	out := gdb(t, addr, loadCommands, "vplay seek begin", "catch syscall exit", "continue", "set $at = $pc - 2", "delete", "vplay seek begin", "break *$at", end,
		"continue", "continue", "continue", "print sum", "echo @\\n",
		"vplay seek begin", "continue", "set scheduler-locking on", "continue", "thread 1", "set scheduler-locking off", end, "continue", "continue", "print sum")
	expect(t, out, places(t, g, "leave", []string{
		`Catchpoint 1`, `"leave" hit Breakpoint 2`, `"leave" hit Breakpoint 2`, `hit Temporary breakpoint 3.*LINE:END`, `= 3`, `^@`,
		`"leave" hit Breakpoint 2`, `No unwaited-for children left`, `Switching to thread 1`, `"leave" hit Breakpoint 2`, `hit Temporary breakpoint .*LINE:END`, `= 3`,
	})...)
	if strings.Contains(out, "internal-error") {
		t.Errorf("gdb ends with an internal error:\n%s", out)
	}
}

// TestThreadLeaves resumes a thread alone until it ends: gdb is told that no thread runs any
// more. So it is when the thread is stepped alone over its last instruction.
func TestThreadLeaves(t *testing.T) {
	t.Parallel()
	g := compile(t, "leave", "-O0", "-pthread")
	addr := serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols")
	add := fmt.Sprint("tbreak ", g.line(t, "ADD"))
	out := gdb(t, addr, loadCommands, "vplay seek begin", add, "continue", "set scheduler-locking on", "continue", "info threads", "thread 1", "set scheduler-locking off",
		add, "continue", "print sum", "catch syscall exit", "continue", "delete", "set scheduler-locking on", "stepi", "info threads",
		"thread 1", "set scheduler-locking off", fmt.Sprint("tbreak ", g.line(t, "END")), "continue", "print sum")
	expect(t, out, places(t, g, "leave", []string{
		`Thread 2 "leave" hit Temporary breakpoint`, `No unwaited-for children left`, `  1 +Thread`, `Switching to thread 1`,
		`Thread 3 "leave" hit Temporary breakpoint`, `= 1`, `Catchpoint \d \(call to syscall exit\)`, `No unwaited-for children left`, `Switching to thread 1`,
		`hit Temporary breakpoint .*LINE:END`, `= 3`,
	})...)
	if strings.Contains(out, "internal-error") {
		t.Errorf("gdb ends with an internal error:\n%s", out)
	}
}
