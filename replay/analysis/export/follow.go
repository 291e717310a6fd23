package export

import (
	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/analysis/heap"
	"vplay/replay/mem"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// Calls, system calls and signals one after the other, for formats that list them. Intervals are replayed in their order then.

// listed is a call that is under way.
type listed struct {
	fn     int32
	depth  int32
	begin  uint64 // instructions executed before it, since the beginning of what is exported
	at     checkpoint.Position
	isOld  bool // it was under way when the export began
	isOut  bool // its beginning was written
	alloc  *heap.Function
	args   arguments
	nested int // calls in it that were written
}

// syscall is one that is under way, or over.
type syscall struct {
	nr     int64
	name   string
	text   string // as strace prints it, without the result
	result string // "" as long as it is not over
	value  int64
	begin  uint64
	at     checkpoint.Position
}

// list is told of what happens, with the time in instructions.
type list interface {
	called(tid int32, c *listed)
	returned(tid int32, c *listed, now uint64)
	syscall(tid int32, s *syscall, now uint64)
	signal(tid int32, e *checkpoint.Event, at checkpoint.Position, now uint64)
	running(tid int32, now uint64)
	heap(bytes uint64, now uint64)
	mapped(bytes uint64, now uint64)
	ended(tid int32, now uint64)
}

// fault is an instruction that could not be executed.
type fault struct {
	event *checkpoint.Event
	at    checkpoint.Position
	now   uint64
}

// order follows a walk through all intervals.
type order struct {
	w      *walk
	p      *pass
	to     list
	base   uint64 // instructions of the intervals before
	calls  map[int32][]*listed
	inside map[int32]*syscall
	fault  *fault            // no signal has come of it yet
	live   map[uint64]uint64 // blocks of the heap
	heap   uint64
	runs   int32
	free   []*listed
	pages  *touched // nil: nobody is told of them
}

// maxLive is how many blocks of the heap are known.
const maxLive = 1 << 24

// follow replays the intervals in order.
func (w *walk) follow(to list) error {
	o := &order{w: w, to: to, calls: map[int32][]*listed{}, inside: map[int32]*syscall{}, live: map[uint64]uint64{}}
	if l, ok := to.(touchedList); ok {
		o.pages = newTouched(l)
	}
	err := w.run(observe.Options{
		Ordered: true,
		Begin: func(*observe.View) (*observe.Observer, error) {
			ob := &observe.Observer{}
			var sets *mem.Sets
			if o.pages != nil {
				sets = mem.NewSets()
			}
			// All of it is made when the interval's turn has come: the walk's tree is its own then.
			*ob = observe.Observer{
				Start:   func(v *observe.View) { o.begin(v, sets) },
				Run:     o.ran,
				Touched: sets,
				Event:   func(v *observe.View, e *checkpoint.Event) { o.p.before(v, e) }, Applied: func(v *observe.View, e *checkpoint.Event) { o.p.applied(v, e) },
				Done: func(v *observe.View) {
					o.p.finish(v.CPU().Retired)
					if o.pages != nil {
						o.pages.look(o.base + o.p.retired)
					}
					o.base += o.p.retired
					w.sum += o.p.retired
				},
			}
			return ob, nil
		},
	})
	if err == nil {
		o.end()
	}
	return err
}

// begin makes the pass of an interval.
func (o *order) begin(v *observe.View, sets *mem.Sets) {
	id := v.Position().Interval
	if o.w.isFirst(id) {
		o.end()
	}
	o.p = o.w.newPass(id, false)
	o.p.follower, o.p.events = o, o
	o.p.begin(v)
	if o.pages != nil {
		o.pages.begin(sets, o.w.program(id))
	}
	o.run(int32(v.TID()))
}

// ran is told of a run of instructions.
func (o *order) ran(v *observe.View, r *x86.Run) {
	o.p.ran(v, r)
	if o.pages != nil {
		o.pages.ran(o.now())
	}
}

// now is the instructions executed so far.
func (o *order) now() uint64 { return o.base + o.p.view.CPU().Retired }

func (o *order) run(tid int32) {
	if tid != o.runs {
		o.runs = tid
		o.to.running(tid, o.now())
	}
}

// enter implements follower.
func (o *order) enter(t *thread, n *node, alloc *heap.Function, args *arguments, at uint64, isOld bool) {
	c := &listed{}
	if k := len(o.free); k > 0 {
		c, o.free = o.free[k-1], o.free[:k-1]
	}
	p := o.p.view.Position()
	p.Instr, p.Step = at, 0
	*c = listed{fn: n.fn, depth: n.depth, begin: o.base + at, at: p, isOld: isOld, alloc: alloc, args: *args}
	o.calls[t.tid] = append(o.calls[t.tid], c)
	o.to.called(t.tid, c)
}

// leave implements follower.
func (o *order) leave(t *thread, _ *node) {
	l := o.calls[t.tid]
	if len(l) == 0 {
		return
	}
	c := l[len(l)-1]
	o.calls[t.tid] = l[:len(l)-1]
	if c.alloc != nil {
		o.allocated(c)
	}
	o.to.returned(t.tid, c, o.now())
	o.free = append(o.free, c)
}

// allocated keeps account of the heap, where a function of malloc's family has returned.
func (o *order) allocated(c *listed) {
	at, _ := c.alloc.Block(o.p.view, c.args[:], o.p.view.CPU().R[x86.RAX])
	before := o.heap
	if c.alloc.Frees || at != 0 && c.alloc.Resizes {
		o.heap -= o.live[c.args[0]]
		delete(o.live, c.args[0])
	}
	if n, ok := c.alloc.Asked(c.args[:]); ok && at != 0 && len(o.live) < maxLive {
		o.heap += n - o.live[at]
		o.live[at] = n
	}
	if o.heap != before {
		o.to.heap(o.heap, o.now())
	}
}

// before implements watcher.
func (o *order) before(v *observe.View, e *checkpoint.Event) {
	tid := int32(e.TID)
	switch e.Kind {
	case checkpoint.EventEnter:
		o.inside[tid] = &syscall{nr: e.NR, name: abi.Name(e.NR), text: abi.Format(memoryOf(v), e.NR, e.Args), begin: o.now(), at: v.Position()}
	case checkpoint.EventFault: // the signal follows, unless the process dies of it
		o.fault = &fault{e, v.Position(), o.now()}
	case checkpoint.EventSignal:
		o.fault = nil
		o.to.signal(tid, e, v.Position(), o.now())
	default: // It is told of when it has been applied, or not at all.
	}
}

// applied implements watcher.
func (o *order) applied(v *observe.View, e *checkpoint.Event) {
	tid := int32(e.TID)
	switch e.Kind {
	case checkpoint.EventExit:
		s := o.inside[tid]
		if s == nil {
			s = &syscall{nr: e.NR, name: abi.Name(e.NR), text: abi.Name(e.NR) + "(...)", begin: o.now(), at: v.Position()}
		}
		delete(o.inside, tid)
		s.result, s.value = abi.FormatResult(e.NR, e.Result), e.Result
		o.to.syscall(tid, s, o.now())
	case checkpoint.EventThread:
		if e.Thread == checkpoint.ThreadExit {
			o.unreturned(tid)
			o.to.ended(tid, o.now())
		}
	default: // It says nothing that is listed.
	}
	if len(e.Maps) > 0 {
		sum := uint64(0)
		for _, r := range v.Machine().Mem.Regions() {
			sum += r.End - r.Start
		}
		o.to.mapped(sum, o.now())
		if o.pages != nil {
			o.pages.mapped(v, e, o.now())
		}
	}
	o.run(int32(v.TID()))
}

// unreturned tells of a system call that has not returned.
func (o *order) unreturned(tid int32) {
	if s := o.inside[tid]; s != nil {
		delete(o.inside, tid)
		o.to.syscall(tid, s, o.base)
	}
}

// end tells that all calls under way are over as far as is known.
func (o *order) end() {
	if f := o.fault; f != nil {
		o.fault = nil
		o.to.signal(int32(f.event.TID), f.event, f.at, f.now)
	}
	for _, tid := range sortedKeys(o.inside) {
		o.unreturned(tid)
	}
	for _, tid := range sortedKeys(o.calls) {
		l := o.calls[tid]
		for i := len(l) - 1; i >= 0; i-- {
			o.to.returned(tid, l[i], o.base)
		}
		o.to.ended(tid, o.base)
	}
	clear(o.calls)
}
