package taint

import (
	"vplay/replay"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// Compilers turn "a && b" round where it costs nothing to look at b first, be it undefined: the jump on b then goes where
// the jump on a goes, too, when a is false. So a jump on a marked condition decides nothing if one of its two
// ways consists of comparisons and another jump, whose condition has no marks and which leads to the
// other way. Registers that are loaded there on the way are marked then, since it is open whether they were loaded.
// memcheck knows the idiom as well (since Valgrind 3.16, guest_generic_bb_to_IR.c in VEX).

// maxIdiom is how many instructions there may be up to the second jump.
const maxIdiom = 4

// ahead executes instructions that the program may never come to. It reads the machine's memory.
type ahead struct {
	cpu *x86.CPU
	m   *replay.Machine
}

// Translate, Read, Write, Probe, Fetch and CodeID implement x86.Bus.
func (a *ahead) Translate(uint64, x86.Access) (*[4096]byte, bool) { return nil, false }

func (a *ahead) Read(at uint64, b []byte) x86.Fault {
	if n, _ := a.m.Mem.Peek(at, b); n < len(b) {
		return x86.Fault{Kind: x86.FaultNotMapped, Addr: at}
	}
	return x86.Fault{}
}

func (a *ahead) Write(at uint64, _ []byte) x86.Fault {
	return x86.Fault{Kind: x86.FaultProtection, Access: x86.Store, Addr: at}
}

func (a *ahead) Fetch(at uint64, b []byte) (int, x86.Fault) {
	n, _ := a.m.Mem.Peek(at, b)
	return n, x86.Fault{}
}

func (a *ahead) Probe(uint64, int, x86.Access) x86.Fault { return x86.Fault{} }
func (a *ahead) CodeID(uint64) uint64                    { return 0 }

// decidesNothing reports whether the conditional jump at which c is leads to the same place whether it is taken or
// not, as far as conditions without marks say.
func (t *Engine) decidesNothing(c *x86.CPU, in *x86.Inst) bool {
	next := c.RIP + uint64(in.Len)
	to := next + in.Imm
	taken := isTaken(in.Opc&15, c.Flags())
	return to != next && (t.leads(c, next, to, taken) || t.leads(c, to, next, !taken))
}

// leads reports whether execution at from comes to a place for sure: over comparisons without marks, and a jump. skipped says
// that the program does not go there.
func (t *Engine) leads(c *x86.CPU, from, to uint64, skipped bool) bool {
	if t.ahead == nil {
		t.ahead = &ahead{}
		t.ahead.cpu = x86.New(t.ahead, c.ID)
	}
	a := t.ahead
	a.m = t.m
	a.cpu.State = c.State
	a.cpu.RIP, a.cpu.RepIter = from, 0
	isFresh := false    // the flags are those of a comparison without marks
	loaded := uint64(0) // registers
	for range maxIdiom {
		var code [15]byte
		n, _ := a.m.Mem.Peek(a.cpu.RIP, code[:])
		in, err := x86.DecodeInst(code[:n], a.cpu.RIP, c.ID)
		if err != nil {
			return false
		}
		k := t.instruction(a.cpu.RIP, &in, in.Base == x86.RBP && dataflow.UsesFrame(a.cpu, &in))
		switch {
		case k.isJump && k.mnemonic[0] == 'J' && k.mnemonic[1] != 'R' && k.mnemonic != "JECXZ":
			if !isFresh || a.cpu.Step() != x86.ExitNone || a.cpu.RIP != to {
				return false
			}
			for r := range uint8(16) {
				if skipped && loaded>>r&1 != 0 {
					t.cur.setGeneral(r, ^uint64(0), ^uint64(0), t.cur.flagTag)
				}
			}
			return true
		case !t.isHarmless(a.cpu, k), a.cpu.Step() != x86.ExitNone:
			return false
		}
		for i := range k.Flows {
			loaded |= k.Flows[i].Dst.Summary() & (1<<sumVector - 1)
		}
		isFresh = isFresh || k.mnemonic == "CMP" || k.mnemonic == "TEST"
	}
	return false
}

// isHarmless reports whether an instruction compares or loads registers, and reads nothing that is marked.
func (t *Engine) isHarmless(c *x86.CPU, k *instruction) bool {
	switch k.mnemonic {
	case "CMP", "TEST", "MOV", "MOVZX", "MOVSX", "MOVSXD", "LEA":
	default:
		return false
	}
	if !k.isPlain || k.Stores {
		return false
	}
	if _, has := t.cur.any(&k.Address); has {
		return false
	}
	for i := range k.Flows {
		f := &k.Flows[i]
		src := f.Src
		src.Remove(dataflow.FlagsOf(dataflow.AllFlags))
		if f.Copies && f.From.Kind == dataflow.InGeneral {
			src.Add(dataflow.BytesOf(f.From.Reg, 0, 8))
		}
		if _, has := t.cur.any(&src); has {
			return false
		}
		for _, l := range f.Loads {
			if t.Mem.Any(t.key(k.Ops[l].At(c, &k.Inst)), int(k.Ops[l].Size)) {
				return false
			}
		}
	}
	return true
}
