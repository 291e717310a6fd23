package differential

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"vplay/replay/x86"
)

// The emulator's side of a comparison: it loads a case into replay/x86, runs it and
// takes the outcome. The case's memory, as the bus that the emulator wants, is here too.
// The CPU's side is native_linux.go.

// Emulator runs cases in replay/x86. It is used by one goroutine at a time.
type Emulator struct {
	cpu *x86.CPU
	bus *sandbox // by itself, so that its pages are aligned
}

// NewEmulator returns an emulator that acts as the CPU id.
func NewEmulator(id *x86.CPUIdentity) *Emulator {
	e := &Emulator{bus: new(sandbox)}
	e.bus.pages, e.bus.file = newPages()
	for i := range e.bus.pages {
		*e.bus.pages[i] = baseImage[i]
	}
	for i := range e.bus.code {
		for j := range e.bus.code[i] {
			e.bus.code[i][j] = 0xcc
		}
	}
	e.cpu = x86.New(e.bus, id)
	return e
}

// ID is the CPU the emulator acts as.
func (e *Emulator) ID() *x86.CPUIdentity { return e.cpu.ID }

// trampoline is what the harness places behind the code, `jmp *disp32(%rip)`.
// It is never executed here, but it is there to be read.
var trampoline = []byte{0xff, 0x25, 0, 0, 0, 0}

// Run executes one case.
func (e *Emulator) Run(k *Case) Outcome {
	var o Outcome
	e.run(k, &o)
	return o
}

// run is Run into an outcome whose memory may be used again.
func (e *Emulator) run(k *Case, o *Outcome) {
	*o = Outcome{Changed: o.Changed[:0]}
	placed := e.prepare(k)
	e.execute(k, o)
	e.finish(k, o, placed)
}

// learn runs a case that the CPU executes. Where the emulator says #UD for want of a CPUID bit alone, it executes the
// instructions of that bit from now on (x86.CPU.LearnHidden).
func (e *Emulator) learn(k *Case) bool {
	var o Outcome
	placed := e.prepare(k)
	e.execute(k, &o)
	learnt := o.Trap.Taken && o.Trap.Vector == trapUD && e.cpu.LearnHidden()
	e.finish(k, &o, placed)
	return learnt
}

// flushEvery is how often a case begins with no page of data where generated code finds it: its accesses fault in the host then.
const flushEvery = 8

// prepare loads memory, code and registers; it returns how many code bytes.
func (e *Emulator) prepare(k *Case) int {
	placed := e.bus.place(k)
	e.reload(k)
	if e.bus.id%flushEvery == 0 {
		e.cpu.FlushTLB()
	}
	e.cpu.FlushTLBPage(CodeBase)
	e.cpu.FlushTLBPage(CodeBase + pageSize)
	return placed
}

// reload loads memory and registers: what is needed to run the case again.
func (e *Emulator) reload(k *Case) {
	for _, p := range k.Patches {
		for n := 0; n < len(p.Bytes); {
			n += copy(e.bus.at(p.Addr+uint64(n)), p.Bytes[n:])
		}
	}
	e.load(&k.In)
	e.cpu.RIP = CodeBase + uint64(k.Offset)
}

// finish takes the outcome and restores the sandbox.
func (e *Emulator) finish(k *Case, o *Outcome, placed int) {
	e.store(&o.Out)
	e.collect(k, o)
	e.bus.erase(k, placed)
}

// execute runs the instructions, and one more when they have not ended at the
// trampoline: it ends in a trap.
func (e *Emulator) execute(k *Case, o *Outcome) {
	c := e.cpu
	end := k.end()
	if !e.interpret(c.Run(uint64(k.Steps)), o) {
		return
	}
	if c.RIP == end && end < CodeBase+CodeSize {
		return
	}
	if !e.interpret(c.Run(c.Retired+1), o) {
		return
	}
	o.Problem = fmt.Sprintf("emulator ran on to %#x", c.RIP)
}

// interpret notes what an exit means; it reports whether the limit was reached.
func (e *Emulator) interpret(x x86.Exit, o *Outcome) bool {
	switch x {
	case x86.ExitLimit, x86.ExitBreak:
		return true
	case x86.ExitFault:
		o.Trap = trapOfFault(e.cpu.Fault)
		if o.Trap.Vector == noVector {
			o.Problem = fmt.Sprintf("emulator fault %+v", e.cpu.Fault)
		}
	case x86.ExitUnsupported:
		b, name := e.cpu.Undefined()
		o.Problem = fmt.Sprintf("unsupported %x %s", b, name)
	default:
		o.Problem = fmt.Sprintf("emulator exit %d", x)
	}
	return false
}

const noVector = 255

// faultVectors are the traps of the emulator's faults.
var faultVectors = map[x86.FaultKind]uint32{
	x86.FaultNotMapped:  trapPF,
	x86.FaultProtection: trapPF,
	x86.FaultNonCanon:   trapGP,
	x86.FaultGP:         trapGP,
	x86.FaultSS:         trapSS,
	x86.FaultDE:         trapDE,
	x86.FaultUD:         trapUD,
	x86.FaultMF:         trapMF,
	x86.FaultXM:         trapXM,
	x86.FaultAC:         trapAC,
	x86.FaultBP:         trapBP,
	x86.FaultDB:         trapDB,
	x86.FaultOF:         trapOF,
}

func trapOfFault(f x86.Fault) Trap {
	v, ok := faultVectors[f.Kind]
	if !ok {
		return Trap{Taken: true, Vector: noVector}
	}
	t := Trap{Taken: true, Vector: v}
	if v == trapPF {
		t.Addr, t.Protection = f.Addr, f.Kind == x86.FaultProtection
		t.Write, t.Fetch = f.Access == x86.Store, f.Access == x86.Exec
	}
	return t
}

func (e *Emulator) load(r *Regs) {
	s := &e.cpu.State
	s.R, s.V, s.Wide = r.R, r.V, r.Wide
	s.FSBase, s.GSBase, s.Seg = r.FSBase, r.GSBase, r.Seg
	s.MXCSR, s.FPU, s.NotInUse = r.MXCSR, r.FPU, 0
	if s.PKRU = 0; e.cpu.ID.XCR0>>9&1 != 0 {
		s.PKRU = x86.DefaultPKRU
	}
	if r.Wide == (x86.Wide{}) {
		s.NotInUse = wideState // as the harness loads it
	}
	s.FPU.SetStatus(r.FPU.Status())
	s.SetFlags(r.Flags&flagsLoadable | defaultFlags)
	s.Retired, s.RepIter = 0, 0
}

func (e *Emulator) store(r *Regs) {
	s := &e.cpu.State
	r.R, r.V, r.RIP, r.Flags = s.R, s.V, s.RIP, s.Flags()
	r.Wide = s.Wide
	r.FSBase, r.GSBase, r.Seg = s.FSBase, s.GSBase, oneNull(s.Seg)
	r.MXCSR, r.FPU = s.MXCSR, s.FPU
	if e.cpu.ID.Vendor == x86.VendorAMD {
		hidePointers(&r.FPU)
	}
	r.FPU.FCS, r.FPU.FDS = 0, 0 // the harness's 64-bit image has no room for them
}

// oneNull makes 0 of the null selectors 1 to 3: so does the CPU, at each return
// from the kernel.
func oneNull(seg [6]uint16) [6]uint16 {
	for i, s := range seg {
		if s <= 3 {
			seg[i] = 0
		}
	}
	return seg
}

// hidePointers does to the x87 pointers what the host's XSAVE does: an AMD CPU
// stores zeros unless an unmasked exception is pending. See RATIONALE.md.
func hidePointers(f *x86.FPU) {
	if !f.Pending() {
		f.FIP, f.FDP, f.FOP = 0, 0, 0
	}
}

// collect finds the changed bytes and restores the sandbox.
func (e *Emulator) collect(k *Case, o *Outcome) {
	var before [pageSize]byte
	for i := range e.bus.pages {
		now := e.bus.pages[i]
		if i == readOnlyIndex {
			continue
		}
		was, patched := &baseImage[i], false
		for _, p := range k.Patches {
			first, last := pageIndex(p.Addr), pageIndex(p.Addr+uint64(len(p.Bytes))-1)
			if first <= i && i <= last {
				if !patched {
					before, patched = baseImage[i], true
				}
				overlay(&before, pageAddress(i), p)
			}
		}
		if patched {
			was = &before
		}
		if bytes.Equal(now[:], was[:]) {
			if patched {
				*now = baseImage[i]
			}
			continue
		}
		o.Changed = appendChanges(o.Changed, now, was, pageAddress(i))
		*now = baseImage[i]
	}
}

// overlay writes the part of p that lies in the page at base.
func overlay(page *[pageSize]byte, base uint64, p Patch) {
	if p.Addr >= base {
		copy(page[p.Addr-base:], p.Bytes)
	} else {
		copy(page[:], p.Bytes[base-p.Addr:])
	}
}

// appendChanges appends the runs of bytes in which now differs from was. Runs
// that touch across pages are one, as in the harness.
func appendChanges(l []Run, now, was *[pageSize]byte, base uint64) []Run {
	for i := 0; i < pageSize; i += 8 {
		if binary.LittleEndian.Uint64(now[i:]) == binary.LittleEndian.Uint64(was[i:]) {
			continue
		}
		for j := i; j < i+8; j++ {
			if now[j] == was[j] {
				continue
			}
			a := base + uint64(j)
			if n := len(l); n == 0 || l[n-1].Addr+uint64(len(l[n-1].Bytes)) != a {
				l = append(l, Run{Addr: a})
			}
			r := &l[len(l)-1]
			r.Bytes = append(r.Bytes, now[j])
		}
	}
	return l
}

// sandbox is the memory of the cases as a Bus.
type sandbox struct {
	pages [sandboxPages]*[pageSize]byte
	file  int // the file that has the pages, so that generated code can map them; -1: none
	code  [CodeSize / pageSize][pageSize]byte
	id    uint64
	// writable says that the case may write the code pages.
	writable bool
}

// newPlainPages returns the pages of a sandbox that are in no file.
func newPlainPages() (pages [sandboxPages]*[pageSize]byte) {
	all := new([sandboxPages][pageSize]byte) // by themselves, so that they are aligned
	for i := range all {
		pages[i] = &all[i]
	}
	return pages
}

// at returns the bytes from a to the end of its page.
func (s *sandbox) at(a uint64) []byte {
	if a >= LastPage {
		return s.pages[lastIndex][a-LastPage:]
	}
	i := pageIndex(a)
	return s.pages[i][a&(pageSize-1):]
}

// place writes the code and the trampoline; it returns how many bytes.
func (s *sandbox) place(k *Case) int {
	s.id++
	s.writable = k.WritableCode
	n := s.codeCopy(int(k.Offset), k.Code)
	return n + s.codeCopy(int(k.Offset)+n, trampoline)
}

func (s *sandbox) codeCopy(at int, b []byte) int {
	n := 0
	for ; n < len(b) && at+n < CodeSize; n++ {
		s.code[(at+n)/pageSize][(at+n)%pageSize] = b[n]
	}
	return n
}

func (s *sandbox) erase(k *Case, n int) {
	if k.WritableCode {
		n = CodeSize - int(k.Offset)
	}
	for i := int(k.Offset); i < int(k.Offset)+n; i++ {
		s.code[i/pageSize][i%pageSize] = 0xcc
	}
}

// page returns the page at a and whether stores and execution are allowed.
func (s *sandbox) page(a uint64) (p *[pageSize]byte, writable, executable bool) {
	if i := pageIndex(a); i >= 0 {
		return s.pages[i], i != readOnlyIndex, false
	}
	if a >= CodeBase && a < CodeBase+CodeSize {
		return &s.code[(a-CodeBase)/pageSize], s.writable, true
	}
	return nil, false, false
}

func (s *sandbox) fault(a uint64, k x86.Access) x86.Fault {
	p, w, x := s.page(a)
	switch {
	case p == nil:
		return x86.Fault{Kind: x86.FaultNotMapped, Access: k, Addr: a}
	case k == x86.Store && !w, k == x86.Exec && !x:
		return x86.Fault{Kind: x86.FaultProtection, Access: k, Addr: a}
	}
	return x86.Fault{}
}

// Translate implements x86.Bus.
func (s *sandbox) Translate(a uint64, k x86.Access) (*[4096]byte, bool) {
	if s.fault(a, k).Kind != x86.FaultNone {
		return nil, false
	}
	p, _, x := s.page(a)
	return p, k != x86.Store || !x
}

// Mapping implements x86.MappedBus: pages of data are in the file.
func (s *sandbox) Mapping(a uint64, k x86.Access) (x86.Mapping, bool) {
	i := pageIndex(a)
	if i < 0 || s.fault(a, k).Kind != x86.FaultNone {
		return x86.Mapping{}, false
	}
	return x86.Mapping{Addr: a, Offset: int64(i) * pageSize, Pages: 1, Stores: i != readOnlyIndex}, true
}

// MappedFile implements x86.MappedBus.
func (s *sandbox) MappedFile() (fd int, ok bool) { return s.file, s.file >= 0 }

// Probe implements x86.Bus.
func (s *sandbox) Probe(a uint64, n int, k x86.Access) x86.Fault {
	for i := uint64(0); i < uint64(n); {
		if f := s.fault(a+i, k); f.Kind != x86.FaultNone {
			return f
		}
		i += pageSize - (a+i)%pageSize
	}
	return x86.Fault{}
}

// Read implements x86.Bus.
func (s *sandbox) Read(a uint64, b []byte) x86.Fault {
	if f := s.Probe(a, len(b), x86.Load); f.Kind != x86.FaultNone {
		return f
	}
	for n := 0; n < len(b); {
		p, _, _ := s.page(a + uint64(n))
		n += copy(b[n:], p[(a+uint64(n))%pageSize:])
	}
	return x86.Fault{}
}

// Write implements x86.Bus.
func (s *sandbox) Write(a uint64, b []byte) x86.Fault {
	if f := s.Probe(a, len(b), x86.Store); f.Kind != x86.FaultNone {
		return f
	}
	for n := 0; n < len(b); {
		p, _, x := s.page(a + uint64(n))
		if x {
			s.id++
		}
		n += copy(p[(a+uint64(n))%pageSize:], b[n:])
	}
	return x86.Fault{}
}

// Fetch implements x86.Bus.
func (s *sandbox) Fetch(a uint64, b []byte) (int, x86.Fault) {
	n := 0
	for n < len(b) {
		if f := s.fault(a+uint64(n), x86.Exec); f.Kind != x86.FaultNone {
			return n, f
		}
		p, _, _ := s.page(a + uint64(n))
		n += copy(b[n:], p[(a+uint64(n))%pageSize:])
	}
	return n, x86.Fault{}
}

// CodeID implements x86.Bus: every case has code of its own.
func (s *sandbox) CodeID(a uint64) uint64 {
	if s.fault(a, x86.Exec).Kind != x86.FaultNone {
		return 0
	}
	return s.id
}
