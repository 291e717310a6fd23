package script

import (
	"errors"
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/debug"
	"vplay/replay/mem"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// From what a script asks for to callbacks of package observe, and from those to moments.

var (
	errNothingKnown = errors.New("nothing is known of the program's variables: name a folder with its file with --symbols")
	errNoPlace      = errors.New("it is a value that is not in memory")
)

// targets are the addresses of an interval that a script is called at.
type targets struct {
	names   names
	at      map[uint64][]target // calls, lines, addresses
	returns map[uint64][]target // of functions, by entry
	ranges  []watchedRange
	models  map[uint64]string // functions that stand for themselves, see uninit.go
	modules map[moduleAt]bool // where places were looked for
	finds   int
	heap    heapTargets
}

// watchedRange is memory whose accesses were asked for.
type watchedRange struct {
	*accessHook
	mem.Watch
}

// target is a place at an address.
type target struct {
	*place
	spot
}

// callRecord is a call whose return is of interest.
type callRecord struct {
	args    [6]uint64
	at      checkpoint.Position
	returns []target
}

// observer is observe.Options.Begin.
func (r *run) observer(v *observe.View) (*observe.Observer, error) {
	t := &targets{at: map[uint64][]target{}, returns: map[uint64][]target{}, models: map[uint64]string{}, modules: map[moduleAt]bool{}}
	ob := &observe.Observer{}
	h := &r.hooks
	if len(h.places)+len(h.returns) > 0 || h.uninit != nil || h.heap != nil {
		ob.Addresses, ob.Functions = t.find(r, v, true)
		ob.Mapped = func(v *observe.View) ([]uint64, []uint64) { return t.find(r, v, false) }
	}
	if len(h.places) > 0 {
		ob.Exec = func(v *observe.View) { r.executed(v, t) }
	}
	if len(h.returns) > 0 {
		ob.Enter = func(v *observe.View) { r.entered(v, t) }
		ob.Leave = r.returned
	}
	if len(h.syscalls)+len(h.signals) > 0 {
		var fault *checkpoint.Event
		ob.Event = func(v *observe.View, e *checkpoint.Event) {
			isSame := fault != nil && e.Kind == checkpoint.EventSignal && e.Signo == fault.Signo
			if fault = nil; e.Kind == checkpoint.EventFault {
				fault = e
			}
			if !isSame {
				r.signalled(v, e)
			}
		}
		ob.Applied = r.applied
		if len(h.syscalls) > 0 {
			ob.Start = r.cameBack
		}
	}
	if len(h.accesses) > 0 {
		ob.Ranges = r.watches(t, v)
		ob.Access = func(v *observe.View, a *observe.Access) { r.accessed(v, a, t) }
	}
	if h.races != nil {
		h.races.observe(ob)
	}
	if h.uninit != nil {
		h.uninit.observe(r, ob, t)
	}
	if h.ranges != nil {
		h.ranges.follow(r, ob)
	}
	if h.heap != nil && !t.heap.isNone {
		r.followHeap(ob, t)
	}
	switch id := v.Machine().Interval(); {
	case id == r.lastID:
		ob.Done = r.end
	case id == r.images[r.imageOf(id)].last:
		ob.Done = func(*observe.View) { r.leave(id) }
	}
	return ob, nil
}

// leave forgets the files of a program that an execve has ended: no interval of it is left. They are the most
// of what a run has in memory.
func (r *run) leave(last uint32) {
	r.images[r.imageOf(last)].files = nil
	r.view = names{}
}

// moduleAt is a module at its place.
type moduleAt struct {
	path, id  string
	base, end uint64
}

// maxFinds is how often the modules of an interval are looked through again because code was mapped.
const maxFinds = 4096

// find resolves the places of the script in modules that it was not resolved in before, and returns the addresses that are new.
// A module that the dynamic linker has yet to relocate waits for that, but at the start of an interval: which functions
// its IFUNCs stand for is not known.
func (t *targets) find(r *run, v *observe.View, isStart bool) (addresses, functions []uint64) {
	if t.finds++; t.finds > maxFinds {
		return nil, nil
	}
	res := t.names.at(r, v.Machine())
	add := func(p *place, spots []spot) {
		if p.kind == "model" {
			for _, s := range spots {
				if had, ok := t.models[s.addr]; !ok || len(s.name) < len(had) {
					t.models[s.addr] = s.name // the C library has several names for one
				}
			}
			return
		}
		of, list := t.at, &addresses
		if p.kind == "return" {
			of, list = t.returns, &functions
		}
		for _, s := range spots {
			if !hasTarget(of[s.addr], p) {
				of[s.addr] = append(of[s.addr], target{p, s})
				*list = append(*list, s.addr)
			}
		}
	}
	each := func(f func(p *place)) {
		for _, p := range r.hooks.places {
			f(p)
		}
		for _, p := range r.hooks.returns {
			f(p)
		}
		if h := r.hooks.uninit; h != nil {
			f(h.place)
		}
	}
	if isStart {
		each(func(p *place) { add(p, p.addresses()) })
	}
	for _, mod := range res.Modules() {
		key := moduleAt{mod.Path, mod.BuildID, mod.Base, mod.End}
		if t.modules[key] || !isStart && !mod.IsMapped(res.Maps()) {
			continue
		}
		chosen, isBound := mod.Implementations(&t.names.memory)
		if !isBound && !isStart {
			continue
		}
		t.modules[key] = isBound
		if d := res.File(mod); d != nil {
			each(func(p *place) { add(p, p.in(mod, d, chosen)) })
			if r.hooks.heap != nil {
				a, f := t.heap.find(mod, d, chosen)
				addresses, functions = append(addresses, a...), append(functions, f...)
			}
		}
	}
	if h := r.hooks.heap; h != nil && isStart {
		t.heap.settle(h, res.Modules())
	}
	return addresses, functions
}

func hasTarget(l []target, p *place) bool {
	for i := range l {
		if l[i].place == p {
			return true
		}
	}
	return false
}

// tell calls a function of the script's with a moment, which is over then.
func (r *run) tell(f starlark.Callable, v *observe.View, m *moment) {
	r.rec.Budget().Renew() // each callback may look at as much as a debugger's command
	m.r, m.v = r, v
	switch {
	case m.problem != nil:
		m.at = m.problem.At
	case m.kind != "race": // which has that of the access
		m.at = v.Position()
	}
	m.tid, m.pc, m.sp = v.TID(), v.CPU().RIP, v.CPU().R[x86.RSP]
	r.call(f, m)
	m.over, m.v, m.frames = true, nil, nil
	if r.error != nil {
		v.Stop(r.error)
	}
}

// executed tells of an instruction that was asked for.
func (r *run) executed(v *observe.View, t *targets) {
	for _, x := range t.at[v.CPU().RIP] {
		if x.native != nil {
			x.native(v)
			continue
		}
		r.tell(x.f, v, &moment{kind: x.kind, called: x.name, inlined: x.spot.inlined, body: x.body, args: v.Arguments()})
	}
}

// entered notes a call whose return is of interest.
func (r *run) entered(v *observe.View, t *targets) {
	c := v.CPU()
	r.calls.Enter(int32(v.TID()), c.R[x86.RSP], callRecord{v.Arguments(), v.Position(), t.returns[c.RIP]})
}

// returned tells of a return.
func (r *run) returned(v *observe.View, slot uint64) {
	c, ok := r.calls.Leave(int32(v.TID()), slot)
	if !ok {
		return
	}
	for _, p := range c.returns {
		if p.left != nil {
			p.left(v, &c, v.CPU().R[x86.RAX])
			continue
		}
		r.tell(p.f, v, &moment{kind: p.kind, called: p.name, args: c.args, entered: c.at, result: v.CPU().R[x86.RAX]})
	}
}

// signalled tells of a signal, or of a fault that makes one.
func (r *run) signalled(v *observe.View, e *checkpoint.Event) {
	if e.Kind != checkpoint.EventSignal && e.Kind != checkpoint.EventFault {
		return
	}
	text := debug.SignalText(e)
	if text == "" {
		text = abi.Signal(e.Signo).String()
	}
	for _, f := range r.hooks.signals {
		r.tell(f, v, &moment{kind: "signal", signo: e.Signo, text: text, fault: e.Kind == checkpoint.EventFault, addr: e.Addr})
	}
}

// syscall is a call that has not returned.
type syscall struct {
	nr   int64
	args [6]uint64
	at   checkpoint.Position
	tid  checkpoint.TID
	text string // at its entry
}

// applied tells of system calls, behind the event.
func (r *run) applied(v *observe.View, e *checkpoint.Event) {
	switch e.Kind {
	case checkpoint.EventEnter:
		r.callBegins(v, e)
	case checkpoint.EventExit:
		if c := r.inside[v.TID()]; c != nil && c.nr == e.NR {
			delete(r.inside, c.tid)
			text := c.text + " = " + abi.FormatResult(c.nr, e.Result)
			if e.Result >= 0 { // with what it has read
				text = abi.FormatCall(debug.ReadAt{Memory: debug.Memory{Space: v.Machine().Mem}}, c.nr, c.args, e.Result)
			}
			r.callEnds(v, c, &e.Result, text)
		}
	default: // Nothing of a call.
	}
}

// callBegins notes a system call, and tells of its entry.
func (r *run) callBegins(v *observe.View, e *checkpoint.Event) {
	wanted := false
	for i := range r.hooks.syscalls {
		wanted = wanted || r.hooks.syscalls[i].wants(e.NR)
	}
	if !wanted {
		return
	}
	c := &syscall{e.NR, e.Args, v.Position(), v.TID(), abi.Format(debug.ReadAt{Memory: debug.Memory{Space: v.Machine().Mem}}, e.NR, e.Args)}
	r.inside[c.tid] = c
	for i := range r.hooks.syscalls {
		if h := &r.hooks.syscalls[i]; h.enter && h.wants(c.nr) {
			r.tell(h.f, v, &moment{kind: "syscall", call: c, args: c.args, text: c.text})
		}
	}
}

// callEnds tells of a system call that has returned.
func (r *run) callEnds(v *observe.View, c *syscall, result *int64, text string) {
	for i := range r.hooks.syscalls {
		if h := &r.hooks.syscalls[i]; !h.enter && h.wants(c.nr) {
			r.tell(h.f, v, &moment{kind: "syscall", call: c, args: c.args, returned: result, text: text})
		}
	}
}

// cameBack tells of system calls that have ended the interval before, and return where this one starts.
func (r *run) cameBack(v *observe.View) {
	for _, t := range v.Machine().Threads() {
		if c := r.inside[t.TID]; c != nil && !t.InCall {
			delete(r.inside, t.TID)
			result := int64(t.State.R[x86.RAX])
			r.callEnds(v, c, &result, c.text+" = "+abi.FormatResult(c.nr, result))
		}
	}
}

// unreturned tells of system calls that have not returned when the recording ends.
func (r *run) unreturned() {
	for _, tid := range sortedThreads(r.inside) {
		c := r.inside[tid]
		for i := range r.hooks.syscalls {
			if h := &r.hooks.syscalls[i]; !h.enter && h.wants(c.nr) {
				m := &moment{r: r, kind: "syscall", call: c, args: c.args, text: c.text + " = ?", at: c.at, tid: tid, over: true}
				r.call(h.f, m)
			}
		}
	}
}

// maxRanges bounds the memory that is watched.
const maxRanges = 1 << 16

// watches evaluates what on_access asks for at the start of an interval.
func (r *run) watches(t *targets, v *observe.View) (out []mem.Watch) {
	t.names.at(r, v.Machine())
	for _, h := range r.hooks.accesses {
		w := mem.Watch{Addr: h.start, Len: h.end - h.start}
		if h.expr != "" {
			var err error
			if w, err = t.names.global(h.expr); err != nil {
				why := err.Error()
				h.why.Store(&why)
				continue
			}
		}
		h.found.Store(true)
		if h.load {
			w.Kind |= mem.WatchRead
		}
		if h.store {
			w.Kind |= mem.WatchWrite
		}
		if len(out) < maxRanges {
			out = append(out, w)
			t.ranges = append(t.ranges, watchedRange{h, w})
		}
	}
	return out
}

// accessed tells of an access to memory that was asked for.
func (r *run) accessed(v *observe.View, a *observe.Access, t *targets) {
	for i := range t.ranges {
		w := &t.ranges[i]
		if a.Store && !w.store || !a.Store && !w.load || !w.Overlaps(a.Addr, a.Addr+uint64(a.Size)) {
			continue
		}
		m := &moment{kind: "access", access: kept(a)}
		r.tell(w.f, v, m)
	}
}

// sortedThreads returns the threads that have a call under way, by number.
func sortedThreads(inside map[checkpoint.TID]*syscall) []checkpoint.TID {
	return slices.Sorted(maps.Keys(inside))
}
