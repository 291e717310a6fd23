package debug

import (
	"context"
	"errors"
	"fmt"

	"vplay/checkpoint"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug/api"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The debugger's side of diversions: registers and memory are written, and functions called, in
// a copy of the process. While there is one, g.div is what debuggers look at. How the copy runs
// is in package replay (divert.go there); when it is made and dropped is the server's decision.

// Divert implements api.DivertTarget.
func (g *Cursor) Divert(output func(b []byte)) error {
	g.Undivert()
	if g.final != nil {
		g.div = g.s.Divert(g.final)
	} else {
		g.div = g.cur.Machine().Divert()
	}
	g.div.Output = output
	g.div.Missing = func(a uint64, page []byte) int {
		mod := image.ModuleAt(g.maps(), Memory{g.div.Mem}, a)
		if mod == nil {
			return 0
		}
		return g.session.symbols.Text(mod, Memory{g.div.Mem}, a, page)
	}
	g.divInfo = nil
	return nil
}

// Undivert implements api.DivertTarget.
func (g *Cursor) Undivert() {
	if g.div != nil {
		g.div.Close()
		g.div = nil
	}
}

var errNotDiverted = errors.New("there is no copy of the process to change")

// WriteRegisters implements api.DivertTarget.
func (g *Cursor) WriteRegisters(tid int, r *api.Registers) error {
	if g.div == nil {
		return errNotDiverted
	}
	if !g.div.Switch(checkpoint.TID(tid)) {
		return fmt.Errorf("there is no thread %d here", tid)
	}
	setState(&g.div.CPU.State, r)
	return nil
}

// setState is the inverse of registersOf.
func setState(st *x86.State, r *api.Registers) {
	if r.RIP != st.RIP {
		st.RepIter = 0
	}
	st.R, st.RIP, st.Seg, st.FSBase, st.GSBase = r.GPR, r.RIP, r.Seg, r.FSBase, r.GSBase
	st.SetFlags(r.EFLAGS)
	was := *st
	if r.Missing&api.FeatureSSE == 0 {
		st.MXCSR = r.MXCSR
		for i := range st.V {
			st.V[i][0], st.V[i][1] = r.YMM[i][0], r.YMM[i][1]
		}
	}
	if r.Missing&api.FeatureAVX == 0 {
		for i := range st.V {
			st.V[i][2], st.V[i][3] = r.YMM[i][2], r.YMM[i][3]
		}
	}
	if r.Missing&api.FeatureAVX512 == 0 {
		for i := range r.High {
			st.Wide.High[i] = r.High[i]
		}
		st.Wide.K, st.Wide.More = r.K, r.More
		st.Wide.Look()
	}
	if r.Missing&api.FeatureX87 == 0 {
		setFPU(&st.FPU, r)
	}
	if was.V != st.V || was.Wide != st.Wide || was.MXCSR != st.MXCSR || was.FPU != st.FPU {
		st.NotInUse = 0 // else XSAVEC would leave out what was written
	}
}

// setFPU sets the x87 unit. Of the tag word only empty or not is kept, as the
// CPU does.
func setFPU(f *x86.FPU, r *api.Registers) {
	f.CW, f.FOP, f.FIP, f.FDP = r.FCW, r.FOP, r.FIP, r.FDP
	f.SetStatus(r.FSW)
	f.Tag = 0
	for i := range f.R {
		if r.FTW>>(2*i)&3 != 3 {
			f.Tag |= 1 << i
		}
	}
	for i := range r.ST {
		v := x86.F80{E: uint16(r.ST[i][8]) | uint16(r.ST[i][9])<<8}
		for b := range 8 {
			v.M |= uint64(r.ST[i][b]) << (8 * b)
		}
		f.R[(int(f.Top)+i)&7] = v
	}
}

// WriteMemory implements api.DivertTarget.
func (g *Cursor) WriteMemory(addr uint64, b []byte) error {
	if g.div == nil {
		return errNotDiverted
	}
	return g.div.Write(addr, b)
}

// AllocateMemory implements api.DivertTarget.
func (g *Cursor) AllocateMemory(size uint64, prot int) (uint64, error) {
	if g.div == nil {
		return 0, errNotDiverted
	}
	addr, ok := g.div.Allocate(size, uint8(prot))
	if !ok {
		return 0, fmt.Errorf("there is no room for %d bytes", size)
	}
	return addr, nil
}

// FreeMemory implements api.DivertTarget.
func (g *Cursor) FreeMemory(addr uint64) error {
	if g.div == nil || !g.div.Free(addr) {
		return fmt.Errorf("nothing was allocated at %#x", addr)
	}
	return nil
}

// ResumeDiverted implements api.DivertTarget.
func (g *Cursor) ResumeDiverted(ctx context.Context, r api.Resume, skip bool) (api.Stop, error) {
	if g.div == nil {
		return api.Stop{}, errNotDiverted
	}
	g.armDiversion()
	defer g.div.Mem.SetWatches(nil)
	defer g.div.CPU.SetBreakpoints(nil)
	g.divInfo = nil
	if r.Kind != api.Continue {
		return g.stepDiverted(ctx, r)
	}
	for {
		stop, err := g.div.Run(ctx, skip)
		if err != nil || stop.Reason != replay.StopBreak || g.breakHolds() {
			return g.reportDiverted(stop, err)
		}
		skip = true
	}
}

// armDiversion gives the copy the debugger's breakpoints and watchpoints.
func (g *Cursor) armDiversion() {
	var addrs []uint64
	var watches []mem.Watch
	for k, b := range g.breaks {
		if w, ok := watchKinds[k.kind]; ok {
			watches = append(watches, mem.Watch{Addr: b.Addr, Len: b.Len, Kind: w})
		} else {
			addrs = append(addrs, b.Addr)
		}
	}
	g.div.CPU.SetBreakpoints(addrs)
	g.div.Mem.SetWatches(watches)
}

// breakHolds reports whether a breakpoint at the copy's RIP stops it.
func (g *Cursor) breakHolds() bool {
	for k, b := range g.breaks {
		if _, watch := watchKinds[k.kind]; watch || b.Addr != g.div.CPU.RIP {
			continue
		}
		if b.Test == nil || b.Test(divertedMachine{g}) {
			return true
		}
	}
	return false
}

// divertedMachine gives conditions the registers and memory of the copy.
type divertedMachine struct{ *Cursor }

func (a divertedMachine) GPR(n int) uint64          { return a.div.CPU.R[n] }
func (a divertedMachine) RIP() uint64               { return a.div.CPU.RIP }
func (a divertedMachine) Registers() *api.Registers { return registersOf(&a.div.CPU.State) }

// stepDiverted is a step or range step of the copy.
func (g *Cursor) stepDiverted(ctx context.Context, r api.Resume) (api.Stop, error) {
	for {
		stop, err := g.div.Step(ctx)
		rip := g.div.CPU.RIP
		if err != nil || stop.Reason != replay.StopLimit || r.Kind == api.Step || rip < r.Start || rip >= r.End {
			return g.reportDiverted(stop, err)
		}
		if g.breakHolds() {
			return g.reportDiverted(replay.DiversionStop{Reason: replay.StopBreak}, nil)
		}
	}
}

// reportDiverted puts a stop of the copy in the protocol's words.
func (g *Cursor) reportDiverted(s replay.DiversionStop, err error) (api.Stop, error) {
	out := api.Stop{TID: int(g.div.TID())}
	if err != nil {
		out.Kind, out.Signo = api.StopSignal, 5
		return out, err
	}
	switch s.Reason {
	case replay.StopBreak:
		out.Kind = api.StopBreakpoint
		for k := range g.breaks {
			if k.Addr == g.div.CPU.RIP && k.kind == api.BreakHardware {
				out.Kind = api.StopHWBreakpoint
			}
		}
	case replay.StopWatch:
		out.Kind, out.Addr = watchStop(s.Hits[0])
	case replay.StopSignal:
		out.Kind, out.Signo = api.StopSignal, int(s.Signo)
		g.divInfo = s.Siginfo
	case replay.StopEnd:
		out.Kind, out.Code = api.StopExited, s.Code
	case replay.StopInterrupt:
		out.Kind = api.StopInterrupted
	default:
		out.Kind = api.StopStep
	}
	return out, nil
}

// position is where the recording stands; nowhere before anything was replayed.
func (g *Cursor) position() checkpoint.Position {
	if g.final != nil {
		return nowhere
	}
	return g.cur.Position()
}
