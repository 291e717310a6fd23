package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vplay/checkpoint"
)

// The verb record on every system: its flags and help, and the name and check of the
// file to write. Recording itself is in record_linux_amd64.go.

// besideHelp tells what recording does beside the program, and what becomes of that without record.
const besideHelp = `What the program reads from a file of more than 256 KiB is not copied: record takes a
lease on the file (fcntl(2), F_SETLEASE). Another program that opens the file for
writing, or cuts it, waits until record has made a copy, which takes a quarter of a
second for 256 MiB; with O_NONBLOCK it gets EWOULDBLOCK. Files of more than 512 MiB are
copied as they are read.

If record itself is killed by another process, no recording is written. A second
process of vplayd, the guardian (vplay-guardian), then lets the program go on by
itself, as vplayd help attach says. When the program does it, by SIGKILL to its
process group say, the recording is written first.`

// recordFlags are the flags of record.
type recordFlags struct {
	out         string
	program     string // as it was named; "" of one that runs already
	keep        string
	follow      string
	onCrash     string
	quiet       bool
	interval    time.Duration
	keepSeconds float64
	ringBytes   int64
	forceEvery  int
	slim        slimWhen
	slimTime    time.Duration
	noSlim      bool
	fullRegs    bool
	vsyscall    bool
	agent       string
	env         string
	noTrapCPUID bool
	force       bool
	chaos       chaosFlags
	trigger     triggerFlags
	service     bool
}

func newRecord() *cobra.Command {
	var f recordFlags
	c := &cobra.Command{
		Use:   "record [flags] [--] PROGRAM [ARGUMENTS...]",
		Short: "run a program and keep its last moments when it crashes",
		Long: `Record runs a program and keeps its last seconds in memory. When the program
crashes they become a recording, PROGRAM-N.vplay in this folder; when it does
not, nothing is left (--keep always keeps every run).

The program's input, output, exit code and killing signal are its own: record
ends with the program's exit code, or dies of the same signal. Codes of record's
own are 125 (it could not record, or the recording to write exists), 126 (the
program cannot be executed) and 127 (there is no such program). A recording that
cannot be written, for want of space say, is an error message and no more: the
program has run, and its exit code is the answer.

The processes that the program starts are recorded with it, and record goes on
until the last has ended. The first that crashes ends the recording, which then
holds all that run at that moment and is about the one that crashed (see vplayd
processes). A child's crash is a signal that dumps core: one that is ended by
SIGTERM or SIGKILL, say, has not crashed. With --on-crash each every crash gives
a recording of its own, of the process that crashed, and the others go on being
recorded. --follow none records the program alone. --follow exec=PATTERN records
besides it only the processes that execute a program that matches PATTERN
(exec=cc1*), and what these fork. PATTERN is compared with the path given to
execve(2) and with that of the file itself, links followed (sh and dash), whole
and without its folder.

Threads are recorded, one of a process running at a time, so a program that computes
with several takes as long as with one. Processes that share memory run one at a
time, too; with --follow none, a program that goes on sharing its memory with a
child is let go, unrecorded, with a message. So are, in any case, programs that
would not get their privileges under a recorder (setuid), those for 32 bits, and
those that serve a file system (FUSE) to others that are recorded.

Programs linked with a glibc from before 2.14 ask for the time by calls through
the vsyscall page, of which a recorder hears nothing: their recordings replay up
to the first. With --vsyscall they are recorded, by a seccomp filter, in whose
presence such calls of the program's children fail, and, unless the recorder is
root, programs executed by any of them gain no privileges.

Code inside the program, the agent, makes its most frequent system calls and
logs them, without the two stops that a call costs otherwise. It does so in each
process that has made some tens of calls, with all its threads; calls that wait
while another thread is ready, and what else there is, go on as without it. It
needs Linux 6.4; a note in the recording says why there is none. The recording is
the same, with one exception: a program that reads its own machine code, where it
makes system calls, finds it changed, and may not replay. --agent off does without.

With --chaos threads get random priorities and slices, and wait for tens or
hundreds of milliseconds now and then, so that races show that a fair schedule
hides. All of it comes from one seed, which is printed and stands in the
recording's notes (vplayd info). --chaos-seed gives one again: the same random
numbers, but not the same schedule, for that depends on how long things take. Most
runs find nothing: --tries N runs the program again until it crashes, N times at
most, each time with the next seed; with --keep always, until it ends with an exit
code other than 0.

Once it is written, the recording is complete and can be used. It is then made
smaller (see vplayd help slim): by default in the background, by a process of low
priority that replaces the file when it is done. --slim now waits for it, with
--slim never it is left to vplayd slim, on any machine.

` + triggerHelp + `

` + serviceHelp + `

A recording holds memory of the program, and with it whatever secrets were
there: it is readable by its owner alone. Its manifest lists the environment, in
plain text: values of variables whose names look like secrets (TOKEN, KEY,
PASSWORD and the like) are masked there, unless --env says otherwise. The
environment on the program's stack is memory as any other, and is not masked.

` + besideHelp,
		Example: `  vplayd record -- ./server --port 80
  vplayd record -o crash.vplay --keep-seconds 20 -- ./server
  vplayd record --keep always -q -- gzip -k big.txt
  vplayd record --chaos --tries 200 -- ./server --self-test
  vplayd record --trigger 'test $(ps -o rss= $VPLAY_PID) -gt 2000000' -- ./server
  vplayd record --trigger-stderr 'deadlock|timed out' -- ./server
  vplayd record --trigger-http /run/server/vplay.sock -- ./server
  curl --unix-socket /run/server/vplay.sock -X POST http://localhost/snapshot`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{withHint(errors.New("no program named"), exitUsage, "vplayd record -- PROGRAM ARGUMENTS")}
			}
			if err := errors.Join(f.chaos.check(c), f.trigger.check(f.keep, f.chaos.tries)); err != nil {
				return err
			}
			return record(c, args, f)
		},
	}
	c.Flags().SetInterspersed(false)
	f.add(c.Flags())
	return c
}

// add defines the flags, which have their defaults then.
func (f *recordFlags) add(fs *pflag.FlagSet) {
	f.addCommon(fs)
	fs.StringVar(&f.keep, "keep", "crash", "`WHEN` a recording is kept: at a crash only, or always")
	fs.BoolVar(&f.vsyscall, "vsyscall", false, "record calls through the vsyscall page (see above)")
	f.chaos.add(fs)
	fs.BoolVar(&f.service, "service", false, "be the ExecStart of a systemd service (see above)")
}

// addCommon defines the flags that record and attach have.
func (f *recordFlags) addCommon(fs *pflag.FlagSet) {
	fs.StringVarP(&f.out, "output", "o", "", "`FILE` to write (default: PROGRAM-N.vplay)")
	fs.BoolVarP(&f.force, "force", "f", false, "replace the recording if it exists")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but errors")
	fs.StringVar(&f.follow, "follow", "all", "`WHICH` children are recorded with the program: all, none or exec=PATTERN")
	fs.StringVar(&f.onCrash, "on-crash", "first", "`WHICH` crashes of several processes give a recording: the first, or each one of its own")
	fs.DurationVar(&f.interval, "interval", 100*time.Millisecond, "CPU time between two images of memory")
	fs.Float64Var(&f.keepSeconds, "keep-seconds", 5, "how much is kept, in `SECONDS` of the program's CPU time")
	fs.Int64Var(&f.ringBytes, "ring-bytes", 1<<30, "how much is kept, in `BYTES` of memory")
	fs.StringVar(&f.agent, "agent", "on", "`WHETHER` code inside the program makes its frequent system calls: on or off (see vplayd help record)")
	fs.IntVar(&f.forceEvery, "force-every", 0, "end an interval at an arbitrary instruction every so many `MS` (a test of vplay itself)")
	fs.Var(&f.slim, "slim", "`WHEN` the recording is made smaller: background, now or never")
	fs.DurationVar(&f.slimTime, "slim-time", time.Minute, "how long slimming may take")
	fs.BoolVar(&f.noSlim, "no-slim", false, "the same as --slim never")
	f.trigger.add(fs)
	fs.StringVar(&f.env, "env", "", "`WHICH` environment variables the manifest holds: keep (all), drop (none), or NAME,... (default: all, without the values of those that look like secrets)")
	fs.BoolVar(&f.noTrapCPUID, "no-trap-cpuid", false, "do not trap CPUID, as on a CPU that cannot (a test of vplay itself)")
	fs.BoolVar(&f.fullRegs, "full-regs", false, "log all registers at each event (finding bugs in vplay itself)")
}

// exitRecorder is the exit code of record's own failures.
const exitRecorder = 125

// checkOutput refuses, before the program runs, an output that could not be
// written or that stands for something already.
func checkOutput(path string, force bool) error {
	switch st, err := os.Lstat(path); {
	case err == nil && st.IsDir():
		return withHint(fmt.Errorf("%s is a folder", path), exitRecorder, "name a file in it: record -o FILE")
	case err == nil && checkpoint.IsDevice(path):
		return withHint(fmt.Errorf("%s is a device, a pipe or a socket", path), exitRecorder, "a recording is a regular file: name one with record -o FILE")
	case err == nil && !force:
		return withHint(fmt.Errorf("%s exists", path), exitRecorder, "choose another name, or replace it with --force")
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".vplay-probe-*")
	if err != nil {
		return withHint(fmt.Errorf("%s cannot be written: %w", path, errors.Unwrap(err)), exitRecorder, "is the folder there, and yours to write in? Choose another with record -o FILE")
	}
	_ = f.Close() // nothing was written
	return os.Remove(f.Name())
}

// outputName chooses the next free PROGRAM-N.vplay.
func outputName(program string) string {
	base := filepath.Base(program)
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s-%d.vplay", base, n)
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			return name
		}
	}
}
