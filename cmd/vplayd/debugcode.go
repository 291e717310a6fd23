package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/replay/analysis/debugcode"
)

// The verb debug-code: C that runs at places of the recorded program. It is compiled and executed by package
// replay/analysis/debugcode; here the recording is opened and what the code prints is written.

// debugCodeFlags are the flags of debug-code.
type debugCodeFlags struct {
	symbols  symbolFlags
	asJSON   bool
	compiler string
	flags    []string
	steps    uint64
	time     time.Duration
	memory   uint64
	jobs     int
}

func newDebugCode() *cobra.Command {
	var f debugCodeFlags
	c := &cobra.Command{
		Use:   "debug-code [flags] FILE.c [RECORDING]",
		Short: "run debug code in C at lines, calls, system calls, accesses",
		Long:  debugCodeHelp,
		Example: `  vplayd debug-code --symbols build trace.c bc-1.vplay
  vplayd debug-code --cc clang -I include trace.c bc-1.vplay`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return runDebugCode(c, args, &f) },
	}
	f.symbols.add(c)
	addSandboxFlag(c)
	addProcessFlag(c, "the one that the recording is about")
	c.Flags().BoolVar(&f.asJSON, "json", false, "a JSON object for each line that the code prints, and one for the end")
	c.Flags().StringVar(&f.compiler, "cc", "", "the C `COMPILER`: a gcc, which musl-gcc runs, or a clang (default: musl-gcc)")
	c.Flags().StringArrayVar(&f.flags, "cflag", nil, "a `FLAG` for the preprocessor, as -DTRACE or -Iinclude; may be given several times")
	c.Flags().Uint64Var(&f.steps, "steps", 1_000_000_000, "instructions that one call of a region may execute, a `NUMBER`; 0: no limit")
	c.Flags().DurationVar(&f.time, "time", 0, "how long it may run, replay included (default: no limit)")
	c.Flags().Uint64Var(&f.memory, "memory", 1024, "memory that the code may allocate, in `MiB`")
	c.Flags().IntVarP(&f.jobs, "jobs", "j", 0, "intervals replayed at once (default: one per CPU)")
	return c
}

func runDebugCode(c *cobra.Command, args []string, f *debugCodeFlags) error {
	if _, err := os.Stat(args[0]); err != nil {
		return usageError{withHint(err, exitUsage, "the first argument is a file in C; vplayd help debug-code shows one")}
	}
	symbols, err := f.symbols.open()
	if err != nil {
		return err
	}
	s, _, done, err := openSession(c, args[1:])
	if err != nil {
		return err
	}
	defer done()
	rec := s.Rec
	pid, err := processOf(c, rec)
	if err != nil {
		return err
	}
	p, err := debugcode.Prepare(c.Context(), s, args[0], debugcode.Options{PID: pid, Symbols: symbols.Of(rec), Compiler: f.compiler, Flags: f.flags})
	if err != nil {
		return debugCodeError(err)
	}
	if err := enterSandbox(c, sandbox.Access{Read: f.symbols.access(symbols, rec).Read}); err != nil {
		return err
	}
	return executeDebugCode(c, p, rec, pid, f)
}

// debugCodeError is a mistake that was found before anything was replayed.
func debugCodeError(err error) error {
	var mistake *debugcode.Error
	var compiler *debugcode.CompileError
	switch {
	case errors.Is(err, debugcode.ErrNoCompiler):
		return withHint(err, exitFailed, "it comes with musl: apt-get install musl-tools")
	case errors.As(err, &mistake), errors.As(err, &compiler):
		return usageError{withHint(err, exitUsage, "vplayd help debug-code says what debug code can name")}
	}
	return err
}

// executeDebugCode replays the recording with the code.
func executeDebugCode(c *cobra.Command, p *debugcode.Program, rec *checkpoint.Recording, pid int32, f *debugCodeFlags) error {
	began, line := time.Now(), newProgress(false)
	defer line.done()
	total := len(intervalsOf(rec, pid))
	var done, insns atomic.Uint64
	out := &codeOutput{out: c.OutOrStdout(), err: c.ErrOrStderr(), rec: rec, asJSON: f.asJSON, before: line.done}
	res, err := p.Run(c.Context(), debugcode.RunOptions{
		Output: out.write, Steps: f.steps, Time: f.time, Memory: f.memory << 20, Workers: f.jobs,
		Progress: func(n uint64) {
			line.show("replaying [%s] %d of %d intervals, %.0f M insn/s", bar(float64(done.Load())/float64(max(total, 1))), done.Load(), total,
				float64(insns.Add(n))/1e6/time.Since(began).Seconds())
		},
		Done: func() { done.Add(1) },
	})
	out.flush()
	line.done()
	var limit *debugcode.LimitError
	var mistake *debugcode.Error
	switch {
	case c.Context().Err() != nil:
		return err
	case errors.As(err, &limit):
		return withHint(err, exitFailed, "an endless loop? --steps allows more, --steps 0 as many as there are")
	case errors.As(err, &mistake):
		return withHint(err, exitFailed, "the replay itself was not touched by it")
	case err != nil:
		return err
	case out.failed != nil:
		return out.failed
	case f.asJSON:
		_, err = fmt.Fprintf(out.out, "{\"recording\":%s,\"calls\":%d,\"exact_intervals\":%d,\"intervals\":%d}\n", jsonText(rec.File()), res.Calls, res.Intervals, total)
		return err
	}
	fmt.Fprintf(out.err, "vplayd: regions were called %d times; %d of %d intervals were replayed exactly\n", res.Calls, res.Intervals, total)
	return nil
}

// codeOutput writes what debug code prints: as it comes, or as an object for each line.
type codeOutput struct {
	out, err io.Writer
	rec      *checkpoint.Recording
	asJSON   bool
	before   func() // takes the progress line away
	lines    [3][]byte
	failed   error
}

// maxLine is how long a line in JSON may be, in bytes: a longer one is divided.
const maxLine = 1 << 20

// write is debugcode.RunOptions.Output.
func (o *codeOutput) write(fd int, b []byte) {
	if o.failed != nil || len(b) == 0 {
		return
	}
	o.before()
	if !o.asJSON {
		w := o.out
		if fd == 2 {
			w = o.err
		}
		_, o.failed = w.Write(b)
		return
	}
	for _, x := range b {
		if x == '\n' || len(o.lines[fd]) == maxLine {
			o.object(fd)
		}
		if x != '\n' {
			o.lines[fd] = append(o.lines[fd], x)
		}
	}
}

// object writes a line.
func (o *codeOutput) object(fd int) {
	if o.failed == nil {
		_, o.failed = fmt.Fprintf(o.out, "{\"recording\":%s,\"fd\":%d,\"text\":%s}\n", jsonText(o.rec.File()), fd, jsonText(string(o.lines[fd])))
	}
	o.lines[fd] = o.lines[fd][:0]
}

// flush writes lines that were not ended.
func (o *codeOutput) flush() {
	for fd := range o.lines {
		if len(o.lines[fd]) > 0 {
			o.object(fd)
		}
	}
}
