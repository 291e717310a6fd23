// Command vplayd records the last moments of a Linux x86-64 program into a
// small self-contained file, and replays that file anywhere, backwards too,
// for gdb, lldb and VS Code.
//
// Every verb stands in a file of its own; this one joins them, turns errors
// into lines with hints, and sets the exit code.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/debug/text"
)

// Exit codes. Record ends with the program's own code, or dies of the same
// signal.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitDiverged = 3 // replay and recording differ
	exitDamaged  = 4 // the recording is damaged or incomplete
	exitMachine  = 5 // this machine cannot do it

	exitInterrupted = 130 // Ctrl-C, as a shell has it
	exitPipe        = 141 // SIGPIPE, likewise
	exitTerminated  = 143 // SIGTERM, likewise
)

func main() {
	if launch(os.Args) || becomeDelve(os.Args) {
		return
	}
	os.Exit(run(untilSignal(), commandLine(os.Args)))
}

// stopSignal is the cause of the end of a context: the signal that stops vplayd.
type stopSignal struct{ syscall.Signal }

func (s stopSignal) Error() string { return "stopped by signal: " + s.String() }

// untilSignal returns a context that ends when vplayd is asked to.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		sig, _ := (<-c).(syscall.Signal)
		cancel(stopSignal{sig})
	}()
	return ctx
}

// stopped says that vplayd was asked to stop, and returns its exit code: a shell's
// for the signal.
func stopped(ctx context.Context) int {
	var s stopSignal
	if errors.As(context.Cause(ctx), &s) && s.Signal == syscall.SIGTERM {
		fmt.Fprintln(os.Stderr, "vplayd: terminated")
		return exitTerminated
	}
	fmt.Fprintln(os.Stderr, "vplayd: interrupted")
	return exitInterrupted
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			code = bugReport(p)
		}
	}()
	out := &results{f: os.Stdout}
	root := newRoot(out)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if lost := out.lost(); lost != nil {
		err = lost
	}
	if err == nil {
		return exitOK
	}
	var done exitError
	if errors.As(err, &done) {
		return done.code
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return stopped(ctx)
	}
	printError(err)
	return codeOf(err)
}

// exitError ends the command with a code; everything has been said.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// hintError is an error with advice.
type hintError struct {
	error
	hint string
	code int
}

func (e hintError) Unwrap() error { return e.error }

// withHint returns err with advice and an exit code.
func withHint(err error, code int, format string, args ...any) error {
	return hintError{err, fmt.Sprintf(format, args...), code}
}

// codeOf maps an error to the exit code of its kind.
func codeOf(err error) int {
	var (
		usage   usageError
		hint    hintError
		diverge *replay.DivergenceError
		missing *replay.NotCapturedError
		unsupp  *replay.UnsupportedError
		format  *checkpoint.FormatError
		version *checkpoint.VersionError
		limit   *checkpoint.LimitError
	)
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &hint) && hint.code != 0:
		return hint.code
	case errors.As(err, &diverge), errors.As(err, &missing), errors.As(err, &unsupp):
		return exitDiverged
	case errors.As(err, &format), errors.As(err, &version), errors.As(err, &limit), errors.Is(err, checkpoint.ErrNotRecording):
		return exitDamaged
	}
	return exitFailed
}

// bugReport says what is needed to mend a broken invariant of ours.
func bugReport(p any) int {
	fmt.Fprintf(stderr, "vplayd: error: internal error: %v\n", p)
	fmt.Fprintf(stderr, "vplayd: build: %v\n", thisBuild())
	fmt.Fprintf(os.Stderr, "%s", debug.Stack())
	fmt.Fprintln(os.Stderr, "vplayd: hint: this is a bug in vplayd; please report it with the lines above")
	return exitFailed
}

// newRoot builds the command tree, whose commands print to out.
func newRoot(out io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "vplayd",
		Short: "record a crash, replay it anywhere, debug it backwards",
		Long: `vplayd records the last moments of a Linux x86-64 program into a small
self-contained file, and replays that file anywhere, on machines that have
none of the program's files, for gdb, lldb and VS Code, backwards too.

  vplayd record -- ./server --port 80     on the machine where it crashes
  vplayd serve server-1.vplay             anywhere
  gdb -ex 'target remote :1234'           backtrace, break, watch, reverse-continue

vplayd demo shows all of it in half a minute.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetErr(text.NewEscaper(os.Stderr))
	root.SetOut(out) // before cobra adds commands of its own, which keep it
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{withHint(err, exitUsage, "vplayd help %s", c.Name())}
	})
	root.PersistentFlags().String("log", os.Getenv("VPLAY_LOG"), "log `LEVEL`, overall and by component: info,record=debug (or $VPLAY_LOG)")
	root.PersistentFlags().String("limit", "", "memory that reading a recording may take: `SIZE` as 512M or 2G (default: a quarter of this machine's, and no more than fits the file's size for its tables)")
	addJITFlag(root)
	root.PersistentFlags().String("log-format", "", "`FORMAT` of the log: console or json (default: console on a terminal)")
	for _, add := range verbs {
		root.AddCommand(add())
	}
	root.SetHelpCommand(newHelp())
	root.SetHelpFunc(printHelp)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	checkArgs(root)
	return root
}

// checkArgs makes mistakes in the arguments of c, and of the commands below it,
// errors with a hint.
func checkArgs(c *cobra.Command) {
	help := "vplayd help " + c.Name()
	if !c.HasParent() {
		help = "vplayd help lists the commands"
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError{withHint(err, exitUsage, "%s", help)}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		checkArgs(sub)
	}
}

// verbs are the constructors of the subcommands, each in its own file.
var verbs = []func() *cobra.Command{
	newRecord, newAttach, newSnapshot, newImportCore, newCoreHandler, newServe, newReplay, newVerify, newInfo, newProcesses, newDump, newSchedule, newGoroutines, newRun, newDebugCode, newSlice, newDeviate, newExport, newWindows, newAffected, newReport, newSlim, newExportELF, newVSCode,
	newDemo, newDoctor, newGDBCommands, newRRCompat, newVersion,
}
