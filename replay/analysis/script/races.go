package script

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/analysis/race"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// races(f): a detector of data races (package race) that is fed with all accesses of the program here, since a
// callback of the script's for each would take too long, and with the creation of threads. What else synchronises, the script
// tells it: acquire, release, join. f is called for each race.

// races is the detector, as scripts have it.
type races struct {
	r *run
	f starlark.Callable
	// freed, when set, is called for addresses that were noted; see racesblocks.go.
	freed starlark.Callable
	d     *race.Detector
	v     *observe.View // of the callback from the replay that is under way
	// present is the access that the detector is told of some time behind it; nil: v is at what it is told of.
	present *observe.PastAccess

	image   int
	started bool
	pcs     [pcCache]pcInfo
	threads map[checkpoint.TID]*raceThread
	last    *raceThread
	handles map[uint64]checkpoint.TID // threads by their thread pointers, which are their pthread_t
	blocks  raceBlocks
	atomics map[uint64]atomicKind // by instruction, of the modules that are mapped
	rust    map[moduleAt]bool     // modules made by rustc
}

// raceThread is what is known of a thread beyond what the detector knows.
type raceThread struct {
	tid checkpoint.TID
	// as is the thread that the detector takes it for: of a child of vfork its parent, which waits meanwhile.
	as int32
	// Its stack lies from low up to end, and sp is where its stack pointer was at its last access.
	low, end, sp uint64
	// unknown says that the thread ran before the recording began. It may have been waiting for anything then.
	unknown bool
}

// pcInfo is what is known of the instruction at an address.
type pcInfo struct {
	pc    uint64
	flags pcFlags
}

type pcFlags uint8

const (
	pcKnown pcFlags = 1 << iota
	pcExcluded
	pcLocks
)

const (
	pcCache      = 1 << 13
	maxStackSize = 8 << 20 // of the first thread, which grows
	maxHandles   = 1 << 16
	maxCopied    = 256 << 10 // bytes of one call of memcpy or the like that are looked at
)

// racesBuiltin is races(f, freed=None).
func (r *run) racesBuiltin() *starlark.Builtin {
	return starlark.NewBuiltin("races", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		x := &races{r: r}
		if err := starlark.UnpackArgs("races", args, kwargs, "f", &x.f, "freed?", &x.freed); err != nil {
			return nil, err
		}
		if r.loaded || r.hooks.races != nil {
			return nil, errors.New("races: it is asked for once, while the script is loaded")
		}
		at := r.caller()
		x.d = race.New(race.Options{Report: x.report, IsAtomic: x.isAtomic})
		x.reset()
		r.hooks.races = x
		for _, c := range copiers {
			r.hooks.places = append(r.hooks.places, &place{by: "races", names: c.names, kind: "call", optional: true, at: at,
				native: func(v *observe.View) { x.copied(v, c.loads, c.stores) }})
		}
		x.followBlocks(at)
		return x, nil
	})
}

// copiers are the functions of the C library whose accesses are their callers'.
var copiers = []struct {
	names         []string
	stores, loads bool
}{
	{[]string{"memcpy", "memmove", "__memcpy_chk", "__memmove_chk"}, true, true},
	{[]string{"memset", "__memset_chk"}, true, false},
}

// String implements starlark.Value, as the next four do.
func (x *races) String() string        { return "<races>" }
func (x *races) Type() string          { return "races" }
func (x *races) Freeze()               {}
func (x *races) Truth() starlark.Bool  { return true }
func (x *races) Hash() (uint32, error) { return 0, errors.New("races is no key") }

// raceMethods are the attributes that are called.
var raceMethods = map[string]func(x *races, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error){
	"acquire": byKey("acquire", (*race.Detector).Acquire),
	"release": byKey("release", (*race.Detector).Release),
	"drop":    byKey("drop", func(d *race.Detector, _ int32, k race.Key) { d.Drop(k) }),
	"join":    (*races).join,
	"handle":  (*races).handle,
	"block":   (*races).block,
	"note":    (*races).note,
	"clear":   (*races).clear,
}

// Attr implements starlark.HasAttrs.
func (x *races) Attr(name string) (starlark.Value, error) {
	switch name {
	case "several":
		return starlark.Bool(x.d.Several()), nil
	case "forgotten":
		return starlark.MakeInt(x.d.Forgotten()), nil
	}
	f := raceMethods[name]
	if f == nil {
		return nil, nil //nolint:nilnil // this is how Starlark is told that there is none
	}
	return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return f(x, args, kwargs)
	}), nil
}

// AttrNames implements starlark.HasAttrs.
func (x *races) AttrNames() []string {
	return []string{"acquire", "block", "clear", "drop", "forgotten", "handle", "join", "note", "release", "several"}
}

// byKey makes acquire(thread, address, kind="") and the like.
func byKey(name string, f func(d *race.Detector, tid int32, k race.Key)) func(x *races, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return func(x *races, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var tid int32
		var a starlark.Int
		var kind string
		if err := starlark.UnpackArgs(name, args, kwargs, "thread", &tid, "address", &a, "kind?", &kind); err != nil {
			return nil, err
		}
		addr, ok := a.Uint64()
		if !ok {
			return nil, fmt.Errorf("%s: %s is no address", name, a)
		}
		if x.d.Several() { // with one thread there is nothing to order
			f(x.d, x.actor(tid), race.Key{Addr: addr, Kind: kind})
		}
		return starlark.None, nil
	}
}

// join is join(thread, child).
func (x *races) join(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var tid, child int32
	if err := starlark.UnpackArgs("join", args, kwargs, "thread", &tid, "child", &child); err != nil {
		return nil, err
	}
	x.d.Join(x.actor(tid), child)
	return starlark.None, nil
}

// handle is handle(pthread_t): the thread that the C library names so, None where it is not known.
func (x *races) handle(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a, err := oneAddress("handle", args, kwargs)
	if err != nil {
		return nil, err
	}
	if tid, ok := x.handles[a]; ok {
		return starlark.MakeInt64(int64(tid)), nil
	}
	return starlark.None, nil
}

// clear is clear(address, size).
func (x *races) clear(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var a, n starlark.Int
	if err := starlark.UnpackArgs("clear", args, kwargs, "address", &a, "size", &n); err != nil {
		return nil, err
	}
	addr, ok := a.Uint64()
	size, also := n.Uint64()
	if !ok || !also || addr+size < addr {
		return nil, errors.New("clear: an address and its size are no range")
	}
	x.d.Clear(addr, addr+size)
	return starlark.None, nil
}

// observe has the detector told what it needs. Where nobody else wants accesses, it is told of them by the list, which takes less time.
func (x *races) observe(ob *observe.Observer) {
	access, applied, mapped, start := ob.Access, ob.Applied, ob.Mapped, ob.Start
	h := &x.r.hooks
	ob.Later, ob.NoData = true, access == nil && h.uninit == nil
	if ob.NoData && h.ranges == nil && h.heap == nil {
		ob.Revisits, ob.Accesses = true, x.accessedAll
	} else {
		ob.AllAccesses = true
		ob.Access = func(v *observe.View, a *observe.Access) {
			x.accessed(v, a)
			if access != nil {
				access(v, a)
			}
		}
	}
	ob.Applied = func(v *observe.View, e *checkpoint.Event) {
		x.applied(v, e)
		if applied != nil {
			applied(v, e)
		}
	}
	ob.Mapped = func(v *observe.View) (addresses, functions []uint64) {
		x.forgetCode()
		if mapped != nil {
			return mapped(v)
		}
		return nil, nil
	}
	ob.Start = func(v *observe.View) {
		x.start(v)
		if start != nil {
			start(v)
		}
	}
}

// reset forgets the program that the process was.
func (x *races) reset() {
	x.d.Reset()
	x.threads, x.last, x.handles = map[checkpoint.TID]*raceThread{}, nil, map[uint64]checkpoint.TID{}
	x.rust = map[moduleAt]bool{}
	x.blocks = raceBlocks{of: map[uint64]raceBlock{}, noted: map[uint64][]uint64{}}
}

// forgetCode forgets what is known of instructions: there may be others.
func (x *races) forgetCode() {
	clear(x.pcs[:])
	x.atomics = map[uint64]atomicKind{}
}

// start is called at the start of an interval.
func (x *races) start(v *observe.View) {
	x.v = v
	x.forgetCode()
	if image := x.r.imageOf(v.Position().Interval); image != x.image {
		x.reset()
		x.image = image
	}
	threads := v.Machine().Threads()
	for i := range threads {
		t := &threads[i]
		if x.threads[t.TID] != nil {
			continue
		}
		first := !x.started
		x.add(v.Machine(), t, len(threads) > 1 || !first)
		if first {
			x.d.Begin(int32(t.TID))
		} else if !x.d.Knows(int32(t.TID)) {
			x.d.AcquireAll(int32(t.TID))
		}
	}
	x.started = true
	x.look(v)
}

// look has accesses told once there is a second thread: what was before it happens before all that it does.
func (x *races) look(v *observe.View) {
	if x.d.Several() {
		v.TellAccesses()
	}
}

// add notes a thread.
func (x *races) add(m *replay.Machine, t *replay.Thread, unknown bool) *raceThread {
	n := &raceThread{tid: t.TID, as: int32(t.TID), unknown: unknown}
	sp := t.State.R[x86.RSP]
	if r, ok := m.Mem.Find(sp); ok {
		n.low, n.end = r.Start, r.End
		if r.End-r.Start < maxStackSize && r.End > maxStackSize && len(x.threads) == 0 {
			n.low = r.End - maxStackSize
		}
	}
	x.threads[t.TID] = n
	if len(x.handles) < maxHandles {
		x.handles[t.State.FSBase] = t.TID
	}
	x.last = nil
	return n
}

// actor returns the thread that the detector takes one for.
func (x *races) actor(tid int32) int32 {
	if t := x.threads[checkpoint.TID(tid)]; t != nil {
		return t.as
	}
	return tid
}

// thread returns the thread that runs.
func (x *races) thread(v *observe.View) *raceThread {
	tid := v.TID()
	if x.last != nil && x.last.tid == tid {
		return x.last
	}
	t := x.threads[tid]
	if t == nil {
		t = x.add(v.Machine(), &replay.Thread{TID: tid, State: v.CPU().State}, false)
	}
	x.last = t
	return t
}

// redZone of a thread's stack, and what a return leaves, are its own, too.
const belowStack = redZone + 8

// accessed feeds the detector with an access that v is behind.
func (x *races) accessed(v *observe.View, a *observe.Access) {
	p := v.Position()
	if p.Step == 0 && p.Instr > 0 { // the instruction is behind it
		p.Instr--
	}
	x.feed(v, &observe.PastAccess{PC: a.PC, Addr: a.Addr, SP: v.CPU().R[x86.RSP], Instr: p.Instr, Step: p.Step, Size: uint16(a.Size), Store: a.Store})
}

// accessedAll feeds the detector with accesses of one thread.
func (x *races) accessedAll(v *observe.View, list []observe.PastAccess) {
	for i := range list {
		x.present = &list[i]
		x.feed(v, x.present)
	}
	x.present = nil
	if x.d.Several() { // the next access may be another thread's
		x.unwind(x.thread(v), v.CPU().R[x86.RSP])
	}
}

// feed feeds the detector.
func (x *races) feed(v *observe.View, a *observe.PastAccess) {
	if !x.d.Several() {
		return
	}
	flags := x.info(v, a.PC)
	if flags&pcExcluded != 0 {
		return
	}
	t := x.thread(v)
	x.v = v
	if t.unknown {
		t.unknown = false
		x.d.AcquireAll(t.as)
	}
	x.unwind(t, a.SP)
	if a.Addr+belowStack >= a.SP && a.Addr < t.end && a.SP >= t.low && flags&pcLocks == 0 && !x.d.IsShared(a.Addr) {
		return
	}
	x.d.Access(&race.Access{TID: t.as, PC: a.PC, Addr: a.Addr, Size: int(a.Size), Store: a.Store,
		At: checkpoint.Position{Interval: v.Machine().Interval(), Instr: a.Instr, Step: a.Step}}, flags&pcLocks != 0)
}

// unwind forgets what other threads did to frames that the thread has left: others will be there. Returns and pops are accesses.
func (x *races) unwind(t *raceThread, sp uint64) {
	was := t.sp
	if t.sp = sp; sp <= was || was < t.low || sp > t.end || was == 0 {
		return
	}
	for a := was; a < sp; a += shadowStep - a%shadowStep {
		if x.d.IsShared(a) {
			x.d.Clear(a, min(sp, a+shadowStep-a%shadowStep))
		}
	}
}

// shadowStep is how far IsShared looks.
const shadowStep = 512

// copied tells what memcpy and the like, which are in a module that is left out, access for their callers.
func (x *races) copied(v *observe.View, loads, stores bool) {
	if !x.d.Several() {
		return
	}
	x.v = v
	c := v.CPU()
	var b [8]byte
	if v.ReadMemory(c.R[x86.RSP], b[:]) < len(b) {
		return
	}
	pc := binary.LittleEndian.Uint64(b[:]) - 1
	if x.info(v, pc)&pcExcluded != 0 {
		return
	}
	t := x.thread(v)
	n := min(c.R[x86.RDX], maxCopied)
	a := race.Access{TID: t.as, PC: pc, Size: int(n), At: v.Position()}
	sp := c.R[x86.RSP]
	tell := func(addr uint64, store bool) {
		if addr >= sp && addr < t.end && sp >= t.low && !x.d.IsShared(addr) {
			return
		}
		a.Addr, a.Store = addr, store
		x.d.Access(&a, false)
	}
	if loads {
		tell(c.R[x86.RSI], false)
	}
	if stores {
		tell(c.R[x86.RDI], true)
	}
}

// info returns what is known of the instruction at pc.
func (x *races) info(v *observe.View, pc uint64) pcFlags {
	i := &x.pcs[(pc^pc>>13)%pcCache]
	if i.flags != 0 && i.pc == pc {
		return i.flags
	}
	*i = pcInfo{pc, pcKnown}
	if mod := x.r.view.at(x.r, v.Machine()).Module(pc); mod != nil && isSystemModule(mod.Path) {
		i.flags |= pcExcluded
		return i.flags
	}
	var b [15]byte
	if in, err := x86.DecodeInst(b[:v.ReadMemory(pc, b[:])], pc, v.CPU().ID); err == nil && in.Flags&x86.InstMem != 0 {
		if in.Flags&x86.InstLock != 0 || x86.Rows()[in.Row].Mnemonic == "XCHG" {
			i.flags |= pcLocks
		}
	}
	return i.flags
}

// allocators are libraries in the place of the C library's malloc, whose blocks are followed by their names all the same.
var allocators = []string{"libjemalloc", "libtcmalloc", "libmimalloc"}

// isSystemModule reports whether accesses of a module are left out: the C library, its parts, other allocators, the dynamic
// linker and the kernel's vDSO synchronise by means of their own.
func isSystemModule(file string) bool {
	name := path.Base(file)
	if name == "linux-vdso.so.1" || name == "[vdso]" {
		return true
	}
	for _, lib := range allocators {
		if strings.HasPrefix(name, lib) && strings.Contains(name, ".so") {
			return true
		}
	}
	for _, lib := range []string{"ld-linux", "ld-musl", "ld", "libc", "libpthread", "librt", "libdl", "libc.musl"} {
		rest, ok := strings.CutPrefix(name, lib)
		if ok && (strings.HasPrefix(rest, ".so") || strings.HasPrefix(rest, "-")) && strings.Contains(rest, ".so") {
			return true
		}
	}
	return false
}

// applied looks at an event behind which there may be another thread, or other memory.
func (x *races) applied(v *observe.View, e *checkpoint.Event) {
	x.v = v
	for i := range e.Maps {
		switch op := &e.Maps[i]; op.Kind {
		case checkpoint.MapOpMap, checkpoint.MapOpUnmap:
			x.d.Clear(op.Start, op.End)
		case checkpoint.MapOpMove:
			x.d.Clear(op.Start, op.End)
			x.d.Clear(op.New, op.NewEnd)
		default: // Accesses to the same bytes.
		}
	}
	if e.Kind != checkpoint.EventThread || e.Thread != checkpoint.ThreadStart {
		return
	}
	if e.Flags&abi.CLONE_VFORK != 0 {
		n := *x.thread(v)
		n.tid, n.unknown = e.TID, false
		x.threads[e.TID], x.last = &n, nil
		return
	}
	threads := v.Machine().Threads()
	for i := range threads {
		if t := &threads[i]; t.TID == e.TID {
			x.d.Fork(x.actor(int32(v.TID())), int32(t.TID))
			n := x.add(v.Machine(), t, false)
			// The C library hands stacks of threads that have ended out again, without a word.
			sp := t.State.R[x86.RSP]
			if n.low < sp && n.end > sp {
				x.d.Clear(max(n.low, sp-min(sp, maxStackSize)), min(n.end, sp+1<<16))
			}
		}
	}
	x.look(v)
}

// report calls the script with a race.
func (x *races) report(p *race.Race) {
	v := x.v
	if x.present != nil {
		var err error
		if v, err = x.v.At(x.present); err != nil {
			x.v.Stop(err)
			return
		}
	}
	first := &p.First
	l := x.r.locateIn(v, first.PC)
	other := starlarkstruct.FromStringDict(starlark.String("access"), starlark.StringDict{
		"address": starlark.MakeUint64(first.Addr), "size": starlark.MakeInt(first.Size), "store": starlark.Bool(first.Store),
		"position": starlark.String(first.At.String()), "thread": starlark.MakeInt64(int64(first.TID)), "place": frameValue(&l),
	})
	x.r.tell(x.f, v, &moment{kind: "race", at: p.Second.At, other: other,
		access: &observe.Access{PC: p.Second.PC, Addr: p.Second.Addr, Size: p.Second.Size, Store: p.Second.Store}})
}
