package slice

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The shadow: a machine that executes the instructions of a slice alone. At first it has
// nothing but what the slice needs of the recording's start, and noise everywhere else. A branch that is in the slice must go where it went. What
// comes from outside is given to it as it comes. The stack pointer, and RBP where it is the frame
// pointer, are those of the recording, as the slice takes them for known.

// shadow executes beside the machine that replays the recording.
type shadow struct {
	cpu   *x86.CPU
	mem   *shadowMemory
	saved map[checkpoint.TID]x86.State
	tid   checkpoint.TID
	in    map[uint32][]instant               // by interval, in order
	regs  map[checkpoint.TID]dataflow.RegSet // live at the start
	real  *replay.Machine
	rand  *rand.Rand
	prog  *program
	ran   int
	fault string

	pre     before // of the recorded machine
	copyOut *instruction
	mapped  []*checkpoint.MapOp
}

// before is what the recorded machine was before the instruction.
type before struct{ rip, rsp, rbp, rcx, retired uint64 }

// instant is when an instruction of the slice is executed.
type instant struct {
	instr   uint64
	retires bool
}

// shadowMemory is memory in which each byte that nobody wrote is noise.
type shadowMemory struct {
	bytes map[uint64]byte
	rand  *rand.Rand
	code  *mem.Space
	given []givenRange // memory that was mapped meanwhile
}

// givenRange is memory that came from outside, as it was when it came.
type givenRange struct {
	from, to uint64
	at       *mem.Space
}

func (m *shadowMemory) get(a uint64) byte {
	v, ok := m.bytes[a]
	if ok {
		return v
	}
	v = byte(m.rand.Uint32())
	for i := len(m.given) - 1; i >= 0; i-- {
		if g := &m.given[i]; a >= g.from && a < g.to {
			var b [1]byte
			g.at.Peek(a, b[:])
			v = b[0]
			break
		}
	}
	m.bytes[a] = v
	return v
}

func (m *shadowMemory) set(a uint64, b []byte) {
	for i, v := range b {
		m.bytes[a+uint64(i)] = v
	}
}

func (m *shadowMemory) word(a uint64) (v uint64) {
	for i := range uint64(8) {
		v |= uint64(m.get(a+i)) << (8 * i)
	}
	return v
}

func (m *shadowMemory) setWord(a, v uint64) { m.set(a, binary.LittleEndian.AppendUint64(nil, v)) }

// Translate, Read, Write, Probe, Fetch and CodeID implement x86.Bus.
func (m *shadowMemory) Translate(uint64, x86.Access) (*[4096]byte, bool) { return nil, false }

func (m *shadowMemory) Read(a uint64, b []byte) x86.Fault {
	for i := range b {
		b[i] = m.get(a + uint64(i))
	}
	return x86.Fault{}
}

func (m *shadowMemory) Write(a uint64, b []byte) x86.Fault {
	m.set(a, b)
	return x86.Fault{}
}

func (m *shadowMemory) Probe(uint64, int, x86.Access) x86.Fault { return x86.Fault{} }

func (m *shadowMemory) Fetch(a uint64, b []byte) (int, x86.Fault) {
	n, _ := m.code.Peek(a, b)
	return n, x86.Fault{}
}

func (m *shadowMemory) CodeID(uint64) uint64 { return 0 }

// noise fills a thread's registers with what is surely wrong, but addresses that can be.
func (s *shadow) noise(st *x86.State) {
	for i := range st.R {
		st.R[i] = s.rand.Uint64() >> 18
	}
	for i := range st.V {
		for j := range st.V[i] {
			st.V[i][j] = s.rand.Uint64()
		}
	}
	st.FSBase, st.GSBase = s.rand.Uint64()>>18, s.rand.Uint64()>>18
	st.SetFlags(s.rand.Uint64()&0x8d5 | 2 | x86.FlagIF)
}

// give copies the parts of set from one state to another.
func give(to, from *x86.State, set dataflow.RegSet) {
	bytesAt := func(w uint64) (mask uint64) {
		for i := range 8 {
			if w>>i&1 != 0 {
				mask |= 0xff << (8 * i)
			}
		}
		return mask
	}
	for r := range 16 {
		mask := bytesAt(set[r/8] >> (r % 8 * 8))
		to.R[r] = to.R[r]&^mask | from.R[r]&mask
	}
	for v := range 16 {
		lanes := set[dataflow.VecWord+v/8] >> (v % 8 * 8)
		for i := range 4 {
			if lanes>>i&1 != 0 {
				to.V[v][i] = from.V[v][i]
			}
		}
	}
	misc := set[dataflow.MiscWord]
	var flags uint64
	for i, f := range dataflow.FlagPlaces {
		if misc>>i&1 != 0 {
			flags |= f
		}
	}
	to.SetFlags(to.Flags()&^flags | from.Flags()&flags)
	for _, p := range []struct {
		bit int
		do  func()
	}{
		{dataflow.PartX87, func() { to.FPU = from.FPU }},
		{dataflow.PartControl, func() { to.MXCSR = from.MXCSR }},
		{dataflow.PartSticky, func() { to.MXCSR = from.MXCSR }},
		{dataflow.PartFSBase, func() { to.FSBase = from.FSBase }},
		{dataflow.PartGSBase, func() { to.GSBase = from.GSBase }},
		{dataflow.PartSelect, func() { to.Seg = from.Seg }},
	} {
		if misc>>p.bit&1 != 0 {
			p.do()
		}
	}
}

// state returns the registers of a thread.
func (s *shadow) state(tid checkpoint.TID) *x86.State {
	if tid != s.tid {
		s.saved[s.tid] = s.cpu.State
		st, ok := s.saved[tid]
		if !ok {
			s.noise(&st)
			st.MXCSR = 0x1f80
			for _, t := range s.real.Threads() {
				if t.TID == tid {
					give(&st, &t.State, s.regs[tid])
				}
			}
		}
		s.cpu.State, s.tid = st, tid
	}
	return &s.cpu.State
}

// settle does what could not be done before the recorded machine had gone on.
func (s *shadow) settle() {
	if k := s.copyOut; k != nil { // RDTSC and the like: their results are from outside
		give(&s.cpu.State, &s.real.CPU.State, k.Flows[0].Dst)
		s.copyOut = nil
	}
	for _, op := range s.mapped {
		k := s.real.Mem.Snapshot()
		s.mem.given = append(s.mem.given, givenRange{op.Start, op.End, k.Open()})
		k.Release()
		for a := range s.mem.bytes {
			if a >= op.Start && a < op.End {
				delete(s.mem.bytes, a)
			}
		}
	}
	s.mapped = nil
}

// instruction is called before each instruction of the recorded machine.
func (s *shadow) instruction(c *x86.CPU, _ *x86.Inst, _ *uint32) {
	if s.copyOut != nil || s.mapped != nil {
		s.settle()
	}
	s.pre = before{c.RIP, c.R[x86.RSP], c.R[x86.RBP], c.R[x86.RCX], c.Retired}
}

// isIn reports whether the instruction that was just executed is in the slice.
func (s *shadow) isIn(retires bool) bool {
	id := s.real.Interval()
	l := s.in[id]
	for len(l) > 0 && l[0].instr < s.pre.retired {
		l = l[1:]
	}
	s.in[id] = l
	for _, i := range l {
		if i.instr != s.pre.retired {
			break
		}
		if i.retires == retires {
			return true
		}
	}
	return false
}

// executed is called behind it.
func (s *shadow) executed(c *x86.CPU, in *x86.Inst, e x86.Exit) {
	if l := s.in[s.real.Interval()]; len(l) == 0 || l[0].instr > s.pre.retired {
		return
	}
	finished := c.RepIter == 0
	done := e == x86.ExitNone || e == x86.ExitSyscall || e == x86.ExitRDTSC || e == x86.ExitRDTSCP || e == x86.ExitCPUID || e == x86.ExitRandom || !finished
	if !done || !s.isIn(finished) || s.fault != "" {
		return
	}
	s.ran++
	if *checkTrace {
		row := &x86.Rows()[in.Row]
		fmt.Printf("%d %#x %s %v rax=%#x r9=%#x\n", s.pre.retired, s.pre.rip, row.Mnemonic, row.Operands, c.R[0], c.R[9])
	}
	frame := in.Base == x86.RBP && in.Flags&x86.InstMem != 0 && s.pre.rbp-s.pre.rsp < dataflow.MaxFrame
	k, _ := s.prog.instruction(s.pre.rip, in, frame)
	st := s.state(s.real.TID())
	rbp := st.R[x86.RBP]
	st.RIP, st.R[x86.RSP], st.RepIter = s.pre.rip, s.pre.rsp, 0
	if frame {
		st.R[x86.RBP] = s.pre.rbp
	}
	n := uint64(1)
	if k.Repeats && in.Flags&(x86.InstRep|x86.InstRepne) != 0 {
		n = max(s.pre.rcx-c.R[x86.RCX], 1)
	}
	if x86.Rows()[in.Row].Mnemonic == "CALL" { // where to is not in the slice
		s.mem.setWord(s.pre.rsp-8, s.pre.rip+uint64(in.Len))
		n = 0
	}
	for range n {
		switch e := s.cpu.Step(); e {
		case x86.ExitNone, x86.ExitSyscall:
		case x86.ExitRDTSC, x86.ExitRDTSCP, x86.ExitCPUID, x86.ExitRandom:
			s.copyOut = k
		default:
			s.fault = s.real.Position().String() + ": " + x86.Rows()[in.Row].Mnemonic + " does not run"
			return
		}
	}
	if k.Transfer == x86.Branch && e == x86.ExitNone && s.cpu.RIP != c.RIP {
		s.fault = fmt.Sprintf("%s: %s at %#x goes to %#x, not to %#x", s.real.Position(), x86.Rows()[in.Row].Mnemonic, s.pre.rip, s.cpu.RIP, c.RIP)
		return
	}
	if writesRBP := k.Flows != nil && dataflow.BytesOf(x86.RBP, 0, 8).And(k.Flows[0].Dst) != (dataflow.RegSet{}); frame && !writesRBP {
		st.R[x86.RBP] = rbp
	}
}

// event gives the shadow what comes from outside.
func (s *shadow) event(m *replay.Machine, e *checkpoint.Event) {
	if e.Kind == checkpoint.EventInstr {
		return // what it brings is known when it is over
	}
	s.settle()
	st := s.state(m.TID())
	for i := range e.Maps {
		if op := &e.Maps[i]; op.Kind == checkpoint.MapOpMap || op.Kind == checkpoint.MapOpDrop {
			s.mapped = append(s.mapped, op)
		} else if op.Kind == checkpoint.MapOpMove {
			if end := op.New + op.End - op.Start; end < op.NewEnd {
				s.mapped = append(s.mapped, &checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: end, End: op.NewEnd})
			}
			for a := range min(op.End-op.Start, op.NewEnd-op.New) {
				s.mem.bytes[op.New+a] = s.mem.get(op.Start + a)
			}
		}
	}
	for _, w := range e.Writes {
		s.mem.set(w.Addr, w.Data)
	}
	switch e.Kind {
	case checkpoint.EventExit:
		if uc := m.CPU.R[x86.RSP]; e.Regs != nil && e.NR == abi.SYS_RT_SIGRETURN {
			for i, r := range dataflow.FrameRegs {
				st.R[r] = s.mem.word(uc + dataflow.FrameContext + 8*uint64(i))
			}
			st.SetFlags(s.mem.word(uc + dataflow.FrameFlags))
			return
		}
		st.R[x86.RAX] = uint64(e.Result)
		if e.Restart {
			st.R[x86.RAX] = uint64(e.RestartNR)
		}
		if e.Regs != nil {
			st.R[x86.RAX], st.FSBase, st.GSBase = e.Regs.R[x86.RAX], e.Regs.FSBase, e.Regs.GSBase
		}
	case checkpoint.EventSignal:
		if e.Regs == nil {
			return
		}
		uc := e.Regs.R[x86.RDX]
		for i, r := range dataflow.FrameRegs {
			s.mem.setWord(uc+dataflow.FrameContext+8*uint64(i), st.R[r])
		}
		s.mem.setWord(uc+dataflow.FrameFlags, st.Flags())
		for _, r := range []int{x86.RDI, x86.RSI, x86.RDX, x86.RAX} {
			st.R[r] = e.Regs.R[r]
		}
		st.SetFlags(e.Regs.RFLAGS)
	case checkpoint.EventThread:
		if e.Thread == checkpoint.ThreadStart {
			child := *st
			child.R[x86.RAX] = 0
			if e.Flags&abi.CLONE_SETTLS != 0 {
				child.FSBase = st.R[x86.R8]
			}
			s.saved[e.TID] = child
		}
	}
}
