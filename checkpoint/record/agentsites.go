//go:build linux && amd64

package record

import (
	"bytes"
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/record/agent"
)

// The program's SYSCALL instructions and how they lead to the agent. Each that the program has
// used has a stub, within reach of a jump. The jump is written over five bytes of the
// program's code, and taken out again wherever the recorder looks at memory as a whole, so that a
// recording has the program's own code.

// site is a SYSCALL instruction of the program, or another that is written over.
type site struct {
	addr    uint64    // of the instruction
	size    uint64    // of RDTSC or RDTSCP that has a stub
	stub    uint64    // where its stub is
	entry   uint64    // in the stub: up to here none of the program's registers is changed
	about   uint64    // in the stub: from here on RCX is
	resumes uint64    // in the stub: the instruction behind SYSCALL, 0 where that is executed in its place
	next    uint64    // the size of that instruction
	jump    abi.Range // that is written over, of length 0 where none can be
	own     []byte    // what the program has there, jumpSize bytes at least
	moved   []byte    // of it, what the stub executes before the call
	to      []byte    // the jump
	via     abi.Range // INT3 instructions behind a function, to which a short jump leads and where the jump to the stub is; or of length 0
	kind    siteKind  // SYSCALL, or what HLT is written over
	mode    siteMode  // what is written there
	hasSlot bool
	slot    int // of the jump, in what the agent takes out when the recorder is gone
}

// siteMode is what is written at a site.
type siteMode uint8

const (
	siteOwn   siteMode = iota // what the program has there
	siteHalts                 // HLT in the place of the instruction's first byte
	siteLeads                 // a jump to the stub
)

// patchedCode is what is written over in the program's code: jumps to the agent, and HLT.
type patchedCode struct {
	sites  map[uint64]*site  // by the address of the instruction
	inJump map[uint64]*site  // by each byte that is written over, and by where short jumps lead
	pages  map[uint64]uint64 // that this alone has made private, and the hash of what they hold
	clean  bool              // no jump is written
	halts  bool              // HLT may be written, perhaps without any jump
}

func newPatchedCode() patchedCode {
	return patchedCode{sites: map[uint64]*site{}, inJump: map[uint64]*site{}, pages: map[uint64]uint64{}, clean: true}
}

// add adds a site.
func (c *patchedCode) add(s *site) {
	c.sites[s.addr] = s
	for i := range s.jump.Len {
		c.inJump[s.jump.Addr+i] = s
	}
	if s.via.Len != 0 {
		c.inJump[s.via.Addr] = s
	}
}

// remove removes a site, at which the program's own code is.
func (c *patchedCode) remove(s *site) {
	delete(c.sites, s.addr)
	for i := range s.jump.Len {
		delete(c.inJump, s.jump.Addr+i)
	}
	delete(c.inJump, s.via.Addr)
}

// What a stub is made of: at most 20 bytes of the program's own, then the jump to the agent.
const (
	stubSize    = 128
	stubResumes = 64  // where the program goes on, if that is in the stub
	stubAbout   = 96  // what it tells the agent
	stubGoesOn  = 120 // where the program goes on behind that; aligned, for programs that have set the flag AC
	areaSize    = 64 << 10
	jumpSize    = entryJump
	maxAreas    = 16
	reach       = 1<<31 - areaSize
)

// lookAt finds out how the SYSCALL instruction at addr, of which the program makes call nr, can
// lead to the agent.
func (sp *space) lookAt(addr, nr uint64) *site {
	const before, behind = 8, 10
	s := &site{addr: addr}
	code := make([]byte, before+behind)
	if sp.readMem(addr-before, code) != len(code) || !bytes.Equal(code[before:before+syscallInsnLen], []byte{0x0f, 0x05}) {
		return s
	}
	if start := numberLoad(code[:before], nr); start > 0 { // one instruction: no jump leads into its midst
		if !sp.mayChange(addr - start) {
			s.jump = abi.Range{Addr: addr - start, Len: jumpSize}
			s.own = code[before-start : before]
			s.moved = s.own
		}
		return s
	}
	if via := sp.fillNear(addr); via != 0 && !sp.mayChange(addr) && !sp.mayChange(via) {
		s.jump, s.own = abi.Range{Addr: addr, Len: syscallInsnLen}, code[before:before+jumpSize]
		s.via = abi.Range{Addr: via, Len: jumpSize}
		return s
	}
	if n := comparison(code[before+syscallInsnLen:]); n > 0 {
		s.jump = abi.Range{Addr: addr, Len: jumpSize}
		s.own, s.next = code[before:before+syscallInsnLen+n], uint64(n)
	}
	if s.jump.Len != 0 && (sp.mayChange(addr) || sp.isTarget(s.jump.Addr+1, s.jump.Addr+jumpSize)) {
		s.jump, s.own, s.next = abi.Range{}, nil, 0
	}
	return s
}

// numberLoad returns the size of the instruction at the end of code that loads RAX with nr:
// mov $nr,%eax or mov $nr,%rax; 0 for none.
func numberLoad(code []byte, nr uint64) uint64 {
	n := len(code)
	if nr>>31 != 0 || uint64(binary.LittleEndian.Uint32(code[n-4:])) != nr {
		return 0
	}
	switch {
	case bytes.Equal(code[n-7:n-4], []byte{0x48, 0xc7, 0xc0}):
		return 7
	case code[n-5] == 0xb8 && code[n-6]&0xf0 != 0x40: // a prefix would make it another register's
		return 5
	}
	return 0
}

// comparison returns the size of the instruction at the start of code, 3 bytes at least, that
// looks at the call's result and may be executed elsewhere; 0 for any other.
func comparison(code []byte) int {
	for _, c := range []struct {
		insn string
		size int
	}{
		{"\x48\x3d", 6},     // cmp $imm32,%rax
		{"\x3d", 5},         // cmp $imm32,%eax
		{"\x48\x83\xf8", 4}, // cmp $imm8,%rax
		{"\x83\xf8", 3},     // cmp $imm8,%eax
		{"\x48\x85\xc0", 3}, // test %rax,%rax
	} {
		if bytes.HasPrefix(code, []byte(c.insn)) {
			return c.size
		}
	}
	return 0
}

// fillNear returns the address of INT3 instructions that fill the space behind a function, within reach of a short jump in
// the place of the SYSCALL instruction at addr, and enough for a jump to anywhere; 0 for none. Go has them behind most
// functions. A thread that waits in a call of the site stands behind that instruction, and is not disturbed by
// it: one SYSCALL instruction makes most calls of a Go program.
func (sp *space) fillNear(addr uint64) uint64 {
	const far = 120
	from := addr - min(addr, far)
	code := make([]byte, 2*far)
	code = code[:sp.readMem(from, code)]
	fill := bytes.Repeat([]byte{0xcc}, jumpSize)
	for i := 0; i+1+jumpSize <= len(code); i++ {
		if at := from + uint64(i) + 1; code[i] == 0xc3 && bytes.HasPrefix(code[i+1:], fill) && sp.code.inJump[at] == nil { // behind RET
			return at
		}
	}
	return 0
}

// otherJumps is how far around a site jumps to the midst of it are looked for.
const otherJumps = 64 << 10

// mayChange reports whether code is where the program may change it.
func (sp *space) mayChange(addr uint64) bool {
	m := sp.maps.at(addr)
	return m == nil || m.private() && m.Prot&checkpoint.ProtWrite != 0
}

// isTarget reports whether a direct jump near the site may lead into [from,to). It looks at each byte as
// if an instruction began there, so that it errs on the side of a jump.
func (sp *space) isTarget(from, to uint64) bool {
	m := sp.maps.at(from)
	if m == nil {
		return true
	}
	start := max(m.Start, from-min(from, otherJumps))
	code := make([]byte, min(m.End, to+otherJumps)-start)
	code = code[:sp.readMem(start, code)]
	return hasFarJump(code, start, from, to) || hasShortJump(code, start, from, to)
}

// hasFarJump reports whether code, which lies at start, has a jump or call with an offset of 32 bits that leads into [from,to), or a LEA
// that takes an address there, for a jump to it.
// It looks for the offset first, which hardly ever fits: most of what a site costs is this loop.
func hasFarJump(code []byte, start, from, to uint64) bool {
	for i := 1; i+4 <= len(code); i++ {
		offset := uint64(int64(int32(binary.LittleEndian.Uint32(code[i:]))))
		if start+uint64(i)+4+offset-from >= to-from {
			continue
		}
		if op := code[i-1]; op == 0xe8 || op == 0xe9 || i > 1 && (op&0xf0 == 0x80 && code[i-2] == 0x0f || op&0xc7 == 0x05 && code[i-2] == 0x8d) {
			return true
		}
	}
	return false
}

// hasShortJump is likewise for jumps with an offset of 8 bits.
func hasShortJump(code []byte, start, from, to uint64) bool {
	const most = 1 << 7
	first := max(start, from-min(from, most+2)) - start
	for i := first; i+2 <= uint64(len(code)) && start+i < to+most; i++ {
		op := code[i]
		if op&0xf0 != 0x70 && op != 0xeb && op&0xfc != 0xe0 {
			continue
		}
		if start+i+2+uint64(int64(int8(code[i+1])))-from < to-from {
			return true
		}
	}
	return false
}

// build writes the site's stub.
func (s *site) build(a *stubArea) {
	off := a.used
	a.used += stubSize
	s.stub = a.at.Addr + off
	b := a.view[off:off:min(off+stubSize, uint64(len(a.view)))]
	resume, goesOn := s.behind(), uint64(0)
	b = append(b, s.moved...)
	s.entry = s.stub + uint64(len(b))
	if s.size != 0 {
		b = append(b, 0x65, 0x48, 0x89, 0x0c, 0x25) // mov %rcx,%gs:...
		b = binary.LittleEndian.AppendUint32(b, agent.OwnRCX)
		b = append(b, 0x65, 0x4c, 0x89, 0x1c, 0x25) // mov %r11,%gs:...
		b = binary.LittleEndian.AppendUint32(b, agent.OwnR11)
	}
	b = append(b, 0x48, 0xb9) // movabs $about,%rcx
	b = binary.LittleEndian.AppendUint64(b, s.stub+stubAbout)
	s.about = s.stub + uint64(len(b))
	b = append(b, 0x65, 0xff, 0x24, 0x25, 0, 0, 0, 0) // jmp *%gs:0
	if s.next != 0 {
		s.resumes = s.stub + stubResumes
		b = b[:stubResumes]
		b = append(b, s.own[resume-s.addr:]...)
		b = append(b, 0xff, 0x25) // jmp *...(%rip), of which an offset of 4 bytes follows
		b = binary.LittleEndian.AppendUint32(b, uint32(stubGoesOn-len(b)-4))
		goesOn = resume + s.next
		resume = s.resumes
	}
	b = b[:stubAbout]
	b = binary.LittleEndian.AppendUint64(b, s.behind())
	b = binary.LittleEndian.AppendUint64(b, resume)
	b = binary.LittleEndian.AppendUint64(b, s.size)
	binary.LittleEndian.AppendUint64(b, goesOn)
	switch {
	case s.via.Len != 0:
		s.to = []byte{0xeb, byte(s.via.Addr - s.jump.Addr - syscallInsnLen)}
	case s.jump.Len != 0:
		s.to = jumpTo(s.jump.Addr, s.stub)
	}
}

// within reports whether rip is in the midst of what is written over.
func (s *site) within(rip uint64) bool { return rip > s.jump.Addr && rip < s.jump.Addr+s.jump.Len }

// bytes returns what is written in a mode.
func (s *site) bytes(m siteMode) []byte {
	switch m {
	case siteHalts:
		b := bytes.Clone(s.own[:s.jump.Len])
		b[s.addr-s.jump.Addr] = hlt
		return b
	case siteLeads:
		return s.to
	default:
		return s.own[:s.jump.Len]
	}
}

// write writes what a mode says.
func (s *site) write(sp *space, m siteMode) error {
	if s.jump.Len == 0 || s.mode == m {
		return nil
	}
	was := s.mode
	s.mode = m
	sp.code.halts = sp.code.halts || m == siteHalts
	if m == siteOwn {
		_, err := sp.mem.writeAt(s.bytes(siteOwn), s.jump.Addr)
		if s.hasSlot {
			sp.agent.shared.PutJump(s.slot, 0, nil)
		}
		if err == nil && s.via.Len != 0 {
			_, err = sp.mem.writeAt(bytes.Repeat([]byte{0xcc}, jumpSize), s.via.Addr)
		}
		return err
	}
	if was == siteOwn {
		if err := sp.noteCodePages(s.jump); err != nil {
			return err
		}
	}
	if s.via.Len != 0 { // its own jump first, and not taken out again when the recorder is gone: nothing leads there then
		if err := sp.noteCodePages(s.via); err != nil {
			return err
		}
		if _, err := sp.mem.writeAt(jumpTo(s.via.Addr, s.stub), s.via.Addr); err != nil {
			return err
		}
	}
	if s.hasSlot {
		sp.agent.shared.PutJump(s.slot, s.jump.Addr, s.own[:jumpSize])
	}
	_, err := sp.mem.writeAt(s.bytes(m), s.jump.Addr)
	return err
}

// noteCodePages takes note, before a jump is written, of the pages that become private to the
// program by that alone.
func (sp *space) noteCodePages(at abi.Range) error {
	first, last := at.Addr/checkpoint.PageSize, (at.Addr+at.Len-1)/checkpoint.PageSize
	return sp.mm.visit(first*checkpoint.PageSize, (last+1)*checkpoint.PageSize, func(page, entry uint64) {
		if _, known := sp.code.pages[page]; known || entry&pmFile == 0 {
			return
		}
		b := make([]byte, checkpoint.PageSize)
		if sp.readMem(page*checkpoint.PageSize, b) == len(b) {
			sp.code.pages[page] = checkpoint.HashPage(0, b)
		}
	})
}

// onlyJumps returns those of the pages that are private to the program, and written, because of
// jumps alone: they hold what they held before. It is asked at the end of each interval: what the program has written to by then is
// forgotten, for it may write back what was there, and that is not what the next interval begins with.
func (sp *space) onlyJumps(set ranges) (out ranges) {
	var pages []uint64
	for page := range sp.code.pages {
		if set.has(page) {
			pages = append(pages, page)
		}
	}
	_ = eachPage(sp.reader(), rangesOf(pages), func(addr uint64, b []byte) error {
		if page := addr / checkpoint.PageSize; sp.code.pages[page] == checkpoint.HashPage(0, b) {
			out.add(page, page+1)
		} else {
			delete(sp.code.pages, page)
		}
		return nil
	})
	return out
}

// reachAgent returns where the site at addr, of which the program is making call nr, enters its
// stub, behind the program's own instructions there, and has the site lead to it if it can; 0 when
// there is no stub.
func (t *thread) reachAgent(addr, nr uint64) (uint64, error) {
	sp := t.space()
	s := sp.code.sites[addr]
	if s == nil {
		a, err := t.areaFor(addr)
		if err != nil || a == nil {
			return 0, err
		}
		s = sp.lookAt(addr, nr)
		if s.jump.Len != 0 && !sp.agent.giveSlot(s) {
			s.jump, s.own, s.next = abi.Range{}, nil, 0
		}
		sp.addStub(s, a)
	}
	return s.entry, s.write(sp, sp.underAgent(s, t.group().within(s, t)))
}

// addStub adds a site with a stub, which it writes.
func (sp *space) addStub(s *site, a *stubArea) {
	s.build(a)
	sp.agent.stubs[s.stub] = s
	sp.code.add(s)
}

// giveSlot gives a site a slot. False says that there is none left.
func (a *spaceAgent) giveSlot(s *site) bool {
	if n := len(a.free); n > 0 {
		s.slot, a.free = a.free[n-1], a.free[:n-1]
	} else if a.slots < agent.Jumps {
		s.slot = a.slots
		a.slots++
	} else {
		return false
	}
	s.hasSlot = true
	return true
}

// changedBy returns the memory that a call of EffectMem, at its entry, may unmap, map anew or give another protection, where there
// may have been memory before.
func (sp *space) changedBy(c *call) []abi.Range {
	a := &c.args
	switch c.nr {
	case unix.SYS_MLOCK, unix.SYS_MLOCK2, unix.SYS_MUNLOCK, unix.SYS_MSYNC:
		return nil
	case unix.SYS_BRK:
		if old := pageUp(sp.brk); pageUp(a[0]) < old {
			return []abi.Range{{Addr: a[0], Len: old - a[0]}} // which fails where a[0] is 0
		}
		return nil
	case unix.SYS_MMAP:
		if a[3]&unix.MAP_FIXED == 0 {
			return nil
		}
	case unix.SYS_MREMAP:
		if a[3]&unix.MREMAP_FIXED != 0 {
			return []abi.Range{{Addr: a[0], Len: a[1]}, {Addr: a[4], Len: a[2]}}
		}
	case unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT, unix.SYS_MADVISE, unix.SYS_REMAP_FILE_PAGES:
	default: // where, is not told by the first two arguments
		return []abi.Range{{Len: abi.TaskSize}}
	}
	return []abi.Range{{Addr: a[0], Len: a[1]}}
}

// forgetSites forgets the sites in memory that a call, at its entry, may change or unmap. Their own
// code is put back first.
func (sp *space) forgetSites(c *call, changed []abi.Range) error {
	if c.nr != unix.SYS_MPROTECT && c.nr != unix.SYS_PKEY_MPROTECT {
		for page := range sp.code.pages {
			for _, r := range changed {
				if page >= r.Addr/checkpoint.PageSize && page*checkpoint.PageSize < r.Addr+r.Len {
					delete(sp.code.pages, page)
				}
			}
		}
	}
	for start, m := range sp.codeKnown {
		if slices.ContainsFunc(changed, func(r abi.Range) bool { return m.Start < pageUp(r.Addr+r.Len) && m.End > pageDown(r.Addr) }) {
			delete(sp.codeKnown, start)
		}
	}
	return sp.forget(func(s *site) bool {
		return slices.ContainsFunc(changed, func(r abi.Range) bool {
			const most = 128 // a site's bytes lie so near
			return s.addr+most > pageDown(r.Addr) && s.addr < pageUp(r.Addr+r.Len)+most
		})
	})
}

// forget forgets the sites for which f holds, whose own code is put back.
func (sp *space) forget(f func(*site) bool) error {
	c := &sp.code
	for _, s := range c.sites {
		if !f(s) {
			continue
		}
		if err := s.write(sp, siteOwn); err != nil {
			return err
		}
		c.remove(s)
		if s.hasSlot {
			sp.agent.free = append(sp.agent.free, s.slot)
		}
		if s.kind != siteCall {
			sp.forgetAllCode()
		}
	}
	return nil
}
