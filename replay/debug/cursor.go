package debug

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sort"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug/api"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Cursor lets a protocol server look at and move about in a recording. It
// starts at the recording's final image, with nothing replayed; the first
// movement makes the timeline find that moment. It is used by one goroutine.
type Cursor struct {
	session *Session
	s       *replay.Session
	image   int              // index of the present one
	t       *replay.Timeline // of the present image
	cur     *replay.Cursor   // on it

	final *replay.FinalImage // the state shown while nothing was replayed; else nil
	stop  api.Stop
	files *files

	// reported is where a pending signal, or the crash, was reported last: the next
	// resume from there goes past it.
	reported checkpoint.Position

	breaks map[bpKey]api.Breakpoint

	goal           *where              // where the next resume goes, or nil
	moved          bool                // by a seek since the last resume
	known          *loader.Resolver    // see names
	functions      map[uint64]function // by the addresses of breakpoints
	checkpoints    []remembered
	lastCheckpoint int    // the number of the newest
	script         []byte // what a client has sent of one

	div     *replay.Diversion // what debuggers look at while they change things; else nil
	divInfo []byte            // siginfo_t of the signal that the diversion stopped with
}

type bpKey struct {
	kind api.BreakpointKind
	Addr uint64
	len  uint64
}

// NewCursor returns a cursor at the end of the recording. Close gives it back. The
// error is of a recording without a final image whose end does not replay.
func (d *Session) NewCursor() (*Cursor, error) {
	g := &Cursor{session: d, s: d.s, image: d.last(), reported: nowhere, breaks: map[bpKey]api.Breakpoint{}}
	var err error
	if g.t, err = d.enter(g.image); err != nil {
		return nil, err
	}
	if g.cur, err = g.t.NewCursor(); err != nil {
		d.leave(g.image)
		return nil, err
	}
	g.files = newFiles(g)
	final, err := d.s.FinalOf(d.process.PID)
	if err == nil {
		g.final = final
	} else if _, err := g.cur.ToEnd(context.Background()); err != nil {
		g.Close()
		return nil, err
	}
	g.stop = g.endStop()
	return g, nil
}

// Session returns what the cursor is of.
func (g *Cursor) Session() *Session { return g.session }

// Close gives back what the cursor holds.
func (g *Cursor) Close() {
	g.Undivert()
	g.dropFinal()
	g.cur.Close()
	g.session.leave(g.image)
}

// dropFinal gives the final image back, if the cursor is on it.
func (g *Cursor) dropFinal() {
	if g.final != nil {
		g.final.Mem.Close()
		g.final = nil
	}
}

// endStop is the stop at the end of the recording.
func (g *Cursor) endStop() api.Stop {
	if !g.isLastImage() {
		return api.Stop{Kind: api.StopStep, TID: g.tid()}
	}
	tid := g.tid()
	if end := g.session.ending; end.Kind == checkpoint.EndCrash {
		return api.Stop{Kind: api.StopSignal, Signo: int(end.Signo), TID: tid}
	}
	return api.Stop{Kind: api.StopSignal, Signo: 5, TID: tid, Note: "the recording ends here\n"}
}

// mem returns the memory at the present position.
func (g *Cursor) mem() *mem.Space {
	if g.div != nil {
		return g.div.Mem
	}
	if g.final != nil {
		return g.final.Mem
	}
	return g.cur.Machine().Mem
}

// state returns the registers at the present position.
func (g *Cursor) state() *x86.State {
	if g.div != nil {
		return &g.div.CPU.State
	}
	if g.final != nil {
		return &g.final.Current().State
	}
	return &g.cur.Machine().CPU.State
}

func (g *Cursor) tid() int {
	if g.final != nil {
		return int(g.final.Current().TID)
	}
	return int(g.cur.Machine().TID())
}

// pid returns the number of the process.
func (g *Cursor) pid() int { return int(g.t.PID()) }

// threads returns the threads of the process at the present position, by number. That
// which runs is among them, even when it has ended: it is where the process stands.
func (g *Cursor) threads() []replay.Thread {
	if g.final != nil {
		return g.final.Threads
	}
	m := g.cur.Machine()
	if list := m.Threads(); len(list) > 0 {
		return list
	}
	return []replay.Thread{{TID: m.TID(), State: m.CPU.State}}
}

// maps returns the memory map at the present position.
func (g *Cursor) maps() []checkpoint.Mapping { return Regions(g.s.Rec, g.mem()) }

// Regions returns the map of an address space in the recording's form.
func Regions(rec *checkpoint.Recording, space *mem.Space) []checkpoint.Mapping {
	rs := space.Regions()
	out := make([]checkpoint.Mapping, len(rs))
	for i, r := range rs {
		m := checkpoint.Mapping{Start: r.Start, End: r.End, Prot: r.Prot, Object: r.Object, Offset: r.Offset, Name: r.Name}
		if r.Shared {
			m.Flags |= checkpoint.MapShared
		}
		if r.GrowsDown {
			m.Flags |= checkpoint.MapGrowsDown
		}
		if m.Name == "" && r.Object != 0 {
			if o, ok := rec.Object(r.Object); ok {
				m.Name = o.Path
			}
		}
		out[i] = m
	}
	return out
}

// Memory reads the memory at the present position for the loader.
type Memory struct{ *mem.Space }

func (m Memory) ReadMemory(a uint64, b []byte) int {
	n, _ := m.Peek(a, b)
	return n
}

// ReadFile implements loader.FileReader.
func (m Memory) ReadFile(object uint32, off uint64, b []byte) int {
	return m.PeekObject(object, off, b)
}

// Word reads 8 bytes.
func (m Memory) Word(addr uint64) (uint64, bool) {
	var b [8]byte
	n := m.ReadMemory(addr, b[:])
	return binary.LittleEndian.Uint64(b[:]), n == len(b)
}

// Process implements api.Target.
func (g *Cursor) Process() api.Process {
	m := g.s.Rec.Manifest()
	f := api.FeatureX87 | api.FeatureSSE | api.FeatureOrigRAX | api.FeatureFSGS
	if m.CPU.XCR0&4 != 0 {
		f |= api.FeatureAVX
	}
	if m.CPU.XCR0&0xe0 == 0xe0 {
		f |= api.FeatureAVX512
	}
	p := g.program()
	return api.Process{PID: g.pid(), ExecFile: p.path, Auxv: debuggerAuxv(p.auxv, g.maps()), Attached: true, Features: f}
}

// Threads implements api.Target.
func (g *Cursor) Threads() []api.Thread {
	var out []api.Thread
	for _, t := range g.threads() {
		name := t.Name
		if name == "" {
			name = filepath.Base(g.program().path)
		}
		out = append(out, api.Thread{PID: g.pid(), TID: int(t.TID), Name: name})
	}
	return out
}

// Stop implements api.Target.
func (g *Cursor) Stop() api.Stop { return g.stop }

// Registers implements api.Target.
func (g *Cursor) Registers(tid int) (*api.Registers, error) {
	st, err := g.threadState(tid)
	if err != nil {
		return nil, err
	}
	return registersOf(st), nil
}

// threadState returns the registers of a thread. The error says that it is not there.
func (g *Cursor) threadState(tid int) (*x86.State, error) {
	if g.div != nil {
		st, ok := g.div.State(checkpoint.TID(tid))
		if !ok {
			return nil, fmt.Errorf("there is no thread %d here", tid)
		}
		return &st, nil
	}
	if tid == g.tid() {
		return g.state(), nil
	}
	t, ok := g.thread(tid)
	if !ok {
		return nil, fmt.Errorf("there is no thread %d here", tid)
	}
	return &t.State, nil
}

// registersOf puts a thread's state in the protocol's form.
func registersOf(st *x86.State) *api.Registers {
	r := &api.Registers{
		GPR: st.R, RIP: st.RIP, EFLAGS: st.Flags(), Seg: st.Seg, FSBase: st.FSBase, GSBase: st.GSBase,
		OrigRAX: ^uint64(0), FCW: st.FPU.CW, FSW: st.FPU.Status(), FTW: st.FPU.FullTag(), FOP: st.FPU.FOP,
		FIP: st.FPU.FIP, FDP: st.FPU.FDP, MXCSR: st.MXCSR,
	}
	for i := range r.ST {
		f := st.FPU.R[(int(st.FPU.Top)+i)&7]
		for b := range 8 {
			r.ST[i][b] = byte(f.M >> (8 * b))
		}
		r.ST[i][8], r.ST[i][9] = byte(f.E), byte(f.E>>8)
	}
	for i := range r.YMM {
		r.YMM[i], r.High[i] = st.V[i], st.Wide.High[i]
	}
	r.K, r.More = st.Wide.K, st.Wide.More
	return r
}

// ReadMemory implements api.Target: the readable prefix, and why it ends.
func (g *Cursor) ReadMemory(addr uint64, b []byte) (int, error) {
	n, f := g.mem().Peek(addr, b)
	if n == len(b) {
		return n, nil
	}
	return n, errors.New(g.why(f))
}

// Siginfo implements api.Target.
func (g *Cursor) Siginfo(tid int) ([]byte, error) {
	if g.div != nil && g.divInfo != nil && tid == int(g.div.TID()) {
		return g.divInfo, nil
	}
	var info []byte
	if g.final != nil {
		info = g.final.Siginfo
	} else if e := g.cur.Machine().Pending(); e != nil {
		info = e.Siginfo
	}
	if len(info) == 0 || tid != g.tid() {
		return nil, fmt.Errorf("no signal is pending for thread %d here", tid)
	}
	return info, nil
}

// Libraries implements api.Target.
func (g *Cursor) Libraries() []api.Library {
	var out []api.Library
	for _, l := range image.LinkMap(g.maps(), Memory{g.mem()}) {
		out = append(out, api.Library{Name: l.Name, LinkMap: l.Addr, Base: l.Base, Dynamic: l.Dynamic, Main: l.Main})
	}
	return out
}

// OpenFile and Readlink implement api.Target.
func (g *Cursor) OpenFile(path string) (api.File, error) { return g.files.open(path) }

// Readlink implements api.Target.
func (g *Cursor) Readlink(path string) (string, error) { return g.files.readlink(path) }

// Detached implements api.Target: the position stays.
func (g *Cursor) Detached() {
	g.Undivert()
	clear(g.breaks)
	g.goal = nil
	g.arm(nil)
}

// SetBreakpoint implements api.Target.
func (g *Cursor) SetBreakpoint(b api.Breakpoint) error {
	g.breaks[bpKey{b.Kind, b.Addr, b.Len}] = b
	return nil
}

// ClearBreakpoint implements api.Target.
func (g *Cursor) ClearBreakpoint(b api.Breakpoint) error {
	delete(g.breaks, bpKey{b.Kind, b.Addr, b.Len})
	return nil
}

// watchKinds maps the protocol's kinds to the engine's.
var watchKinds = map[api.BreakpointKind]mem.WatchKind{
	api.WatchWrite: mem.WatchWrite, api.WatchRead: mem.WatchRead, api.WatchAccess: mem.WatchAccess,
}

// arm gives the timeline the breakpoints, watches, and what else stops it.
func (g *Cursor) arm(r *api.Resume) {
	var addrs []uint64
	var watches []mem.Watch
	conds := map[uint64][]api.Breakpoint{}
	for k, b := range g.breaks {
		if w, ok := watchKinds[k.kind]; ok {
			watches = append(watches, mem.Watch{Addr: b.Addr, Len: b.Len, Kind: w})
			continue
		}
		addrs = append(addrs, b.Addr)
		conds[b.Addr] = append(conds[b.Addr], b)
	}
	addrs = g.withoutResolvers(addrs)
	only := checkpoint.TID(0)
	if r != nil && r.Alone {
		only = checkpoint.TID(r.TID)
	}
	g.cur.SetBreakpoints(addrs, func(m *replay.Machine) bool {
		return (only == 0 || m.TID() == only) && conditionsHold(conds[m.CPU.RIP], m)
	})
	g.cur.SetConditions(expressions(conds))
	g.cur.SetWatches(watches)
	if r == nil {
		return
	}
	pass := r.PassSignals
	g.cur.SetSignals(func(signo int32) bool { return !passes(pass, signo) })
	g.cur.SetSyscalls(nil)
	if r.CatchAll || len(r.CatchSyscalls) > 0 {
		list, all := r.CatchSyscalls, r.CatchAll
		g.cur.SetSyscalls(func(nr int64) bool {
			i := sort.SearchInts(list, int(nr))
			return all || i < len(list) && list[i] == int(nr)
		})
	}
}

// expressions returns the agent expressions of breakpoints, by address, where all there have some.
func expressions(conds map[uint64][]api.Breakpoint) *x86.Conditions {
	s := &x86.Conditions{At: map[uint64][][]byte{}}
	for a, all := range conds {
		if slices.ContainsFunc(all, func(b api.Breakpoint) bool { return b.Test == nil || len(b.Conditions) == 0 }) {
			continue
		}
		for _, b := range all {
			s.At[a] = append(s.At[a], b.Conditions...)
		}
	}
	return s
}

// conditionsHold tests the conditions of the breakpoints at one address: it stops when
// any of them has none, or is true.
func conditionsHold(all []api.Breakpoint, m *replay.Machine) bool {
	for i := range all {
		b := &all[i]
		if b.Test == nil || b.Test(machineAt{m}) {
			return true
		}
	}
	return false
}

// machineAt gives conditions the registers and memory of the machine that
// stands at the breakpoint, which in a search need not be the cursor's.
type machineAt struct{ m *replay.Machine }

func (a machineAt) GPR(n int) uint64          { return a.m.CPU.R[n] }
func (a machineAt) RIP() uint64               { return a.m.CPU.RIP }
func (a machineAt) Registers() *api.Registers { return registersOf(&a.m.CPU.State) }

func (a machineAt) ReadMemory(addr uint64, b []byte) (int, error) {
	n, f := a.m.Mem.Peek(addr, b)
	if n < len(b) {
		return n, errors.New(why(f))
	}
	return n, nil
}

// Region implements api.RegionTarget.
func (g *Cursor) Region(addr uint64) (api.Region, error) {
	hole := api.Region{}
	rs := g.mem().Regions()
	for _, r := range rs {
		if addr < r.Start {
			hole.Size = r.Start - hole.Start
			return hole, nil
		}
		if addr < r.End {
			return api.Region{
				Start: r.Start, Size: r.End - r.Start, Mapped: true, Name: r.Name,
				Read: r.Prot&mem.ProtRead != 0, Write: r.Prot&mem.ProtWrite != 0, Exec: r.Prot&mem.ProtExec != 0,
			}, nil
		}
		hole.Start = r.End
	}
	hole.Size = -hole.Start
	return hole, nil
}
