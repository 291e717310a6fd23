package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"vplay/checkpoint/abi"
	recorder "vplay/checkpoint/record"
)

// The verb record where there is a recorder: it runs the program, says what became of
// the recording, and ends as the program ended. The flags are in record.go, and slimming
// afterwards is in slimafter.go.

// launch becomes the recorded program, or the guardian of one, when the arguments say so.
func launch(args []string) bool {
	if len(args) > 1 && args[1] == recorder.GuardVerb {
		if recorder.Guard() != nil { // nobody listens
			os.Exit(exitFailed)
		}
		os.Exit(exitOK)
	}
	if len(args) < 2 || args[1] != recorder.LaunchVerb {
		// At a limit on the size of files (ulimit -f) writing is to fail with an error: Go's runtime would die of the signal. A
		// program that is executed has the default action again.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
		return false
	}
	if err := recorder.Launch(args[2:]); err != nil {
		printError(err)
	} // else the recorder has been told, and says it
	os.Exit(exitRecorder)
	return true
}

func record(c *cobra.Command, args []string, f recordFlags) error {
	keep, name, err := namesOf(c, args[0], &f)
	if err != nil {
		return err
	}
	opt, line, err := f.options(c)
	if err != nil {
		return err
	}
	opt.Args, opt.Name, f.program = args, name, args[0]
	keepHeapLow()
	stop, err := startTriggers(&f, &opt, keep)
	if err != nil {
		return err
	}
	f.chaos.say(f.quiet)
	res, err := tryToCrash(c.Context(), f, opt)
	stop()
	line.done()
	if err := concluded(c, &res, err, f); err != nil {
		return err
	}
	if f.service && res.Recorded {
		keep.tidy(res.Path)
	}
	return leaveAs(&res)
}

// namesOf chooses f.out where it is not given, and what names recordings when they are written: nil when it is
// f.out. The keeper has those that are asked for while the program runs, and all of a service.
func namesOf(c *cobra.Command, program string, f *recordFlags) (keep *keeper, name func(pid int) string, err error) {
	if f.service {
		keep, err := prepareService(program, f, c.Flags().Changed("slim"))
		if err != nil {
			return nil, nil, err
		}
		return keep, keep.path, nil
	}
	if f.out == "" {
		f.out, name = outputName(program), freeNames(program)
	}
	keep, err = newKeeper(program, filepath.Dir(f.out), f)
	return keep, name, err
}

// freeNames returns what names recordings whose names were not given, with a number that is free when they are
// written: a snapshot may have taken one since. Those behind the first have the number of their process besides.
func freeNames(program string) func(pid int) string {
	first := ""
	return func(pid int) string {
		if first == "" {
			first = outputName(program)
			return first
		}
		return fmt.Sprintf("%s-%d.vplay", strings.TrimSuffix(first, ".vplay"), pid)
	}
}

// concluded says what came of recording, which ended with err, and has the recording slimmed. It returns an error where
// nothing was started.
func concluded(c *cobra.Command, res *recorder.Result, err error, f recordFlags) error {
	if err != nil {
		var start *recorder.StartError
		if errors.As(err, &start) {
			return startError(start)
		}
		res.Err = err
	}
	if res.Recorded && f.slims() == slimNow {
		slimAtOnce(c, res.Path, f)
	}
	if res.Detached && !f.quiet {
		fmt.Fprintln(stderr, "vplayd: the program runs on by itself")
	}
	sayRecorded(res, f)
	if res.Recorded && f.slims() == slimBackground {
		slimBehind(res.Path, f)
	}
	return nil
}

// quietHeap is up to where the collector has nothing to do, in bytes.
const quietHeap = 64 << 20

// keepHeapLow has the collector run once the heap has grown by a fifth: nearly all of a recorder's memory is the ring, bytes in
// which there is nothing to look for, and left alone it would grow to twice its bound. A fifth of little is reached again and again,
// which is an eighth of what it costs to record a short program: so up to quietHeap it runs only there.
func keepHeapLow() {
	limit := debug.SetMemoryLimit(-1)
	if limit <= quietHeap {
		debug.SetGCPercent(20)
		return
	}
	debug.SetMemoryLimit(quietHeap)
	afterCollection(func() (again bool) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		if metrics.Read(live); live[0].Value.Kind() == metrics.KindUint64 && live[0].Value.Uint64() < quietHeap/2 {
			return true
		}
		debug.SetGCPercent(20)
		debug.SetMemoryLimit(limit)
		return false
	})
	debug.SetGCPercent(-1)
}

// afterCollection calls f after the collector has run, as long as it wants to be called again.
func afterCollection(f func() (again bool)) {
	type object struct{ _ [64]byte } // one that shares its memory with none
	runtime.AddCleanup(new(object), func(f func() bool) {
		if f() {
			afterCollection(f)
		}
	}, f)
}

// options returns what the flags say to the recorder, which shows its progress on line, once the output can be written.
func (f *recordFlags) options(c *cobra.Command) (opt recorder.Options, line *progress, err error) {
	if err := checkOutput(f.out, f.force); err != nil {
		return opt, nil, err
	}
	line = newProgress(f.quiet || f.service)
	keep := recorder.KeepCrash
	switch f.keep {
	case "crash":
	case "always":
		keep = recorder.KeepAlways
	default:
		return opt, line, usageError{withHint(fmt.Errorf("--keep %s", f.keep), exitUsage, "--keep takes crash or always")}
	}
	if f.agent != "on" && f.agent != "off" {
		return opt, line, usageError{withHint(fmt.Errorf("--agent %s", f.agent), exitUsage, "--agent takes on or off")}
	}
	follow, onCrash := recorder.Follow(f.follow), recorder.OnCrash(f.onCrash)
	if err := follow.Check(); err != nil {
		return opt, line, usageError{withHint(fmt.Errorf("--follow: %w", err), exitUsage, "--follow takes all, none or exec=PATTERN")}
	}
	if onCrash != recorder.OnCrashFirst && onCrash != recorder.OnCrashEach {
		return opt, line, usageError{withHint(fmt.Errorf("--on-crash %s", f.onCrash), exitUsage, "--on-crash takes first or each")}
	}
	return recorder.Options{
		Path: f.out, Keep: keep, Follow: follow, OnCrash: onCrash, Interval: f.interval, KeepSeconds: f.keepSeconds, RingBytes: f.ringBytes,
		ForceEvery: time.Duration(f.forceEvery) * time.Millisecond,
		KeepEnv:    f.env, Ended: func(reason string, kept bool) {
			line.done()
			if !f.quiet {
				fmt.Fprintf(stderr, "vplayd: recording ends here: %s; %s\n", reason, whatIsKept(kept))
			}
		},
		Chaos: f.chaos.on, ChaosSeed: f.chaos.seed, Control: true, TimerSlack: timerSlack, Guardian: []string{"/proc/self/exe", recorder.GuardVerb},
		Agent: f.agent == "on", FullRegs: f.fullRegs, Vsyscall: f.vsyscall, NoTrapCPUID: f.noTrapCPUID, Logger: logger(c, "record"),
		Progress: func(done, total int) {
			line.show("writing [%s] %d of %d intervals", bar(float64(done)/float64(max(total, 1))), done, total)
		},
	}, line, nil
}

// sayRecorded says what became of the recording.
func sayRecorded(res *recorder.Result, f recordFlags) {
	if res.Err != nil && !res.Recorded {
		printError(notWritten(res.Err))
		return
	}
	if f.quiet {
		return
	}
	if res.LeakCheck && res.ExitCode != 0 {
		fmt.Fprintln(stderr, "vplayd: LeakSanitizer does not work under a tracer and fails a program at its exit; LSAN_OPTIONS=detect_leaks=0 leaves it out")
	}
	switch {
	case res.Recorded:
		st, err := os.Stat(res.Path)
		if err == nil {
			fmt.Fprintf(stderr, "vplayd: %s: %s; look at it: vplayd serve %s\n", res.Path, size(st.Size()), res.Path)
		}
		if c := res.Crashed; c != nil {
			fmt.Fprintf(stderr, "vplayd: process %d, %s, crashed: %v\n", c.PID, c.Program, abi.Signal(c.Signal))
		}
		for _, path := range res.More {
			fmt.Fprintf(stderr, "vplayd: another crash: %s\n", path)
		}
		for _, s := range res.Missing {
			fmt.Fprintf(stderr, "vplayd: %s\n", s)
		}
		if res.Reason != "" {
			fmt.Fprintf(stderr, "vplayd: recording ended early: %s\n", res.Reason)
		}
	case res.Reason != "":
		fmt.Fprintf(stderr, "vplayd: nothing recorded: %s\n", res.Reason)
	case f.keep == "crash" && res.Sanitizer && res.ExitCode != 0:
		fmt.Fprintln(stderr, "vplayd: nothing kept: AddressSanitizer ends a program with an exit code; "+
			"record --keep always keeps such runs, ASAN_OPTIONS=abort_on_error=1 makes them crashes")
	case f.keep == "crash":
		if why := failure(res.ExitCode, f.program); why != "" {
			fmt.Fprintf(stderr, "vplayd: nothing kept: %s; record --keep always keeps such runs\n", why)
		}
	}
}

// whatIsKept says what becomes of a recording that ends before its program.
func whatIsKept(kept bool) string {
	if kept {
		return "what came before is kept"
	}
	return "nothing is kept, for the program has not crashed; record --keep always keeps what comes before"
}

// failure says what an exit code tells of a failure that is no crash of the
// program's own, "" when it tells of none.
func failure(code int, program string) string {
	const (
		panicked   = 101 // Rust's std::process::ExitCode of a panic
		panickedGo = 2   // Go's runtime, of a panic and of what it throws
	)
	switch sig := code - 128; {
	case code == panickedGo && isGo(program):
		return "the program exited with code 2, as Go programs do after a panic (with GOTRACEBACK=crash that is a crash)"
	case code == panicked:
		return "the program exited with code 101, as Rust programs do after a panic"
	case sig == int(syscall.SIGHUP), sig == int(syscall.SIGINT), sig == int(syscall.SIGPIPE), sig == int(syscall.SIGTERM):
		return "" // an end that was asked for
	case sig > 0 && sig < 32:
		return fmt.Sprintf("the program exited with code %d, as when a child of it that is not recorded dies of %v", code, abi.Signal(sig))
	}
	return ""
}

// isGo reports whether a program, as a user names it, was made by Go.
func isGo(program string) bool {
	path, err := exec.LookPath(program)
	if err != nil {
		return false
	}
	_, err = buildinfo.ReadFile(path)
	return err == nil
}

// startError gives the reasons why the program could not be started their
// codes.
func startError(err *recorder.StartError) error {
	hint := err.Hint
	switch {
	case hint != "":
	case errors.Is(err, syscall.EAGAIN):
		hint = "the limit on processes and threads is reached: ulimit -u shows it"
	case errors.Is(err, syscall.EMFILE):
		hint = "the limit on open files is reached: ulimit -n shows it"
	default:
		hint = "vplayd doctor tells what this machine can do"
	}
	return withHint(err, err.Code, "%s", hint)
}

// notWritten is the error of a recording that failed; the program has run all
// the same.
func notWritten(err error) error {
	hint := "vplayd doctor tells what this machine can do"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint = "make room, or write it elsewhere: record -o FILE"
	case errors.Is(err, syscall.EFBIG):
		hint = "raise the limit on the size of files (ulimit -f), or, where the file system has one, write it elsewhere: record -o FILE"
	case errors.Is(err, recorder.ErrLost):
		hint = "give the machine, or the control group, more memory, or write while the program runs: record --keep always"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOENT):
		hint = "write it elsewhere: record -o FILE"
	}
	return withHint(fmt.Errorf("nothing recorded: %w", err), exitRecorder, "%s", hint)
}

// leaveAs ends vplayd as the program ended: with its exit code, or killed by
// the same signal, without a core file of its own.
func leaveAs(res *recorder.Result) error {
	if res.Signal != 0 {
		dieOf(syscall.Signal(res.Signal))
		return exitError{128 + res.Signal}
	}
	if res.ExitCode != 0 {
		return exitError{res.ExitCode}
	}
	return nil
}
