package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
)

// The verb info: what a recording holds, gathered into one structure, and printed in
// lines or as JSON. What ended the program by being overwritten is printed in
// overwrite.go.

func newInfo() *cobra.Command {
	var asJSON, count bool
	var flags symbolFlags
	c := &cobra.Command{
		Use:   "info [flags] [RECORDING]",
		Short: "what happened, in ten lines",
		Long: `Info says what a recording holds: the program, how it ended and where, the
calls that led there, how much was recorded, and what it takes. It replays
nothing, unless --count asks for the number of instructions, or the program ended
because something was overwritten: a return address, the guard of a stack frame, the
header of a block of the heap, or a block was freed twice. Then it looks, for 5
seconds at most, for what did that. Where the program ended itself, by abort or with an
exit code other than 0, and the C library has kept no message, it replays the last
interval for what was written last to standard error.

Function names come from the recording itself as far as the program exports
them; --symbols names folders with symbol files, found by build-id, which also
give source lines. Of a recording of several processes it shows the one that the
recording is about, and names the others; --process PID shows another. Intervals,
events, CPU time and instructions are then those of the process. Files of this machine
that lie where the program had them, and debug files in /usr/lib/debug, are used when
their build-id is the recorded one, or they have none and the recorded content, and
named; --no-local-files leaves them alone.

Once the file is open, info can open no files but these and start no other program,
where the kernel has Landlock and seccomp (vplayd doctor tells).`,
		Example: "  vplayd info sort-1.vplay\n  vplayd info --symbols build/ sort-1.vplay\n  vplayd info --json sort-1.vplay\n  vplayd info --process 4711 make-1.vplay",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			symbols, err := flags.open()
			if err != nil {
				return err
			}
			rec, path, err := openRecording(c, args)
			if err != nil {
				return err
			}
			defer rec.Close()
			pid, _, err := chosenProcess(c, rec)
			if err != nil {
				return err
			}
			e, err := chooseEngine(c)
			if err != nil {
				return err
			}
			if err := enterSandbox(c, flags.access(symbols, rec)); err != nil {
				return err
			}
			in, err := gatherInfo(c.Context(), rec, pid, path, symbols, nil, e)
			if err != nil {
				return err
			}
			if count {
				if err := in.count(c, rec, e); err != nil {
					return err
				}
			}
			if asJSON {
				return encodeLine(c.OutOrStdout(), in)
			}
			return in.print(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	c.Flags().BoolVar(&count, "count", false, "count the instructions, which takes a replay")
	flags.add(c)
	addProcessFlag(c, "that which the recording is about")
	addSandboxFlag(c)
	return c
}

// info is what is known of a recording without replaying it.
type info struct {
	File         string             `json:"file"`
	Program      string             `json:"program"`
	Args         []string           `json:"args"`
	PID          int32              `json:"pid"`
	Parent       int32              `json:"parent,omitempty"`    // when it is in the recording
	Others       []process          `json:"processes,omitempty"` // the recording's other processes
	Start        string             `json:"start"`
	Host         string             `json:"host"`
	Ended        string             `json:"ended"`
	Signal       string             `json:"signal,omitempty"`
	Address      uint64             `json:"address,omitempty"`       // of the fault
	NotCanonical string             `json:"not_canonical,omitempty"` // an address that raised #GP or #SS, and its registers
	Misaligned   string             `json:"misaligned,omitempty"`    // an address that raised #GP because of its alignment, and its registers
	BusError     string             `json:"bus_error,omitempty"`     // which page of which file the kernel could not give
	Unmapped     string             `json:"unmapped,omitempty"`      // what was where nothing is mapped now
	Caught       *debug.CaughtFault `json:"caught,omitempty"`        // the fault because of which the program ended itself
	RIP          uint64             `json:"rip,omitempty"`
	Instruction  string             `json:"instruction,omitempty"`
	Where        string             `json:"where,omitempty"`
	Source       string             `json:"source,omitempty"`
	Backtrace    []loader.Location  `json:"backtrace,omitempty"`
	Calls        int                `json:"calls,omitempty"`          // how many there are, where Backtrace is cut off
	Overflow     string             `json:"stack_overflow,omitempty"` // the stack that is full
	Message      string             `json:"message,omitempty"`        // of the C library, when it aborted
	Stderr       []string           `json:"stderr,omitempty"`         // what the program wrote last to standard error, where it ended itself
	Overwrite    *debug.Overwrite   `json:"overwrite,omitempty"`      // what ended the program by being overwritten
	IsMoment     bool               `json:"moment,omitempty"`         // nothing runs in it: no past, no future
	Threads      int                `json:"threads,omitempty"`        // of a moment
	Intervals    int                `json:"intervals"`
	Fat          int                `json:"fat"`
	Slim         int                `json:"slim"`
	FirstLoads   int                `json:"first_loads,omitempty"` // of the slim ones
	Events       int                `json:"events"`
	Instructions uint64             `json:"instructions,omitempty"`
	CPUSeconds   float64            `json:"cpu_seconds"`
	Sizes        checkpoint.Sizes   `json:"sizes"`
	CPU          string             `json:"cpu"`
	Replay       string             `json:"replay"`                // by which engine
	LocalFiles   string             `json:"local_files,omitempty"` // of this machine, used because of their build-id
	NoLines      string             `json:"no_lines,omitempty"`    // of which modules there are no source lines, and why
	Environment  string             `json:"environment"`
	Notes        []string           `json:"notes,omitempty"`
}

// maxCalls bounds how many calls are counted.
const maxCalls = 100_000

// shownFrames is how many calls of the backtrace info lists.
const shownFrames = 8

// ownFrames is how many calls are listed at least from the first on that is not in a library of the system.
const ownFrames = 5

// shownCalls returns how many calls of a backtrace are listed: where a signal's handler is among them, as many behind it,
// for runtimes abort in handlers of theirs (Go, Java), and what led to the signal is what matters. Where libraries call many
// functions before they abort, as for an exception of C++, what called them is listed, too.
func shownCalls(backtrace []loader.Location) int {
	at := slices.IndexFunc(backtrace, func(l loader.Location) bool { return l.Function == loader.SignalFrame })
	own := slices.IndexFunc(backtrace, func(l loader.Location) bool { return l.Module != "" && !debug.IsSystemLibrary(l.Module) })
	return max(max(at, 0)+shownFrames, own+ownFrames-1)
}

// gatherInfo gathers what is known of a recording and of one process of it: pid, or for 0
// that which the recording is about. files are those of the last program's modules where
// they are open already, else nil.
func gatherInfo(ctx context.Context, rec *checkpoint.Recording, pid int32, path string, symbols *image.Symbols, files *loader.ModuleFiles, e engine) (*info, error) {
	m := rec.Manifest()
	if list := rec.Processes(); pid == 0 && len(list) > 0 {
		pid = list[0].PID
	}
	p, end := processRow(rec, pid), rec.Ending(pid)
	in := &info{
		File: path, Program: p.Program, Args: p.Args, PID: p.PID, Parent: p.Parent, Host: m.Hostname + ", Linux " + m.Kernel,
		Start: m.Start.Local().Format("2006-01-02 15:04:05"), CPU: m.CPU.Name(), IsMoment: rec.IsMoment(),
		Sizes: rec.Sizes(), Notes: m.Notes, Ended: debug.EndText(end),
	}
	if rec.IsOfCore() && end.Kind == checkpoint.EndStop {
		in.Ended = "not ended: the core file was made while the program ran"
	}
	in.others(rec)
	in.Environment = heldEnvironment(p.Env)
	if m.CPU.Vendor == "" { // a core file does not tell
		in.CPU = "not known"
	}
	if m.Hostname == "" {
		in.Host = "a machine that is not known"
	}
	if m.CPU.Level != "" {
		in.CPU += ", presented as " + m.CPU.Level
	}
	for _, i := range slices.Concat(rec.ImagesOf(pid)...) {
		in.Intervals++
		in.Events += i.Events
		if in.IsMoment {
			in.Threads = i.Threads
		}
		in.CPUSeconds += i.CPUTime.Seconds()
		if i.FirstLoads {
			in.FirstLoads++
		}
		if i.Slim {
			in.Slim++
		} else {
			in.Fat++
		}
	}
	s, err := replay.NewSession(rec)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	e.use(s)
	in.Replay = e.kind()
	symbols.Of(rec)
	f, err := s.FinalOf(pid)
	var limit *checkpoint.LimitError
	switch {
	case err == nil:
		defer f.Mem.Close()
		if files == nil {
			files = loader.NewModuleFiles(symbols)
		}
		r := loader.NewResolver(f.Maps, debug.Memory{Space: f.Mem}, files)
		in.atEnd(f, r, symbols)
		if end.Kind == checkpoint.EndCrash && abi.Signal(end.Signo) == abi.SIGABRT {
			in.Message = debug.AbortMessage(r, debug.Memory{Space: f.Mem})
		}
		e := debug.Ending{Session: s, Final: f, Names: r, Files: files, Message: in.Message, Memory: defaultMemory << 20}
		in.Overwrite = e.FindOverwrite(ctx)
		if in.Message == "" && endsItself(end) {
			in.Stderr = e.LastWords(ctx)
		}
		in.Caught = debug.FindCaughtFault(s, f, r)
		in.Unmapped = debug.Unmapped(s, f)
	case errors.As(err, &limit):
		return nil, err
	}
	return in, nil
}

// endsItself reports whether a program ended because it found something wrong itself, and so is likely to have said what.
func endsItself(end checkpoint.Ending) bool {
	switch abi.Signal(end.Signo) {
	case abi.SIGABRT, abi.SIGILL, abi.SIGTRAP: // the latter two are of instructions that compilers put where a program must not come to
		return end.Kind == checkpoint.EndCrash
	}
	return end.Kind == checkpoint.EndExit && end.ExitCode != 0
}

// others fills in the other processes of the recording.
func (in *info) others(rec *checkpoint.Recording) {
	for i := range rec.Processes() {
		if p := &rec.Processes()[i]; p.PID != in.PID {
			in.Others = append(in.Others, describeProcess(rec, p))
		}
	}
}

// heldEnvironment says in words what a manifest holds of the environment.
func heldEnvironment(env []string) string {
	if len(env) == 0 {
		return "none in the manifest; the program's memory has it all the same"
	}
	var masked []string
	for _, e := range env {
		if name, v, _ := strings.Cut(e, "="); v == checkpoint.MaskedValue {
			masked = append(masked, name)
		}
	}
	text := text.Plural(len(env), "variable") + " in plain text in the manifest"
	if len(masked) > 0 {
		text += "; masked there, but not in the program's memory: " + strings.Join(masked, ", ")
	}
	return text
}

// atEnd fills in what the final image tells.
func (in *info) atEnd(f *replay.FinalImage, r *loader.Resolver, symbols *image.Symbols) {
	st := &f.Current().State
	in.RIP = st.RIP
	if si := abi.Siginfo(f.Siginfo); len(si) > 0 {
		in.Signal = si.String()
		if si.IsFault() {
			in.Address = si.Addr()
		}
	}
	mem := debug.Memory{Space: f.Mem}
	var b [15]byte
	if n := mem.ReadMemory(st.RIP, b[:]); n > 0 {
		in.Instruction = debug.Disassemble(mem, st.RIP)
		if in.Signal != "" && in.Address == 0 {
			in.NotCanonical = debug.NotCanonical(st, mem, b[:n])
			in.Misaligned = debug.Misaligned(st, b[:n])
		}
	}
	in.LocalFiles = debug.LocalFiles(r.Modules(), mem, symbols)
	at := r.At(st.RIP)
	in.Where, in.Source = at.String(), at.Source()
	regs := loader.Regs(st)
	in.Backtrace = debug.Backtrace(r, &regs)
	in.Overflow = debug.StackOverflow(f)
	in.BusError = debug.BusError(f)
	var mods []*image.Module
	for i := range in.Backtrace {
		mods = append(mods, r.Module(in.Backtrace[i].Addr))
	}
	in.NoLines = debug.NoLines(r, mods, mem, symbols)
	if len(in.Backtrace) >= debug.BacktraceLimit { // else all calls are there
		if n := len(r.Backtrace(&regs, maxCalls)); n > debug.BacktraceLimit {
			in.Calls = n
		}
	}
	if err := r.Limited(); err != nil {
		in.Notes = append(slices.Clip(in.Notes), "names are missing: "+err.Error()+" (--limit allows more)")
	}
}

// count replays the process to count its instructions.
func (in *info) count(c *cobra.Command, rec *checkpoint.Recording, e engine) error {
	s, err := replay.NewSession(rec)
	if err != nil {
		return err
	}
	defer s.Close()
	e.use(s)
	results, err := replay.Verify(c.Context(), s, replay.VerifyOptions{Intervals: intervalsOf(rec, in.PID)})
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
		in.Instructions += r.Instructions
	}
	return nil
}

// printOthers names the recording's other processes.
func (in *info) printOthers(line lineWriter) {
	if len(in.Others) == 0 {
		return
	}
	var names []string
	for i := range in.Others[:min(len(in.Others), shownProcesses)] {
		p := &in.Others[i]
		names = append(names, fmt.Sprintf("%s (%s)", processName(p.PID, p.Program), p.Ended))
	}
	line("processes", "%s", andMore(names, len(in.Others)))
	line("", "vplayd processes lists all %d, --process PID shows another", len(in.Others)+1)
}

// printTime says how much of the program's time the recording holds.
func (in *info) printTime(line lineWriter) {
	if in.IsMoment {
		line("recording", "one moment of %s, with no past and no future", text.Plural(in.Threads, "thread"))
		return
	}
	line("recording", "%s (%d fat, %d slim), %s, %.3f s of CPU time", text.Plural(in.Intervals, "interval"), in.Fat, in.Slim,
		text.Plural(in.Events, "event"), in.CPUSeconds)
}

// lineWriter takes a line of info: its name, "" where it goes on with the one before, and its text.
type lineWriter func(name, format string, args ...any)

func (in *info) print(w io.Writer) error {
	line := func(name, format string, args ...any) {
		if s := fmt.Sprintf(format, args...); s != "" {
			fmt.Fprintf(w, "%-12s %s\n", name, text.Printable(s))
		}
	}
	in.printEnd(line)
	in.printBacktrace(line)
	in.printRecording(line)
	line("environment", "%s", in.Environment)
	for _, n := range in.Notes {
		line("note", "%s", n)
	}
	return nil
}

// printEnd says what ran, and how and where it ended.
func (in *info) printEnd(line lineWriter) {
	line("program", "%s (process %d)", in.Program, in.PID)
	line("command", "%s", strings.Join(in.Args, " "))
	line("recorded", "%s on %s", in.Start, in.Host)
	line("ended", "%s", in.Ended)
	line("signal", "%s", in.Signal)
	line("", "%s", in.NotCanonical)
	line("", "%s", in.Misaligned)
	line("", "%s", in.BusError)
	line("", "%s", in.Unmapped)
	if c := in.Caught; c != nil {
		line("because of", "%s, which the program caught (event %d)", c.Signal, c.Event)
		line("", "%s", c.NotCanonical)
		line("", "%s", c.Misaligned)
	}
	switch {
	case in.Instruction != "":
		line("at", "%#x %s: %s", in.RIP, in.Where, in.Instruction)
	case in.Where != "":
		line("at", "%#x: %s", in.RIP, in.Where)
	}
	line("source", "%s", in.Source)
	line("stack", "%s", in.Overflow)
	line("message", "%s", in.Message)
	for i, l := range in.Stderr {
		name := ""
		if i == 0 {
			name = "stderr"
		}
		line(name, "%s", l)
	}
	if in.Overwrite != nil {
		printOverwrite(in.Overwrite, line)
	}
}

// printBacktrace lists the calls that led to the end.
func (in *info) printBacktrace(line lineWriter) {
	shown := shownCalls(in.Backtrace)
	for i, l := range in.Backtrace {
		if i == 0 {
			continue
		}
		if i > shown {
			line("", "and %s", in.moreCalls(i))
			break
		}
		name := ""
		if i == 1 {
			name = "called from"
		}
		line(name, "%s %s", l, l.Source())
	}
	if n := len(in.Backtrace); n > 0 && leavesGoroutine(in.Backtrace[n-1].Function) {
		line("", "the calls of the goroutine behind it: vplayd goroutines -t %s", in.File)
	}
}

// leavesGoroutine reports whether Go's runtime goes over to a stack of its own in a function: the
// list of calls ends there, before those that matter.
func leavesGoroutine(function string) bool {
	return function == "runtime.systemstack" || function == "runtime.mcall"
}

// moreCalls says how many calls are not listed, when i are.
func (in *info) moreCalls(i int) string {
	n := len(in.Backtrace) - i + max(in.Calls-debug.BacktraceLimit, 0)
	if in.Calls == maxCalls {
		return fmt.Sprintf("more than %s more", text.Count(uint64(n)))
	}
	return text.Count(uint64(n)) + " more"
}

// printRecording says how much was recorded, and on what.
func (in *info) printRecording(line lineWriter) {
	in.printOthers(line)
	in.printTime(line)
	if len(in.Others) > 0 {
		line("", "of this process; the size is of the whole file")
	}
	switch {
	case in.FirstLoads > 0:
		line("", "%s slim to first loads: of memory it has what replay needs, and what debuggers read", text.Plural(in.FirstLoads, "interval"))
	case in.Slim > 0:
		line("", "slimming dropped what the program neither used nor wrote in this time")
	}
	if in.Instructions > 0 {
		line("", "%s instructions", text.Count(in.Instructions))
	}
	line("size", "%s: pages %s, logs %s, the rest %s", size(in.Sizes.File), size(in.Sizes.Pages), size(in.Sizes.Logs),
		size(in.Sizes.File-in.Sizes.Pages-in.Sizes.Logs))
	line("cpu", "%s", in.CPU)
	line("replay", "by %s", in.Replay)
	line("lines", "%s", in.NoLines)
	if in.LocalFiles != "" {
		line("files", "%s: used, for they have the recorded build-id, or none and what was recorded", in.LocalFiles)
	}
}
