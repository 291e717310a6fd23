// Package meter runs a command and says what it has cost: the processor time of
// the command and of all that it has led to, and the time on the wall.
//
// A command under vplayd record is a tree of processes: vplayd, its guardian, the
// program, and the stopped copies of the program that hold its past (shadows). Some of
// them are orphans, which wait(2) in their parents would miss. So each command runs
// below a process of its own, the runner, which is this same executable with a
// hidden verb (Verb). The runner is a subreaper (man 2 prctl, PR_SET_CHILD_SUBREAPER):
// every orphan becomes its child, it waits for each, and the kernel's sum of what all
// of them have taken (RUSAGE_CHILDREN) is the answer, in microseconds.
//
// What a tree has taken so far, for servers that go on running, is the sum of the
// processes' CPU clocks (man 3 clock_getcpuclockid) and of what they have waited for
// (cutime and cstime of man 5 proc, in hundredths of a second).
//
// Not counted is what the kernel does for nobody: interrupts, and work that it puts off
// to its own threads. The time in which a process is stopped, or waits, costs nothing.
//
// A tree never outlives the command that measures it: the runner kills all of it when
// its caller asks, or has gone. The runner needs Linux.
package meter
