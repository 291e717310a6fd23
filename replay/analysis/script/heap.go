package script

import (
	"cmp"
	"debug/elf"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay/analysis/heap"
	"vplay/replay/debug"
	"vplay/replay/observe"
)

// on_heap: package heap follows the allocator, and the script is called at each misuse.

// heapHook is what a script asks for with on_heap. It is a Starlark value, too.
type heapHook struct {
	r       *run
	f       starlark.Callable
	tracker heap.Tracker
	places  map[uint64]string // what code that allocates and frees is called, by return address
	image   int               // the program whose blocks the tracker has
	isKnown atomic.Bool       // a function of the allocator has been found
}

// heapTargets is the code that a Tracker is told of in one interval.
type heapTargets struct {
	functions map[uint64]heapFunction // of the allocator
	text      map[uint64]string       // string functions
	code      []heapCode              // not told yet
	asked     []string                // names of string functions whose code is to be known
	calls     map[string]bool         // those of them whose calls are
	isNone    bool                    // the interval has no allocator, and will get none: there is nothing to follow
}

type heapFunction struct {
	name    string
	isGlibc bool // it is in the GNU C library
}

// heapCode is the code of a string function.
type heapCode struct {
	name      string
	low, high uint64
}

// onHeap is on_heap(f).
func (r *run) onHeap() *starlark.Builtin {
	return starlark.NewBuiltin("on_heap", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var f starlark.Callable
		if err := starlark.UnpackArgs("on_heap", args, kwargs, "f", &f); err != nil {
			return nil, err
		}
		if r.loaded || r.hooks.heap != nil || r.hooks.ranges != nil {
			return nil, errOneSet
		}
		h := &heapHook{r: r, f: f}
		h.tracker.Whole = r.whole
		h.tracker.Problem = func(v *observe.View, p *heap.Problem) { r.tell(f, v, &moment{kind: "heap", problem: p}) }
		h.tracker.Place = r.ownPlace
		h.tracker.Caller = func(v *observe.View, ret uint64) {
			r.view.at(r, v.Machine())
			l := r.view.locate(ret - 1)
			h.places[ret] = locationText(&l)
		}
		h.reset(0)
		r.hooks.heap = h
		return h, nil
	})
}

// reset forgets the blocks of another program.
func (h *heapHook) reset(image int) {
	h.image, h.places = image, map[uint64]string{}
	h.tracker.Reset()
}

// find returns the entries of the functions in a module that a Tracker is told of: those of string functions, and
// those of the allocator.
func (t *heapTargets) find(mod *image.Module, d *dwarf.Module, chosen map[uint64]uint64) (addresses, functions []uint64) {
	if t.functions == nil {
		t.functions, t.text, t.calls = map[uint64]heapFunction{}, map[uint64]string{}, map[string]bool{}
		var calls []string
		calls, t.asked = heap.Text()
		for _, name := range calls {
			t.calls[name] = true
		}
	}
	isGlibc := len(d.Functions("gnu_get_libc_version")) > 0
	p := place{kind: "call", names: heap.Functions()}
	for _, s := range p.in(mod, d, chosen) {
		if _, has := t.functions[s.addr]; !has {
			t.functions[s.addr] = heapFunction{s.name, isGlibc}
			functions = append(functions, s.addr)
		}
	}
	p = place{kind: "call", names: t.asked}
	spots := p.in(mod, d, chosen)
	if isGlibc {
		spots = append(spots, unbound(mod, d, chosen, t.asked)...)
	}
	for _, s := range spots {
		if low, high, ok := d.Extent(s.addr - mod.Bias); ok {
			t.code = append(t.code, heapCode{s.name, low + mod.Bias, high + mod.Bias})
		}
		if _, has := t.text[s.addr]; !has && t.calls[s.name] {
			t.text[s.addr] = s.name
			addresses = append(addresses, s.addr)
		}
	}
	return addresses, functions
}

// variants are what the names of the implementations end in that glibc's resolvers choose from (sysdeps/x86_64/multiarch).
var variants = []string{"generic", "sse2", "sse2_unaligned", "ssse3", "sse4_1", "sse42", "avx", "avx2", "avx2_rtm", "evex", "evex512", "avx512"}

// unbound returns the entries of all implementations of those functions that nobody in the module itself calls: which one
// is chosen is known only where the program has called it first, as its calls are bound then.
func unbound(mod *image.Module, d *dwarf.Module, chosen map[uint64]uint64, names []string) (out []spot) {
	for _, name := range names {
		isChosen := func(entry uint64) bool { _, ok := chosen[entry+mod.Bias]; return ok }
		if slices.ContainsFunc(d.Functions(name), isChosen) {
			continue
		}
		for _, variant := range variants {
			for _, entry := range d.Functions("__" + name + "_" + variant) {
				out = append(out, spot{addr: entry + mod.Bias, name: name})
			}
		}
	}
	return out
}

// settle takes note of what was found in the modules that an interval begins with. A program that no dynamic linker
// loads libraries for, as one of Go, has all that it will have.
func (t *heapTargets) settle(h *heapHook, modules []*image.Module) {
	t.know(h)
	t.isNone = len(t.functions) == 0 && !slices.ContainsFunc(modules, func(m *image.Module) bool {
		return slices.ContainsFunc(m.Segments, func(p elf.ProgHeader) bool { return p.Type == elf.PT_INTERP })
	})
}

// know takes note of that the allocator is known. Intervals are looked at beside each other.
func (t *heapTargets) know(h *heapHook) {
	if len(t.functions) > 0 {
		h.isKnown.Store(true)
	}
}

// tell tells a Tracker of code that was found.
func (t *heapTargets) tell(h *heapHook) {
	for _, c := range t.code {
		h.tracker.AddText(c.name, c.low, c.high)
	}
	t.code = nil
}

// followHeap has an observer tell the Tracker what it needs, beside what the observer tells.
func (r *run) followHeap(ob *observe.Observer, t *targets) {
	h := r.hooks.heap
	start, mapped, exec, enter, leave, applied, access := ob.Start, ob.Mapped, ob.Exec, ob.Enter, ob.Leave, ob.Applied, ob.Access
	ob.Start = func(v *observe.View) {
		if image := r.imageOf(v.Machine().Interval()); image != h.image {
			h.reset(image)
		}
		t.heap.tell(h)
		if start != nil {
			start(v)
		}
	}
	ob.Mapped = func(v *observe.View) (addresses, functions []uint64) {
		addresses, functions = mapped(v)
		t.heap.know(h)
		t.heap.tell(h)
		return addresses, functions
	}
	ob.Exec = func(v *observe.View) {
		if name, ok := t.heap.text[v.CPU().RIP]; ok {
			h.tracker.EnterText(v, name)
		}
		if exec != nil {
			exec(v)
		}
	}
	ob.Enter = func(v *observe.View) {
		if f, ok := t.heap.functions[v.CPU().RIP]; ok {
			h.tracker.Enter(v, f.name, f.isGlibc)
		}
		if enter != nil {
			enter(v)
		}
	}
	ob.Leave = func(v *observe.View, slot uint64) {
		h.tracker.Leave(v, slot)
		if leave != nil {
			leave(v, slot)
		}
	}
	ob.Applied = func(v *observe.View, e *checkpoint.Event) {
		h.tracker.Applied(v, e)
		if applied != nil {
			applied(v, e)
		}
	}
	ob.Marks = h.tracker.Marks()
	ob.NoData = access == nil
	isAsked := func(a *observe.Access) bool {
		for i := range t.ranges {
			if t.ranges[i].Overlaps(a.Addr, a.Addr+uint64(a.Size)) {
				return true
			}
		}
		return false
	}
	ob.Wants = func(v *observe.View, a *observe.Access) bool { return h.tracker.Wants(v, a) || isAsked(a) }
	ob.Access = func(v *observe.View, a *observe.Access) {
		h.tracker.Access(v, a)
		if access != nil {
			access(v, a)
		}
	}
}

// isLibrary reports whether code is the C library's.
func (r *run) isLibrary(v *observe.View, pc uint64) bool {
	mod := r.view.at(r, v.Machine()).Module(pc)
	return mod != nil && strings.HasPrefix(path.Base(mod.Path), "libc.so")
}

// ownPlace is heap.Tracker.Place.
func (r *run) ownPlace(v *observe.View, pc uint64) uint64 {
	if !r.isLibrary(v, pc) {
		return pc
	}
	const near = 16
	for _, l := range r.stackAt(v, &heap.Problem{PC: pc}, near) {
		if !r.isLibrary(v, l.Addr) {
			return l.Addr
		}
	}
	return pc
}

// maxInstruction is the length of the longest instruction (SDM volume 2, 2.3.11).
const maxInstruction = 15

// stackAt returns the calls that led to a misuse, n at most. The instruction that accessed has been executed.
func (r *run) stackAt(v *observe.View, p *heap.Problem, n int) []loader.Location {
	res := r.view.at(r, v.Machine())
	regs := loader.Regs(&v.CPU().State)
	if p.PC == 0 || p.Event || p.Fault {
		return debug.BacktraceOf(res, &regs, n)
	}
	frames := debug.BacktraceOf(res, &regs, n+1)
	after := 1
	if d := v.CPU().RIP - p.PC; d > maxInstruction { // it was a call through memory
		after = 2
	}
	frames = append([]loader.Location{r.view.locate(p.PC)}, frames[min(after, len(frames)):]...)
	return frames[:min(n, len(frames))]
}

// problemValue is m.problem.
func (m *moment) problemValue() (starlark.Value, error) {
	p := m.problem
	access := "read"
	switch {
	case p.PC == 0:
		access = "free"
	case p.Fault:
		access = "access"
	case p.Store:
		access = "write"
	}
	d := starlark.StringDict{
		"kind": starlark.String(p.Kind.String()), "function": starlark.String(heap.Readable(p.Function)), "address": starlark.MakeUint64(p.Addr),
		"access": starlark.String(access), "size": starlark.MakeInt(p.Size), "start": starlark.MakeUint64(p.Start), "length": starlark.MakeUint64(p.Whole),
		"kernel": starlark.Bool(p.Event), "block": starlark.None,
	}
	if b := p.Block; b != nil {
		h := m.r.hooks.heap
		call := func(c heap.Call) starlark.Value {
			return starlarkstruct.FromStringDict(starlark.String("call"), starlark.StringDict{
				"position": starlark.String(c.At.String()), "place": starlark.String(h.places[c.Caller]),
			})
		}
		block := starlark.StringDict{"address": starlark.MakeUint64(b.Addr), "size": starlark.MakeUint64(b.Size), "allocated": call(b.Allocated), "freed": starlark.None}
		if p.Kind == heap.DoubleFree || p.Kind == heap.UseAfterFree {
			block["freed"] = call(b.Freed)
		}
		d["block"] = starlarkstruct.FromStringDict(starlark.String("block"), block)
	}
	return starlarkstruct.FromStringDict(starlark.String("problem"), d), nil
}

var _ starlark.HasAttrs = (*heapHook)(nil)

// String implements starlark.Value.
func (h *heapHook) String() string { return "<heap>" }

// Type implements starlark.Value.
func (h *heapHook) Type() string { return "heap" }

// Freeze implements starlark.Value.
func (h *heapHook) Freeze() {}

// Truth implements starlark.Value.
func (h *heapHook) Truth() starlark.Bool { return true }

// Hash implements starlark.Value.
func (h *heapHook) Hash() (uint32, error) { return 0, fmt.Errorf("a heap is no key") }

// AttrNames implements starlark.HasAttrs.
func (h *heapHook) AttrNames() []string {
	return []string{"allocated", "bytes", "freed", "held", "known", "summary"}
}

// Attr implements starlark.HasAttrs.
func (h *heapHook) Attr(name string) (starlark.Value, error) {
	switch name {
	case "allocated":
		return starlark.MakeUint64(h.tracker.Allocated), nil
	case "bytes":
		return starlark.MakeUint64(h.tracker.Bytes), nil
	case "freed":
		return starlark.MakeUint64(h.tracker.Freed), nil
	case "held":
		return starlark.MakeInt(len(h.tracker.Blocks())), nil
	case "known":
		return starlark.Bool(h.isKnown.Load()), nil
	case "summary":
		return starlark.NewBuiltin("summary", h.summary), nil
	}
	return nil, nil //nolint:nilnil // this is how Starlark is told that there is none
}

// held are the blocks that one place has allocated and that were not freed.
type held struct {
	isLost        bool
	place         string
	blocks, bytes uint64
	first         checkpoint.Position
}

// summary is summary(m): the blocks that were not freed, by whether something points to them and the place that allocated them, the most
// bytes first.
func (h *heapHook) summary(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value
	if err := starlark.UnpackArgs("summary", args, kwargs, "m", &v); err != nil {
		return nil, err
	}
	m, ok := v.(*moment)
	if !ok || m.over {
		return nil, fmt.Errorf("summary: it takes the moment of a callback")
	}
	blocks := h.tracker.Blocks()
	sizes := make(map[uint64]uint64, len(blocks))
	for a, b := range blocks {
		sizes[a] = b.Size
	}
	x := &reach{ctx: h.r.ctx, v: m.v, blocks: spans(sizes), others: spans(h.tracker.FreedBlocks())}
	x.found = make([]bool, len(x.blocks))
	if err := x.search(); err != nil {
		return nil, err
	}
	type key struct {
		isLost bool
		place  string
	}
	by := map[key]*held{}
	for i, s := range x.blocks {
		b := blocks[s.start]
		k := key{!x.found[i], h.places[b.Allocated.Caller]}
		e := by[k]
		if e == nil {
			e = &held{isLost: k.isLost, place: k.place, first: b.Allocated.At}
			by[k] = e
		}
		e.blocks++
		e.bytes += b.Size
		if b.Allocated.At.Compare(e.first) < 0 {
			e.first = b.Allocated.At
		}
	}
	list := make([]*held, 0, len(by))
	for _, e := range by {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *held) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.place, b.place))
	})
	out := make([]starlark.Value, len(list))
	for i, e := range list {
		out[i] = starlarkstruct.FromStringDict(starlark.String("held"), starlark.StringDict{
			"lost": starlark.Bool(e.isLost), "place": starlark.String(e.place), "blocks": starlark.MakeUint64(e.blocks),
			"bytes": starlark.MakeUint64(e.bytes), "position": starlark.String(e.first.String()),
		})
	}
	return starlark.NewList(out), nil
}
