package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/analysis/script"
	"vplay/replay/debug"
)

// The verb run: a script over recordings. Scripts are read and executed in package
// replay/analysis/script; here the recordings are opened and what a script prints is written.

// runFlags are the flags of run.
type runFlags struct {
	symbols     symbolFlags
	asJSON      bool
	list, about bool
	steps       uint64
	time        time.Duration
	memory      int64
	jobs        int
}

// scriptMemory is what a script may take unless told otherwise, in MiB.
const scriptMemory = 1024

func newRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [flags] SCRIPT [RECORDING...] [-- ARGUMENT...]",
		Short: "run a script over recordings: at calls, lines, system calls, accesses",
		Long:  runHelp,
		Example: `  vplayd run strace sort-1.vplay
  vplayd run heap server-1.vplay
  vplayd run ltrace sort-1.vplay -- malloc free
  vplayd run --json mine.star *.vplay -- 4096
  vplayd run --list
  vplayd run --about heap`,
		RunE: func(c *cobra.Command, args []string) error { return runScript(c, args, &f) },
	}
	f.symbols.add(c)
	addSandboxFlag(c)
	addProcessFlag(c, "the one that the recording is about")
	c.Flags().BoolVar(&f.asJSON, "json", false, "a JSON object for each line and each row that the script prints")
	c.Flags().BoolVar(&f.list, "list", false, "list the scripts that come with vplayd")
	c.Flags().BoolVar(&f.about, "about", false, "print what the script says of itself, and run nothing")
	c.Flags().Uint64Var(&f.steps, "steps", 0, "steps that the script may take in each recording, a `NUMBER` (default: no limit)")
	c.Flags().DurationVar(&f.time, "time", 0, "how long the script may run over each recording, replay included (default: no limit)")
	c.Flags().Int64Var(&f.memory, "memory", scriptMemory, "memory that the script may take, in `MiB`")
	c.Flags().IntVarP(&f.jobs, "jobs", "j", 0, "intervals replayed at once (default: one per CPU)")
	return c
}

func runScript(c *cobra.Command, args []string, f *runFlags) error {
	if f.list {
		return listScripts(c.OutOrStdout())
	}
	var rest []string
	if n := c.ArgsLenAtDash(); n >= 0 {
		args, rest = args[:n], args[n:]
	}
	if len(args) == 0 {
		return usageError{withHint(errors.New("no script is named"), exitUsage, "vplayd run --list has those that come with vplayd")}
	}
	source, err := scriptSource(args[0])
	if err != nil {
		return err
	}
	if f.about {
		_, err := fmt.Fprintln(c.OutOrStdout(), script.About(source))
		return err
	}
	p, err := script.Read(args[0], source)
	if err != nil {
		return usageError{err}
	}
	o, err := openForScript(c, args[1:], f)
	if err != nil {
		return err
	}
	defer o.close()
	var first error
	for _, rec := range o.recs {
		var err error
		if isShipped(args[0]) { // each of those is about what happened; another one may look at the moment
			err = wantPast(rec, "be looked at by "+args[0])
		}
		if err == nil {
			err = o.run(c, p, rec, rest)
		}
		switch {
		case err == nil:
			continue
		case c.Context().Err() != nil || len(o.recs) == 1:
			return err
		}
		printError(fmt.Errorf("%s: %w", rec.File(), err)) // the others may be better
		if first == nil {
			first = exitError{codeOf(err)}
		}
	}
	return first
}

// listScripts prints the scripts that come with vplayd, each with the first line of what it says of itself.
func listScripts(out io.Writer) error {
	for _, name := range script.Library() {
		source, _ := script.Shipped(name)
		first, _, _ := strings.Cut(script.About(source), "\n")
		if _, err := fmt.Fprintf(out, "%-9s %s\n", name, strings.TrimPrefix(first, name+": ")); err != nil {
			return err
		}
	}
	return nil
}

// isShipped reports whether a name can only be that of a script that comes with vplayd.
func isShipped(name string) bool { return !strings.ContainsAny(name, `/\.`) }

// scriptSource reads a script: a file, or one that comes with vplayd where the name has no folder and no suffix.
func scriptSource(name string) ([]byte, error) {
	if isShipped(name) {
		if source, ok := script.Shipped(name); ok {
			return source, nil
		}
		return nil, usageError{withHint(fmt.Errorf("there is no script %q", name), exitUsage, "vplayd has %s; a file is named with its suffix: %s.star", strings.Join(script.Library(), ", "), name)}
	}
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, usageError{withHint(err, exitUsage, "vplayd run --list has the scripts that come with vplayd")}
	}
	return source, nil
}

// scriptRun is what a script runs over and prints to.
type scriptRun struct {
	recs    []*checkpoint.Recording
	engine  engine
	symbols *image.Symbols
	out     io.Writer
	f       *runFlags
}

// openForScript opens the recordings, and enters the sandbox.
func openForScript(c *cobra.Command, paths []string, f *runFlags) (o *scriptRun, err error) {
	o = &scriptRun{out: c.OutOrStdout(), f: f}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	if o.symbols, err = f.symbols.open(); err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		paths = []string{""}
	}
	var access sandbox.Access
	for _, path := range paths {
		args := []string{path}
		if path == "" {
			args = nil
		}
		rec, _, err := openRecording(c, args)
		if err != nil {
			return o, err
		}
		o.recs = append(o.recs, rec)
		access.Read = append(access.Read, f.symbols.access(o.symbols, rec).Read...)
	}
	if o.engine, err = chooseEngine(c); err != nil {
		return o, err
	}
	freeHeap()
	return o, enterSandbox(c, access)
}

func (o *scriptRun) close() {
	for _, rec := range o.recs {
		rec.Close()
	}
}

// run runs the script over a recording.
func (o *scriptRun) run(c *cobra.Command, p *script.Program, rec *checkpoint.Recording, args []string) error {
	pid, err := processOf(c, rec)
	if err != nil {
		return err
	}
	s, err := replay.NewSession(rec)
	if err != nil {
		return err
	}
	defer s.Close()
	o.engine.use(s)
	line := newProgress(false)
	defer line.done()
	prefix := ""
	if len(o.recs) > 1 {
		prefix = filepath.Base(rec.File()) + ": "
	}
	return execute(c.Context(), s, p, execution{
		Options: script.Options{
			Args: args, PID: pid, Symbols: o.symbols.Of(rec), Steps: o.f.steps, Time: o.f.time, Memory: o.f.memory << 20, Workers: o.f.jobs,
		},
		prefix: prefix, asJSON: o.f.asJSON,
		write: func(text string) error {
			line.done()
			_, err := io.WriteString(o.out, text)
			return err
		},
		progress: func(text string) { line.show("%s", text) },
	})
}

// execution is how a script is run, and where what it prints goes.
type execution struct {
	script.Options
	prefix   string // of each line
	asJSON   bool
	write    func(text string) error
	progress func(text string) // nil: nobody wants to know
}

// execute runs a script over the process of a recording. The first error of writing ends the output, and is returned
// where there is no other.
func execute(ctx context.Context, s *replay.Session, p *script.Program, x execution) error {
	began := time.Now()
	total := len(intervalsOf(s.Rec, x.PID))
	var done, insns atomic.Uint64
	var writing error
	write := func(text string) {
		if writing == nil {
			writing = x.write(text)
		}
	}
	x.Print = func(text string) {
		if x.asJSON {
			write(rowObject(s.Rec, []script.Field{{Name: "text", Value: text}}))
			return
		}
		write(x.prefix + text + "\n")
	}
	x.Row = func(fields []script.Field) {
		if x.asJSON {
			write(rowObject(s.Rec, fields))
			return
		}
		write(x.prefix + rowText(fields) + "\n")
	}
	if x.progress != nil {
		x.Progress = func(n uint64) {
			x.progress(fmt.Sprintf("replaying [%s] %d of %d intervals, %.0f M insn/s", bar(float64(done.Load())/float64(max(total, 1))), done.Load(), total,
				float64(insns.Add(n))/1e6/time.Since(began).Seconds()))
		}
	}
	x.Done = func() { done.Add(1) }
	err := p.Run(ctx, s, x.Options)
	if err == nil {
		err = writing
	}
	return err
}

// runForDebugger is debug.ScriptRunner: what monitor run does.
func runForDebugger(ctx context.Context, s *replay.Session, q debug.Script, out io.Writer, progress func(string)) error {
	source := q.Source
	if source == nil {
		var ok bool
		if source, ok = script.Shipped(q.Name); !ok {
			return fmt.Errorf("there is no script %s; vplayd has %s (in gdb, vplay run takes files, too)", q.Name, strings.Join(script.Library(), ", "))
		}
		if err := wantPast(s.Rec, "be looked at by "+q.Name); err != nil {
			return err
		}
	}
	p, err := script.Read(q.Name, source)
	if err != nil {
		return err
	}
	return execute(ctx, s, p, execution{
		Options: script.Options{Args: q.Args, PID: q.PID, Symbols: q.Symbols, Memory: scriptMemory << 20},
		asJSON:  q.JSON,
		write: func(text string) error {
			_, err := io.WriteString(out, text)
			return err
		},
		progress: progress,
	})
}

// rowObject is a row as a line of JSON, with its fields in their order behind the recording's.
func rowObject(rec *checkpoint.Recording, fields []script.Field) string {
	var b strings.Builder
	b.WriteString(`{"recording":` + jsonText(rec.File()))
	for _, f := range fields {
		b.WriteString("," + jsonText(f.Name) + ":" + jsonText(f.Value))
	}
	b.WriteString("}\n")
	return b.String()
}

// jsonText is a value in JSON; what JSON has no form for, as infinity, is null.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(b)
}

// rowText is a row for people: its text where it has one, else each field with its name.
func rowText(fields []script.Field) string {
	var out []string
	for _, f := range fields {
		if text, ok := f.Value.(string); ok && f.Name == "text" {
			return text
		}
		s := fmt.Sprint(f.Value)
		if _, isText := f.Value.(string); !isText {
			s = jsonText(f.Value)
		}
		out = append(out, f.Name+"="+s)
	}
	return strings.Join(out, "  ")
}
