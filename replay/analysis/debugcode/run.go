package debugcode

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/replay/mem"
	"vplay/replay/observe"
)

// A run of debug code over a recording: from its regions to callbacks of package observe, and from those to calls.

// RunOptions bound a run, and say where output goes.
type RunOptions struct {
	// Output is called with what debug code, and the program's functions that it calls, write to descriptor 1 or 2. It
	// must not keep b.
	Output func(fd int, b []byte)
	// Steps is how many instructions one call of a region may execute, Time how long the run may take, replay included;
	// 0: no limit. Memory is what debug code's heap may have, in bytes.
	Steps  uint64
	Time   time.Duration
	Memory uint64
	// Workers is how many intervals are replayed at once; 0 means one for each CPU. Progress is as of
	// observe.Options.
	Workers  int
	Progress func(n uint64)
	// Done, when set, is called when an interval is through.
	Done func()
}

// Result says what a run did.
type Result struct {
	Calls     uint64 // of regions
	Intervals int    // that were replayed, each exactly
}

// run is one run.
type run struct {
	p      *Program
	c      *caller
	inside map[checkpoint.TID]*entered
	error  error
	loaded sync.Mutex // guards spots
	spots  map[moduleKey][]spot
}

// entered is a system call that has not returned.
type entered struct {
	nr   int64
	args [6]uint64
}

// Run replays the intervals and calls the regions. The error is *Error, *LimitError or *Exit of the debug code, ctx's, or of the
// replay, as observe.Run has it.
func (p *Program) Run(ctx context.Context, o RunOptions) (res Result, err error) {
	if o.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Time, &Error{"", fmt.Sprintf("the debug code was ended: it ran for longer than %s", o.Time)})
		defer cancel()
	}
	h, err := newHost(p, o.Memory)
	if err != nil {
		return res, err
	}
	defer h.close()
	r := &run{p: p, c: &caller{p: p, ctx: ctx, h: h, steps: o.Steps, out: o.Output}, inside: map[checkpoint.TID]*entered{}, spots: map[moduleKey][]spot{}}
	defer func() {
		if r.c.d != nil {
			r.c.d.Close()
		}
	}()
	err = observe.Run(ctx, p.s, observe.Options{
		Intervals: p.ids, Workers: o.Workers, Begin: r.observer, Ordered: true, Progress: o.Progress,
		End: func(uint32) error {
			res.Intervals++
			if o.Done != nil {
				o.Done()
			}
			return nil
		},
	})
	res.Calls = r.c.calls
	var exit *Exit
	if errors.As(err, &exit) && exit.Code == 0 {
		return res, nil
	}
	var late *Error
	if err != nil && errors.As(context.Cause(ctx), &late) {
		return res, late
	}
	return res, err
}

// targets are the addresses of an interval that regions are called at.
type targets struct {
	names   naming
	at      map[uint64][]*region
	ranges  []watched
	modules map[moduleAt]bool // where places were looked for
	finds   int
}

// watched is memory whose accesses are wanted.
type watched struct {
	r *region
	mem.Watch
}

// moduleAt is a module at its place.
type moduleAt struct {
	moduleKey
	base uint64
}

// maxFinds is how often the modules of an interval are looked through again because code was mapped.
const maxFinds = 4096

// has reports whether there is a region of a kind.
func (r *run) has(kinds ...regionKind) bool {
	for _, x := range r.p.regions {
		for _, k := range kinds {
			if x.kind == k {
				return true
			}
		}
	}
	return false
}

// observer is observe.Options.Begin.
func (r *run) observer(v *observe.View) (*observe.Observer, error) {
	t := &targets{at: map[uint64][]*region{}, modules: map[moduleAt]bool{}}
	ob := &observe.Observer{}
	if r.has(atLine, onCall) {
		ob.Addresses = t.find(r, v, true)
		ob.Mapped = func(v *observe.View) ([]uint64, []uint64) { return t.find(r, v, false), nil }
		ob.Exec = func(v *observe.View) {
			for _, x := range t.at[v.CPU().RIP] {
				r.tell(v, x, &told{})
			}
		}
	}
	if r.has(onSyscall) {
		ob.Applied = r.applied
		ob.Start = r.cameBack
	}
	if r.has(onAccess) {
		if err := t.watch(r, v); err != nil {
			return nil, err
		}
		ob.Ranges = t.watches()
		ob.Access = func(v *observe.View, a *observe.Access) { r.accessed(v, a, t) }
	}
	if v.Machine().Interval() == r.p.ids[len(r.p.ids)-1] {
		ob.Done = r.end
	}
	return ob, nil
}

// find returns the addresses of regions in modules that were not looked through before.
func (t *targets) find(r *run, v *observe.View, isStart bool) (out []uint64) {
	if t.finds++; t.finds > maxFinds {
		return nil
	}
	res := t.names.at(r.p, v.Machine())
	for _, mod := range res.Modules() {
		key := moduleAt{keyOf(mod), mod.Base}
		if t.modules[key] || !isStart && !mod.IsMapped(res.Maps()) {
			continue
		}
		chosen, isBound := mod.Implementations(&t.names.memory)
		d := res.File(mod)
		if d == nil || !isBound && !isStart {
			continue // the dynamic linker has yet to choose what IFUNCs stand for
		}
		t.modules[key] = isBound
		for _, s := range r.spotsOf(key.moduleKey, d) {
			a := s.addr + mod.Bias
			if c, ok := chosen[s.entry+mod.Bias]; ok && s.r.kind == onCall {
				a = d.Body(c-mod.Bias) + mod.Bias
			}
			if slices.Contains(t.at[a], s.r) {
				continue
			}
			if t.at[a] == nil {
				out = append(out, a)
			}
			t.at[a] = append(t.at[a], s.r)
		}
	}
	return out
}

// spotsOf returns the places of all regions in a module.
func (r *run) spotsOf(key moduleKey, d *dwarf.Module) []spot {
	r.loaded.Lock()
	defer r.loaded.Unlock()
	list, ok := r.spots[key]
	if !ok {
		for _, x := range r.p.regions {
			list = append(list, x.spotsIn(d)...)
		}
		r.spots[key] = list
	}
	return list
}

// watch evaluates what VPLAY_ON_ACCESS asks for, at the start of an interval.
func (t *targets) watch(r *run, v *observe.View) error {
	res := t.names.at(r.p, v.Machine())
	for _, x := range r.p.regions {
		if x.kind != onAccess {
			continue
		}
		w, err := global(res, &t.names.memory, x.arg)
		if err != nil {
			return &Error{x.at, fmt.Sprintf("%s(%s): %v", x.word, x.arg, err)}
		}
		t.ranges = append(t.ranges, watched{x, w})
	}
	return nil
}

var (
	errNothingKnown = errors.New("nothing is known of the program's variables (--symbols names folders with files that know more)")
	errNoPlace      = errors.New("it is a value that is not in memory")
)

// global evaluates an expression of what is global, in the first module that knows it, and returns where that is.
func global(res *loader.Resolver, m dwarf.Memory, expr string) (w mem.Watch, err error) {
	err = errNothingKnown
	for _, mod := range res.Modules() {
		d := res.File(mod)
		if d == nil || !d.HasLines() {
			continue
		}
		e := &dwarf.Env{Frame: dwarf.Frame{PC: mod.Bias, Module: d, Bias: mod.Bias}, Mem: m}
		v, evalErr := e.Eval(expr, -1)
		if evalErr != nil {
			err = evalErr
			continue
		}
		addr, ok := v.Address()
		if size := v.Size(); ok && size > 0 {
			return mem.Watch{Addr: addr, Len: uint64(size), Kind: mem.WatchRead | mem.WatchWrite}, nil
		}
		err = errNoPlace
	}
	return w, err
}

func (t *targets) watches() (out []mem.Watch) {
	for _, w := range t.ranges {
		out = append(out, w.Watch)
	}
	return out
}

// tell calls a region.
func (r *run) tell(v *observe.View, x *region, t *told) {
	if r.error != nil {
		return
	}
	if r.error = r.c.call(v, x, t); r.error != nil {
		v.Stop(r.error)
	}
}

// accessed tells of an access to memory that was asked for.
func (r *run) accessed(v *observe.View, a *observe.Access, t *targets) {
	for _, w := range t.ranges {
		if w.Overlaps(a.Addr, a.Addr+uint64(a.Size)) {
			r.tell(v, w.r, &told{access: a})
		}
	}
}

// applied tells of system calls that return.
func (r *run) applied(v *observe.View, e *checkpoint.Event) {
	switch e.Kind {
	case checkpoint.EventEnter:
		r.inside[v.TID()] = &entered{e.NR, e.Args}
	case checkpoint.EventExit:
		if c := r.inside[v.TID()]; c != nil && c.nr == e.NR {
			r.returned(v, v.TID(), e.Result)
		}
	default: // Nothing of a call.
	}
}

// returned tells of a system call that has returned.
func (r *run) returned(v *observe.View, tid checkpoint.TID, result int64) {
	c := r.inside[tid]
	delete(r.inside, tid)
	for _, x := range r.p.regions {
		if nr, ok := abi.Number(x.arg); x.kind == onSyscall && ok && nr == c.nr {
			r.tell(v, x, &told{tid: tid, call: c, result: result})
		}
	}
}

// cameBack tells of system calls that have ended the interval before, and return where this one starts.
func (r *run) cameBack(v *observe.View) {
	for _, t := range v.Machine().Threads() {
		if r.inside[t.TID] != nil && !t.InCall {
			r.returned(v, t.TID, int64(t.State.R[0]))
		}
	}
}

// end calls the regions for the end, and has debug code end.
func (r *run) end(v *observe.View) {
	for _, x := range r.p.regions {
		if x.kind == atEnd {
			r.tell(v, x, &told{})
		}
	}
	if r.error == nil {
		if r.error = r.c.finish(); r.error != nil {
			v.Stop(r.error)
		}
	}
}

// told is what a region is told: struct vplay_moment.
type told struct {
	tid    checkpoint.TID // 0: that which runs
	call   *entered
	result int64
	access *observe.Access
}

// bytes lays it out as compile.go declares it.
func (t *told) bytes(v *observe.View) []byte {
	le := binary.LittleEndian
	at := v.Position()
	pc, tid := v.CPU().RIP, v.TID()
	if t.tid != 0 {
		tid = t.tid
	}
	a, c := t.access, t.call
	if a == nil {
		a = &observe.Access{}
	} else {
		pc = a.PC
	}
	if c == nil {
		c = &entered{}
	}
	b := le.AppendUint64(nil, pc)
	b = le.AppendUint64(b, uint64(at.Interval))
	b = le.AppendUint64(b, at.Instr)
	b = le.AppendUint32(b, uint32(tid))
	store := uint32(0)
	if a.Store {
		store = 1
	}
	b = le.AppendUint32(b, store)
	b = le.AppendUint64(b, uint64(c.nr))
	for _, x := range c.args {
		b = le.AppendUint64(b, x)
	}
	b = le.AppendUint64(b, uint64(t.result))
	b = le.AppendUint64(b, a.Addr)
	b = le.AppendUint64(b, uint64(a.Size))
	var data [128]byte
	copy(data[:64], a.Data)
	copy(data[64:], a.Old)
	b = append(b, data[:]...)
	for _, x := range v.CPU().R {
		b = le.AppendUint64(b, x)
	}
	return b
}
