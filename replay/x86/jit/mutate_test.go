//go:build linux && amd64

package jit

import (
	"flag"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"vplay/replay/x86"
)

var (
	mutationsFlag = flag.Int("mutations", 20000, "changes of code pages for TestMutatedCode")
	mutationSeed  = flag.Uint64("mutationseed", 12, "its seed")
)

// mutableBus is dataBus whose code has another identity whenever it is other code.
type mutableBus struct{ dataBus }

var identitySeed = maphash.MakeSeed()

func (b *mutableBus) CodeID(a uint64) uint64 {
	if a != textAt {
		return 0
	}
	return maphash.Bytes(identitySeed, b.text[:])
}

// change changes the code as a store would: what has it is told.
func (b *mutableBus) change(at int, code []byte) {
	copy(b.text[at:], code)
	if len(code)%2 == 0 {
		b.c.FlushTLBPage(textAt)
	} else {
		b.c.FlushTLBRange(0, textAt+2000*pageSize)
	}
}

// TestMutatedCode changes code between short runs: bytes of programs, instructions of all rows, and bytes of no sense.
// Generated code does what the handlers do instruction by instruction, faults nowhere, and its tables and memory
// stay within their bounds.
func TestMutatedCode(t *testing.T) {
	t.Run("checks", func(t *testing.T) { mutatedCode(t, false, false) })
	t.Run("windows", func(t *testing.T) { mutatedCode(t, true, false) })
	t.Run("windows without GS", func(t *testing.T) { mutatedCode(t, true, true) })
}

func mutatedCode(t *testing.T, isMapped, noGS bool) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(11, *mutationSeed))
	m := &mutation{t: t, rng: rng}
	for i := range m.cpus {
		b := &mutableBus{*newDataBus(t, isMapped && i == 1)}
		m.cpus[i], m.buses[i] = x86.New(b, host()), b
		b.c = m.cpus[i]
	}
	m.cpus[0].SetEngine(x86.StepEngine{})
	e := pool.Engine(m.cpus[1])
	defer e.Close()
	e.NoGS = e.NoGS || noGS
	e.Eager()
	m.cpus[1].SetEngine(e)
	for n := range *mutationsFlag {
		if n%16 == 0 {
			m.program()
		}
		switch m.mutate(); {
		case !isMapped:
		case n%8 == 0:
			m.cpus[1].FlushTLBPage(fastAt)
		case n%8 == 4:
			m.cpus[1].FlushTLBRange(fastAt, fastAt+2000*pageSize)
		}
		m.run(n)
		if len(e.Faults) != 0 {
			t.Fatalf("change %d: generated code faulted: %+v", n, e.Faults)
		}
		if len(e.all) > maxUnits || e.sites.n > maxSites+2*maxUnit || len(e.entries.entries) > maxEntries || len(e.stale) > maxChanged {
			t.Fatalf("change %d: %d units, %d sites, %d entries", n, len(e.all), e.sites.n, len(e.entries.entries))
		}
	}
	if err := linksAreKnown(e); err != nil {
		t.Error(err)
	}
	_, _, bytes, each := pool.Usage()
	if bytes > each {
		t.Errorf("%d bytes of code, where %d can be", bytes, each)
	}
	t.Logf("%d changes, %d runs ended in a fault, %+v, %d bytes of code", *mutationsFlag, m.faults, e.Stats, bytes)
}

// mutation is two processors with the same memory.
type mutation struct {
	t      *testing.T
	rng    *rand.Rand
	cpus   [2]*x86.CPU
	buses  [2]*mutableBus
	faults int
}

// program makes new code.
func (m *mutation) program() {
	w := &flagWriter{Rand: m.rng}
	w.program()
	m.change(0, append(w.code, make([]byte, pageSize-len(w.code))...))
}

func (m *mutation) change(at int, code []byte) {
	for _, b := range m.buses {
		b.change(at, code)
	}
}

// mutate changes a little of it.
func (m *mutation) mutate() {
	r := m.rng
	at := r.IntN(300)
	switch r.IntN(4) {
	case 0:
		m.change(at, []byte{m.buses[0].text[at] ^ 1<<r.IntN(8)})
	case 1:
		w := &flagWriter{Rand: r}
		w.instruction()
		m.change(at, w.code)
	case 2:
		b := make([]byte, 64)
		fillWithRows(r, b)
		m.change(at, b[:16])
	case 3:
		m.change(at, []byte{0xeb, byte(r.Uint32())}) // jmp
	}
}

// run runs both for a while from the same state and compares them.
func (m *mutation) run(n int) {
	r := m.rng
	a, b := m.cpus[0], m.cpus[1]
	var init x86.State
	init = a.State
	init.RIP, init.R[x86.RSI], init.R[x86.RDI], init.R[x86.RSP] = textAt+uint64(r.IntN(2)*r.IntN(200)), fastAt+2048, slowAt+2048, fastAt+uint64(1024+r.IntN(4096))
	init.R[r.IntN(4)] = r.Uint64() >> r.IntN(64)
	init.MXCSR, init.FSBase, init.GSBase, init.RepIter = 0x1f80, fastAt, slowAt, 0
	init.SetFlags(x86.FlagIF | init.ArithFlags())
	a.State, b.State = init, init
	m.buses[1].accesses = m.buses[0].accesses
	limit := a.Retired + 1 + uint64(r.IntN(300))
	for a.Retired < limit {
		x, y := a.Run(limit), b.Run(limit)
		if x != y || a.RIP != b.RIP || a.R != b.R || a.V != b.V || a.Flags() != b.Flags() || a.Retired != b.Retired || a.MXCSR != b.MXCSR ||
			!m.buses[0].hasSame(&m.buses[1].dataBus) || x == x86.ExitFault && a.Fault != b.Fault {
			m.t.Fatalf("change %d, code % x\nsteps: exit %d %+v rip %#x behind %d, flags %#x mxcsr %#x, %x\ngenerated code: exit %d %+v rip %#x behind %d, flags %#x mxcsr %#x, %x",
				n, m.buses[0].text[:320], x, a.Fault, a.RIP, a.Retired, a.Flags(), a.MXCSR, a.R, y, b.Fault, b.RIP, b.Retired, b.Flags(), b.MXCSR, b.R)
		}
		if x != x86.ExitLimit && x != x86.ExitAttention {
			m.faults++
			break
		}
	}
	if m.t.Failed() {
		m.t.FailNow()
	}
}
