package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// The verb attach on every system: its flags and help. Recording itself is in
// attach_linux_amd64.go.

// attachFlags are the flags of attach: those of record that make sense, and its own.
type attachFlags struct {
	recordFlags
	time       time.Duration
	untilCrash bool
}

func newAttach() *cobra.Command {
	f := attachFlags{}
	c := &cobra.Command{
		Use:   "attach [flags] PID",
		Short: "record a program that runs already",
		Long: `Attach records the running program whose process is PID, with all its threads,
and from then on with the children that it starts, as record does. It goes on
until --for is over, until attach gets Ctrl-C, SIGTERM, SIGHUP or SIGQUIT, or
until the program crashes. Then the last seconds become a recording,
PROGRAM-N.vplay in this folder, and the program runs on by itself, as if nothing
had been. A program that ends without a crash leaves none, and attach says so:
--keep always keeps everything from the attach on, its end too. --until-crash keeps
a recording only when the program crashes.

It asks for what a debugger asks for: the same user, and, where
kernel.yama.ptrace_scope is 1, root (vplayd doctor tells). Not recorded are
programs that another debugger, strace or recorder traces, those under a seccomp
filter, those that use io_uring, those for 32 bits, and threads of the kernel.
Children that the program has made before are not recorded either; what they
store in memory that they share with it is.

While it is recorded the program sees these differences: its threads run one at a
time on one CPU; the functions of the vdso (clock_gettime and the like) make
system calls; restartable sequences (rseq) are switched off, so that
sched_getcpu(3) asks the kernel; io_uring is refused; and where it reads its own
machine code, calls that the agent makes (see vplayd help record) are jumps. A
program that it executes is started as record does, with variables such as
GLIBC_TUNABLES where CPUID cannot be trapped, and without a vdso; it keeps that
until it ends. A call that waited at the attach goes on waiting; what it had
waited counts, but for epoll_wait(2), and poll(2) of one of several threads, whose
time-out begins anew.

An instruction that replay does not know, such as XBEGIN, is refused by name when
replay comes to it.

` + triggerHelp + `

If attach itself is killed by SIGKILL no recording is written. A second process
of vplayd, the guardian (vplay-guardian), then gives the program back what is its
own, but for the agent's memory. A thread that comes to an RDTSC instruction
before that, within about a millisecond, goes on, but dies of SIGSEGV where the
program has set its own action for that signal. Where the guardian is
killed, too, the program runs on with what it sees then: on one CPU, with system
calls for the vdso's functions, without restartable sequences; it dies at its next
RDTSC instruction, and a call in which one of several threads waited loses what it
reads.

Exit codes: 0 when the program has been let go; else the program's own, 128 and
the number of the signal that killed it; 125 when it could not be recorded, and
then the program has not been changed.`,
		Example: `  vplayd attach 1234 --for 30s
  vplayd attach $(pidof redis-server) -o slow.vplay
  vplayd attach --until-crash --keep-seconds 20 1234
  vplayd attach --until-crash --trigger '! curl -fsm 2 -o /dev/null http://localhost:8080/health' 1234`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{withHint(errors.New("name one process"), exitUsage, "vplayd attach PID; pgrep -a NAME finds it")}
			}
			pid, err := strconv.Atoi(args[0])
			if err != nil || pid <= 0 {
				return usageError{withHint(fmt.Errorf("%q is not the number of a process", args[0]), exitUsage, "pgrep -a NAME finds it")}
			}
			if err := f.trigger.check(f.keep, 1); err != nil {
				return err
			}
			return attach(c, pid, f)
		},
	}
	f.addCommon(c.Flags())
	c.Flags().DurationVar(&f.time, "for", 0, "how long to record, as 30s or 5m (default: until Ctrl-C)")
	c.Flags().BoolVar(&f.untilCrash, "until-crash", false, "keep a recording only when the program crashes")
	c.Flags().StringVar(&f.keep, "keep", "crash", "`WHAT` of the recording is kept: crash, its last seconds, or always, all of it")
	return c
}
