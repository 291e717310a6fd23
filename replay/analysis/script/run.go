package script

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// A script, and a run of it over the process of a recording.

// Program is a script that was read and can be run.
type Program struct {
	name string
	prog *starlark.Program
}

// options are what is allowed beyond the language's core: loops and conditions at the top level, while
// loops and recursion, since steps are limited anyway, and sets.
var options = &syntax.FileOptions{TopLevelControl: true, While: true, Recursion: true, Set: true}

// maxSource is how long a script may be, in bytes.
const maxSource = 4 << 20

// Read reads a script. The error, of a mistake in it, begins with its name, line and column.
func Read(name string, source []byte) (*Program, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("%s: a script has at most %d bytes", name, maxSource)
	}
	_, prog, err := starlark.SourceProgramOptions(options, name, source, isPredeclared)
	if err != nil {
		return nil, scriptError(err)
	}
	return &Program{name, prog}, nil
}

// Options say how a script is run.
type Options struct {
	Args []string // what the script has as args
	PID  int32    // the process
	// Symbols are where the files of the process's modules come from.
	Symbols *image.Symbols
	// Print is called with each line that the script prints, and Row with what it gives to row.
	Print func(line string)
	Row   func(fields []Field)
	// Steps is how many steps of Starlark the script may take, Time how long it may run, replay included, and
	// Memory how large this process's heap may become beyond what it had; 0: no limit.
	Steps  uint64
	Time   time.Duration
	Memory int64
	// Workers is how many intervals are replayed at once; 0 means one for each CPU. Progress is as of
	// observe.Options.
	Workers  int
	Progress func(n uint64)
	// Done, when set, is called when an interval is through.
	Done func()
}

// Field is a named value of a row, which encoding/json can write.
type Field struct {
	Name  string
	Value any
}

// LimitError says that a script was ended by one of its limits.
type LimitError struct{ What string }

func (e *LimitError) Error() string { return "the script was ended: " + e.What }

// run is one script over one process of one recording.
type run struct {
	ctx    context.Context
	o      *Options
	s      *replay.Session
	rec    *checkpoint.Recording
	thread *starlark.Thread
	hooks  hooks
	loaded bool // the script was; it can ask for nothing any more
	whole  bool // the process begins with the recording
	lastID uint32

	images []imageFiles // the programs that the process was
	view   names        // of the moment that the script is told of
	calls  observe.Calls[callRecord]
	inside map[checkpoint.TID]*syscall // calls that have not returned
	error  error                       // of the script, from a callback
}

// imageFiles are the files of one program that the process was.
type imageFiles struct {
	first, last uint32 // intervals
	files       *loader.ModuleFiles
}

// Run runs a script over a process. The error is the script's, with its file, line and calls; a
// *LimitError; ctx's; or of the replay, as observe.Run has it.
func (p *Program) Run(ctx context.Context, s *replay.Session, o Options) error {
	r := &run{o: &o, s: s, rec: s.Rec, inside: map[checkpoint.TID]*syscall{}}
	var ids []uint32
	for _, infos := range s.Rec.ImagesOf(o.PID) {
		files := loader.NewModuleFiles(o.Symbols)
		files.Keep = true // find looks at IFUNCs itself
		r.images = append(r.images, imageFiles{infos[0].ID, infos[len(infos)-1].ID, files})
		for _, i := range infos {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) == 0 {
		return fmt.Errorf("%w: %d in %s", checkpoint.ErrNoProcess, o.PID, s.Rec.File())
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.Time > 0 {
		var stop context.CancelFunc
		inner, stop = context.WithTimeoutCause(inner, o.Time, &LimitError{fmt.Sprintf("it ran for longer than %s", o.Time)})
		defer stop()
	}
	r.thread = &starlark.Thread{Name: p.name, Print: func(_ *starlark.Thread, line string) { r.print(line) }}
	if o.Steps > 0 {
		r.thread.SetMaxExecutionSteps(o.Steps)
		r.thread.OnMaxSteps = func(t *starlark.Thread) {
			cancel(&LimitError{fmt.Sprintf("it took more than %d steps", o.Steps)})
			t.Cancel("too many steps")
		}
	}
	defer context.AfterFunc(inner, func() { r.thread.Cancel("ended") })()
	defer watchHeap(inner, o.Memory, cancel)()
	err := r.execute(inner, p, ids)
	var limit *LimitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(context.Cause(inner), &limit):
		return limit
	case r.error != nil:
		return r.error
	}
	return err
}

// execute loads the script, replays, and ends.
func (r *run) execute(ctx context.Context, p *Program, ids []uint32) error {
	r.ctx = ctx
	if err := r.begins(ids[0]); err != nil {
		return err
	}
	// The globals are reached by the script's functions. They are not frozen, as Starlark does with those of a module
	// that others load, so that lists and dictionaries keep what callbacks put there.
	if _, err := p.prog.Init(r.thread, r.predeclared()); err != nil {
		return scriptError(err)
	}
	r.loaded = true
	r.lastID = ids[len(ids)-1]
	switch {
	case !r.hooks.needReplay() && len(r.hooks.end) == 0:
		return nil
	case !r.hooks.needReplay():
		ids = ids[len(ids)-1:] // for the moment at its end
	}
	err := observe.Run(ctx, r.s, observe.Options{
		Intervals: ids, Workers: r.o.Workers, Ordered: true, Begin: r.observer, Progress: r.o.Progress,
		End: func(uint32) error {
			if r.o.Done != nil {
				r.o.Done()
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	return r.hooks.unfound()
}

// begins finds out whether the process begins with the recording: the kernel starts a program with all
// registers zero (linux arch/x86/include/asm/elf.h, ELF_PLAT_INIT).
func (r *run) begins(first uint32) error {
	k, err := r.s.Start(first)
	if err != nil {
		return err
	}
	defer k.Release()
	m := r.s.Viewer(k)
	defer m.Close()
	regs := m.CPU.R
	regs[x86.RSP] = 0
	r.whole = regs == [16]uint64{}
	return nil
}

// end tells of system calls that have not returned, and calls what on_end has named.
func (r *run) end(v *observe.View) {
	r.unreturned()
	for _, f := range r.hooks.end {
		r.tell(f, v, &moment{kind: "end"})
	}
}

// call calls a function of the script's; its error ends the run.
func (r *run) call(f starlark.Callable, m starlark.Value) {
	if r.error != nil {
		return
	}
	if _, err := starlark.Call(r.thread, f, starlark.Tuple{m}, nil); err != nil {
		r.error = scriptError(err)
	}
}

func (r *run) print(line string) {
	if r.o.Print != nil {
		r.o.Print(line)
	}
}

// watchHeap ends the script when the heap has grown by more than limit bytes.
func watchHeap(ctx context.Context, limit int64, cancel context.CancelCauseFunc) (stop func()) {
	if limit <= 0 {
		return func() {}
	}
	began := heapSize()
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if heapSize()-began <= limit {
				continue
			}
			if runtime.GC(); heapSize()-began > limit { // what is left is not garbage
				cancel(&LimitError{fmt.Sprintf("it took more than %d MiB of memory", limit>>20)})
				return
			}
		}
	}()
	return func() { close(done) }
}

// heapSize returns how many bytes objects take, garbage included.
func heapSize() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
