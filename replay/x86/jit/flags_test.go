//go:build linux && amd64

package jit

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"syscall"
	"testing"

	"vplay/replay/x86"
)

// dataBus has a page of code, one of data that is in the translation cache, and one that is not: each access
// there goes to the handler, and some stop the processor. A third one is like the first, in another part.
type dataBus struct {
	textBus
	data     [3]*[pageSize]byte
	file     int // that has data[0] and data[2]; -1: none
	c        *x86.CPU
	accesses int
}

// newDataBus returns one, whose page of data that is in the translation cache is in a file, so that it can be mapped, if it isMapped.
func newDataBus(t *testing.T, isMapped bool) *dataBus {
	b := &dataBus{data: [3]*[pageSize]byte{new([pageSize]byte), new([pageSize]byte), new([pageSize]byte)}, file: -1}
	if !isMapped {
		return b
	}
	fd := testFile(t, 3)
	m, err := syscall.Mmap(fd, pageSize, 2*pageSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(m) })
	b.data[0], b.data[2], b.file = (*[pageSize]byte)(m), (*[pageSize]byte)(m[pageSize:]), fd
	return b
}

// Mapping implements x86.MappedBus.
func (b *dataBus) Mapping(a uint64, _ x86.Access) (x86.Mapping, bool) {
	m := x86.Mapping{Addr: a, Offset: pageSize, Pages: 1, Stores: true}
	if a == farAt {
		m.Offset = 2 * pageSize
	}
	return m, a == fastAt || a == farAt
}

// MappedFile implements x86.MappedBus.
func (b *dataBus) MappedFile() (fd int, ok bool) { return b.file, b.file >= 0 }

// hasSame reports whether both have the same data.
func (b *dataBus) hasSame(o *dataBus) bool {
	return *b.data[0] == *o.data[0] && *b.data[1] == *o.data[1] && *b.data[2] == *o.data[2]
}

// FlushesCode says that no store changes code: generated code goes on behind handlers.
func (b *dataBus) FlushesCode() {}

// count counts an access, and has the processor stop behind every third.
func (b *dataBus) count() {
	if b.accesses++; b.accesses%3 == 0 {
		b.c.Attention()
	}
}

const (
	fastAt = 0x20000
	slowAt = 0x21000
	farAt  = inStack &^ (pageSize - 1)
)

func (b *dataBus) page(a uint64) *[pageSize]byte {
	switch a &^ (pageSize - 1) {
	case fastAt:
		return b.data[0]
	case slowAt:
		return b.data[1]
	case farAt:
		return b.data[2]
	}
	return nil
}

func (b *dataBus) Translate(a uint64, k x86.Access) (*[pageSize]byte, bool) {
	if p := b.page(a); p != nil {
		return p, a != slowAt
	}
	return b.textBus.Translate(a, k)
}

func (b *dataBus) Probe(a uint64, n int, k x86.Access) x86.Fault {
	if b.page(a) != nil && b.page(a+uint64(n)-1) != nil {
		return x86.Fault{}
	}
	return b.textBus.Probe(a, n, k)
}

func (b *dataBus) Read(a uint64, p []byte) x86.Fault {
	f := b.Probe(a, len(p), x86.Load)
	b.count()
	for i := range p {
		if f.Kind == x86.FaultNone {
			p[i] = b.page(a + uint64(i))[(a+uint64(i))%pageSize]
		}
	}
	return f
}

func (b *dataBus) Write(a uint64, p []byte) x86.Fault {
	f := b.Probe(a, len(p), x86.Store)
	b.count()
	for i, v := range p {
		if f.Kind == x86.FaultNone {
			b.page(a + uint64(i))[(a+uint64(i))%pageSize] = v
		}
	}
	return f
}

// flagWriter makes programs of instructions that write, read and keep flags, with accesses between them.
type flagWriter struct {
	*rand.Rand
	code []byte
}

// register is any but rsp, rsi and rdi, which are addresses.
func (w *flagWriter) register() byte {
	return []byte{0, 1, 2, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15}[w.IntN(13)]
}

// registers writes an instruction of one of the widths with two registers. op is the opcode of the form of 32 bits.
func (w *flagWriter) registers(r, rm byte, op ...byte) {
	rex := byte(0x40) | r>>3<<2 | rm>>3
	switch w.IntN(4) {
	case 0:
		rex |= 8
	case 1:
		w.code = append(w.code, 0x66)
	case 2:
		if op[0] != 0x0f { // the form of 8 bits
			op = append([]byte{op[0] &^ 1}, op[1:]...)
		}
	}
	w.code = append(append(append(w.code, rex), op...), 0xc0|r&7<<3|rm&7)
}

// instruction writes one.
func (w *flagWriter) instruction() {
	r, rm, n := w.register(), w.register(), byte(w.Uint32())
	group := byte(w.IntN(8))
	base := byte(6 + w.IntN(2)) // rsi, the fast page, or rdi
	wide := func(b ...byte) { w.code = append(append(w.code, 0x48|r>>3<<2), b...) }
	switch w.IntN(24) {
	case 0, 1, 2:
		w.registers(r, rm, group<<3|1|byte(w.IntN(2))<<1) // ADD to CMP
	case 3, 4:
		w.registers(group, rm, 0x81|2) // by an immediate
		if w.code[len(w.code)-2] == 0x82 {
			w.code[len(w.code)-2] = 0x80
		}
		w.code = append(w.code, n)
	case 5:
		w.registers(r, rm, 0x85) // TEST
	case 6:
		w.registers(3, rm, 0xf7) // NEG
	case 7:
		w.registers(byte(w.IntN(2)), rm, 0xff) // INC, DEC
	case 8:
		w.registers([]byte{4, 5, 7}[w.IntN(3)], rm, 0xc1) // SHL, SHR, SAR
		w.code = append(w.code, n&31)
	case 9:
		w.registers([]byte{4, 5, 7, 0}[w.IntN(4)], rm, []byte{0xd1, 0xd3}[w.IntN(2)]) // by 1 and cl, ROL
	case 10:
		w.registers(r, rm, 0x0f, 0x40|n&15) // CMOVcc
	case 11:
		w.code = append(w.code, 0x40|rm>>3, 0x0f, 0x90|n&15, 0xc0|rm&7) // SETcc
	case 12:
		wide(0x89, 0xc0|r&7<<3|rm&7&^4) // MOV to rax, rcx, rdx or rbx
	case 13:
		wide(0x8b, 0x40|r&7<<3|base, n) // MOV from memory
	case 14:
		wide(group<<3|3, 0x40|r&7<<3|base, n) // ADD to CMP with memory
	case 15:
		wide(group<<3|1, 0x40|r&7<<3|base, n) // to memory
	case 16:
		w.code = append(w.code, 0x50|rm&3, 0x58|r&3) // PUSH and POP
	case 17:
		w.code = append(w.code, 0x48, 0x83, 0xc4, n&0x18, 0x50|rm&3, 0x58|r&3) // ADD rsp
	case 18:
		w.code = append(w.code, 0x48, 0x83, 0xec, n&0x18, 0x50|rm&3, 0x58|r&3) // SUB rsp
	case 19:
		w.code = append(w.code, 0x80, 0xc4|group<<3|n&3, n) // ADD to CMP of ah to bh by an immediate
	case 20:
		w.code = append(w.code, 0x0f, 0xb6, 0xc4|n&3|r&3<<3) // MOVZX of ah to bh
	case 21:
		wide(0x8d, 0x40|r&7<<3|base, n) // LEA
	case 22: // ADD rsp; LEA rdx, [rsp+16]; PUSH rdx; POP rsp
		w.code = append(w.code, 0x48, 0x83, 0xc4, n&0x18, 0x48, 0x8d, 0x54, 0x24, 0x10, 0x52, 0x5c)
	case 23:
		w.moveStack()
	}
}

// moveStack writes instructions that have the stack in one of two parts, or the other one.
func (w *flagWriter) moveStack() {
	to := []uint64{fastAt, farAt}[w.IntN(2)] + uint64(1024+8*w.IntN(256))
	load := func(to uint64, b ...byte) { // MOV rcx or r12
		w.code = binary.LittleEndian.AppendUint64(append(w.code, b...), to)
	}
	switch w.IntN(9) {
	case 0, 1:
		load(to, 0x48, 0xb9)
		w.code = append(w.code, [][]byte{{0x48, 0x89, 0xcc}, {0x48, 0x8b, 0xe1}}[w.IntN(2)]...) // MOV rsp, rcx
	case 2:
		load(to, 0x49, 0xbc)
		w.code = append(w.code, [][]byte{{0x4c, 0x89, 0xe4}, {0x49, 0x8b, 0xe4}, {0x49, 0x8d, 0x64, 0x24, 0x08}}[w.IntN(3)]...) // MOV rsp, r12; LEA rsp, [r12+8]
	case 3:
		load(to, 0x48, 0xbd)
		w.code = append(w.code, 0xc9) // LEAVE
	case 4:
		load(to, 0x48, 0xb9)
		w.code = append(w.code, 0x48, 0x87, 0xcc) // XCHG rsp, rcx
	case 5, 6: // MOV rsp, rsi; ADD or SUB rsp, rcx or r12, which lead to the other page at times
		far := uint64(farAt - fastAt)
		isSub, isR12 := w.IntN(2), w.IntN(2)
		if isSub == 1 {
			far = -far
		}
		w.code = append(w.code, 0x48, 0x89, 0xf4)
		load(far*uint64(w.IntN(2)), 0x48|byte(isR12), 0xb9+3*byte(isR12))
		op := [][]byte{{0x01, 0x29}, {0x03, 0x2b}}[w.IntN(2)][isSub]
		modrm := byte(0xc0 | (1+3*byte(isR12))<<3 | 4)
		rex := byte(0x48 | isR12<<2)
		if op&2 != 0 {
			modrm, rex = byte(0xc0|4<<3|(1+3*byte(isR12))), byte(0x48|isR12)
		}
		w.code = append(w.code, rex, op, modrm)
	case 7: // MOV rsp, rsi; SUB rsp, 65536; ADD rsp, 65536
		w.code = append(w.code, 0x48, 0x89, 0xf4, 0x48, 0x81, 0xec, 0, 0, 1, 0, 0x48, 0x81, 0xc4, 0, 0, 1, 0)
	case 8: // AND rsp, -16
		w.code = append(w.code, 0x48, 0x83, 0xe4, 0xf0)
	}
}

// program writes a page of blocks that branch to one another.
func (w *flagWriter) program() {
	var at []int
	var jumps []int // where a displacement of 32 bits stands
	for range 3 + w.IntN(8) {
		at = append(at, len(w.code))
		for range w.IntN(7) {
			w.instruction()
		}
		switch w.IntN(16) {
		case 0, 1:
			w.code = append(w.code, 0xe9, 0, 0, 0, 0)
		case 2:
			w.code = append(w.code, 0xe8, 0, 0, 0, 0)
		case 3, 4, 5: // LEA rcx; JMP rcx, CALL rcx, PUSH rcx and RET
			w.code = append(w.code, 0x48, 0x8d, 0x0d, 0, 0, 0, 0)
			jumps = append(jumps, len(w.code)-4)
			w.code = append(w.code, [][]byte{{0xff, 0xe1}, {0xff, 0xd1}, {0x51, 0xc3}}[w.IntN(3)]...)
			continue
		default:
			w.code = append(w.code, 0x0f, 0x80|byte(w.IntN(16)), 0, 0, 0, 0)
		}
		jumps = append(jumps, len(w.code)-4)
	}
	w.code = append(w.code, 0xe9, 0, 0, 0, 0)
	jumps = append(jumps, len(w.code)-4)
	for _, j := range jumps {
		binary.LittleEndian.PutUint32(w.code[j:], uint32(at[w.IntN(len(at))]-j-4))
	}
}

// TestFlagsAtStops: programs that branch on flags stop behind any number of instructions, and at breakpoints that come and go,
// with the flags, registers and memory that they have instruction by instruction, though generated code saves flags only where somebody looks.
func TestFlagsAtStops(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	n := *programsFlag
	if testing.Short() {
		n = 300
	}
	versions, bad := 0, 0
	for seed := range uint64(n) {
		w := &flagWriter{Rand: rand.New(rand.NewPCG(seed, 8))}
		w.program()
		v, b := flagsAtStops(t, pool, w, seed, seed%2 == 1)
		versions += v
		bad += b
	}
	if versions < n/10 || bad != 0 {
		t.Errorf("%d versions of units for a recipe, %d units that give up flags somebody may see", versions, bad)
	}
	t.Logf("%d programs, %d versions of units", n, versions)
}

var programsFlag = flag.Int("programs", 1500, "programs for TestFlagsAtStops")

// breakpoints sets a few breakpoints now and then, some of which were there before, or takes all away.
func (w *flagWriter) breakpoints(e *Engine, cpus [2]*x86.CPU) {
	var set []uint64
	if w.IntN(2) == 0 && len(e.all) > 0 {
		for range 1 + w.IntN(2) {
			u := e.all[w.IntN(len(e.all))]
			set = append(set, u.pc+uint64(u.at[w.IntN(len(u.at))]))
		}
	}
	var s *x86.Sieve
	if len(set) > 0 && w.IntN(2) == 0 {
		s = &x86.Sieve{PC: set[0], R: cpus[0].R}
		if w.IntN(2) == 0 {
			s.R[w.IntN(16)]++
		}
	}
	for _, c := range cpus {
		c.SetBreakpoints(set)
		c.SkipBreak, c.Sieve = true, s
	}
}

func flagsAtStops(t *testing.T, pool *Pool, w *flagWriter, seed uint64, isMapped bool) (versions, bad int) {
	var cpus [2]*x86.CPU
	var buses [2]*dataBus
	for i := range cpus {
		b := newDataBus(t, isMapped && i == 1)
		copy(b.text[:], w.code)
		c := x86.New(b, host())
		r := rand.New(rand.NewPCG(seed, 9))
		for k := range c.R {
			c.R[k] = r.Uint64() >> r.IntN(64)
		}
		for k := range b.data[0] {
			b.data[0][k], b.data[1][k] = byte(r.Uint32()), byte(r.Uint32())
		}
		c.RIP, c.R[x86.RSI], c.R[x86.RDI], c.R[x86.RSP] = textAt, fastAt+2048, slowAt+2048, fastAt+uint64(1024+r.IntN(4096))
		cpus[i], buses[i], b.c = c, b, c
	}
	cpus[0].SetEngine(x86.StepEngine{})
	e := pool.Engine(cpus[1])
	defer e.Close()
	e.NoGS = e.NoGS || seed%2 == 0
	e.Eager()
	cpus[1].SetEngine(e)
	for limit := uint64(1); limit < 4000; limit = cpus[0].Retired + 1 + uint64(w.IntN(150)) {
		w.breakpoints(e, cpus)
		if w.IntN(8) == 0 {
			cpus[1].FlushTLBPage(fastAt)
		}
		if isMapped && e.checked != nil && w.IntN(2) == 0 { // an instruction that is translated from now on checks its access
			e.checked[textAt+uint64(w.IntN(len(w.code)))] = true
		}
		x, y := cpus[0].Run(limit), cpus[1].Run(limit)
		a, b := cpus[0], cpus[1]
		if x != y || a.RIP != b.RIP || a.R != b.R || a.Flags() != b.Flags() || a.Retired != b.Retired || !buses[0].hasSame(buses[1]) {
			t.Fatalf("program %d: % x\nsteps: exit %d rip %#x behind %d, flags %#x, %x\ngenerated code: exit %d rip %#x behind %d, flags %#x, %x",
				seed, w.code, x, a.RIP, a.Retired, a.Flags(), a.R, y, b.RIP, b.Retired, b.Flags(), b.R)
		}
		if x != x86.ExitLimit && x != x86.ExitAttention && x != x86.ExitBreak {
			break
		}
	}
	if err := linksAreKnown(e); err != nil {
		t.Errorf("program %d: %v", seed, err)
	}
	for _, u := range e.all {
		versions += len(u.versions)
	}
	return versions, int(e.Stats.Bad)
}

// TestHighBytes: what compilers do with ah to bh needs no handler.
func TestHighBytes(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	bus := &textBus{}
	copy(bus.text[:], []byte{
		0xf6, 0xc4, 0x01, // test ah, 1
		0x80, 0xe7, 0x7f, // and bh, 7fh
		0x80, 0xcc, 0x10, // or ah, 10h
		0x0f, 0xb6, 0xce, // movzx ecx, dh
		0x44, 0x0f, 0xb6, 0xe1, // movzx r12d, cl
		0x0f, 0x95, 0xc5, // setne ch
		0xeb, 0xeb,
	})
	c := x86.New(bus, host())
	e := pool.Engine(c)
	defer e.Close()
	e.Threshold, e.Warmup, e.MinRun = 0, 0, 0
	c.SetEngine(e)
	c.RIP, c.R[x86.RAX], c.R[x86.RBX], c.R[x86.RDX] = textAt, 0x1234_5678_9abc_0102, 0xffff, 0xabcd
	if exit := c.Run(7000); exit != x86.ExitLimit || c.R[x86.RAX] != 0x1234_5678_9abc_1102 || c.R[x86.RBX] != 0x7fff || c.R[x86.RCX] != 0x1ab || c.R[x86.R12] != 0xab {
		t.Errorf("exit %d, rax %#x, rbx %#x, rcx %#x, r12 %#x", exit, c.R[x86.RAX], c.R[x86.RBX], c.R[x86.RCX], c.R[x86.R12])
	}
	if e.Stats.Handled != 0 || e.Stats.Units != 1 {
		t.Errorf("%+v", e.Stats)
	}
}

// TestWithoutRORX is TestFlagsAtStops as hosts without BMI2 have it.
func TestWithoutRORX(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func(has func() bool) { hasRORX = has }(hasRORX)
	hasRORX = func() bool { return false }
	for seed := range uint64(200) {
		w := &flagWriter{Rand: rand.New(rand.NewPCG(seed, 7))}
		w.program()
		flagsAtStops(t, pool, w, seed, false)
	}
}
