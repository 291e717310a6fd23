package agent

import (
	"bytes"
	"encoding/binary"
	"testing"

	"vplay/checkpoint/abi"
	"vplay/replay/x86"
)

// The agent's code, executed an instruction at a time, as the supervisor may find it.

// flat is memory that begins at flatBase, of which all can be read, written and executed.
type flat []byte

const flatBase = 0x10000

func (m flat) in(a uint64, n int) bool {
	return a >= flatBase && a-flatBase+uint64(n) <= uint64(len(m))
}

func (m flat) Translate(uint64, x86.Access) (*[4096]byte, bool) { return nil, false }
func (m flat) CodeID(uint64) uint64                             { return 1 }

func (m flat) Probe(a uint64, n int, _ x86.Access) (f x86.Fault) {
	if !m.in(a, n) {
		f = x86.Fault{Kind: x86.FaultNotMapped, Addr: a}
	}
	return f
}

func (m flat) Read(a uint64, b []byte) x86.Fault {
	f := m.Probe(a, len(b), 0)
	if m.in(a, len(b)) {
		copy(b, m[a-flatBase:])
	}
	return f
}

func (m flat) Write(a uint64, b []byte) x86.Fault {
	f := m.Probe(a, len(b), 0)
	if m.in(a, len(b)) {
		copy(m[a-flatBase:], b)
	}
	return f
}

func (m flat) Fetch(a uint64, b []byte) (int, x86.Fault) {
	for n := range b {
		if !m.in(a+uint64(n), 1) {
			return n, m.Probe(a+uint64(n), 1, 0)
		}
		b[n] = m[a+uint64(n)-flatBase]
	}
	return len(b), x86.Fault{}
}

// newAgent returns memory with a supervised agent at its start, and room behind it, where the vDSO's function is at clock.
func newAgent(clock uint64) (m flat, s Shared) {
	m = make(flat, Size+0x1000)
	s = Shared(m[:Size])
	s.Init(flatBase, flatBase)
	s.Supervise(true)
	s.Clock(clock)
	return m, s
}

// TestTells: from the first byte of a time that the agent stores on, whoever finds the thread knows all of it.
func TestTells(t *testing.T) {
	const (
		clock       = flatBase + Size // where the vDSO's function would be
		about       = clock + 0x100
		behind      = clock + 0x200
		to          = clock + 0x300
		stack       = clock + 0xff0
		seconds     = 0x1122334455667788
		nanoseconds = 123456789
	)
	word := binary.LittleEndian.PutUint64
	for nr, want := range map[int64][2]uint64{
		abi.SYS_CLOCK_GETTIME: {seconds, nanoseconds},
		abi.SYS_GETTIMEOFDAY:  {seconds, nanoseconds / 1000},
	} {
		m, s := newAgent(clock)
		s.AddWritable(to, to+timeSize)
		code := append([]byte{0x48, 0xb8}, make([]byte, 8)...) // movabs $seconds,%rax
		word(code[2:], seconds)
		code = append(code, 0x48, 0x89, 0x06, 0x48, 0xc7, 0x46, 0x08) // mov %rax,(%rsi); movq $nanoseconds,8(%rsi)
		code = binary.LittleEndian.AppendUint32(code, nanoseconds)
		copy(m[clock-flatBase:], append(code, 0x31, 0xc0, 0xc3)) // xor %eax,%eax; ret
		word(m[about-flatBase:], behind)
		word(m[about-flatBase+8:], behind)

		c := x86.New(m, nil)
		c.RIP, c.GSBase = flatBase+Places().Entry, flatBase+Block
		c.R[regRAX], c.R[regRCX], c.R[4] = uint64(nr), about, stack
		c.R[argRegs[1]] = to
		if nr == abi.SYS_GETTIMEOFDAY {
			c.R[argRegs[0]], c.R[argRegs[1]] = to, 0
		}
		told, before := make([]byte, timeSize), make([]byte, timeSize)
		word(told, want[0])
		word(told[8:], want[1])
		partly := 0
		for c.RIP != behind {
			if x := c.Step(); x != x86.ExitNone {
				t.Fatalf("call %d: stopped for %v at %#x", nr, x, c.RIP-flatBase)
			}
			now := m[to-flatBase:][:timeSize]
			switch b, addr := s.Time(); {
			case bytes.Equal(now, before), bytes.Equal(now, told) && (s.Phase() == Made || s.Phase() == None):
			case s.Phase() != Tells || addr != to || !bytes.Equal(b, told):
				t.Fatalf("call %d: at %#x %x is stored, in phase %d, for %x at %#x", nr, c.RIP-flatBase, now, s.Phase(), b, addr)
			default:
				partly++
			}
		}
		if c.R[regRAX] != 0 || !bytes.Equal(m[to-flatBase:][:timeSize], told) || partly == 0 {
			t.Errorf("call %d: %x is stored, result %d, found in between %d times", nr, m[to-flatBase:][:timeSize], c.R[regRAX], partly)
		}
	}
}

// TestReadsTSC: RDTSC and RDTSCP in the agent change what the CPU's change. Whoever finds the thread up to where the record is in the ring
// has the registers of before it, and from there on those behind it.
func TestReadsTSC(t *testing.T) {
	const (
		clock  = flatBase + Size // where the vDSO's function would be
		about  = clock + 0x100
		behind = clock + 0x200
		stack  = clock + 0xff0
		began  = 5_000_000_000
		tsc    = 1 << 33
		rate   = 5 << 31 // 2.5
		aux    = 0x1003
		flags  = x86.FlagCF | x86.FlagOF | x86.FlagDF
	)
	word := binary.LittleEndian.PutUint64
	for _, size := range []uint64{2, 3} {
		m, s := newAgent(clock)
		s.TSCIs(tsc, began, rate)
		s.Aux(aux)
		code := []byte{0x48, 0xc7, 0x06, 5, 0, 0, 0, 0x48, 0xc7, 0x46, 8, 10, 0, 0, 0, 0x31, 0xc0, 0xc3} // movq $5,(%rsi); movq $10,8(%rsi); xor %eax,%eax; ret
		copy(m[clock-flatBase:], code)
		word(m[about-flatBase:], behind)
		word(m[about-flatBase+StubReturn:], behind)
		word(m[about-flatBase+StubInsn:], size)

		c := x86.New(m, nil)
		var before [16]uint64
		for i := range c.R {
			c.R[i] = 0x1111_2222_3333_4444 * uint64(i+1)
			before[i] = c.R[i]
		}
		c.R[4], before[4] = stack, stack
		c.SetFlags(flags)
		s.put(OwnRCX, c.R[regRCX])
		s.put(OwnR11, c.R[regR11])
		c.RIP, c.GSBase, c.R[regRCX] = flatBase+Places().Entry, flatBase+Block, about
		const want = tsc + 25 // 10 ns
		noted := 0
		for c.RIP != behind {
			if x := c.Step(); x != x86.ExitNone {
				t.Fatalf("stopped for %v at %#x", x, c.RIP-flatBase)
			}
			if rcx, r11 := s.OwnRegs(); rcx != before[regRCX] || r11 != before[regR11] {
				t.Fatalf("at %#x RCX was %#x, R11 %#x", c.RIP-flatBase, rcx, r11)
			}
			if got, gotAux := s.TSC(); s.Noted() && (s.Insn() != size || got != want || gotAux != aux) {
				t.Fatalf("at %#x: size %d, counter %#x, %#x", c.RIP-flatBase, s.Insn(), got, gotAux)
			} else if s.Noted() {
				noted++
			}
		}
		after := before
		after[regRAX], after[regRDX] = want&0xffffffff, want>>32
		if size == 3 {
			after[regRCX] = aux
		}
		if c.R != after || c.Flags()&flags != flags || noted == 0 {
			t.Errorf("registers %#x, want %#x; flags %#x", c.R, after, c.Flags())
		}
		n := 0
		if _, err := s.Take(bytes.Clone, func(r *Record) {
			n++
			if [16]uint64(r.Regs[:16]) != before || r.Regs[RIP] != behind || r.Insn != size || r.Result != want || r.Aux != aux || len(r.Outs) != 0 {
				t.Errorf("the record is %+v, of %#x", *r, before)
			}
		}); err != nil || n != 1 {
			t.Errorf("%d records, %v", n, err)
		}
	}
}
