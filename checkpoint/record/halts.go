//go:build linux && amd64

package record

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// Instructions of the program that are to fault: HLT is written over their first byte while the program runs.
// The recorder then executes them, and logs what they gave. Which they are says findcode.go.
//
// RDRAND and RDSEED are such. Programs use them where CPUID says that the CPU has them, and where that cannot be made to fault no setting
// keeps all from it: std::random_device of C++ is such. In a process without the agent they are executed as they are, and replay refuses
// them by name. RDTSC and RDTSCP are such where a thread is switched to often (tscruns.go), and always where nothing else has them fault
// (tscprobe.go). CPUID is looked for with them then: such a machine answers it by whatever CPU of its host it is on, whose
// number is among the answers. What is in doubt, or is made as the program runs, is executed as it is.

// hlt is HLT, which faults as RDTSC does that is made to: #GP, with SI_KERNEL (Intel SDM volume 2, HLT).
const hlt = 0xf4

// siteKind is what a site has.
type siteKind uint8

const (
	siteCall   siteKind = iota // SYSCALL
	siteTSC                    // RDTSC or RDTSCP; or CPUID, where both have to be looked for
	siteRandom                 // RDRAND or RDSEED
)

// codeFile is a file of which a mapping can be executed.
type codeFile struct {
	mapping
	path    string
	version fileVersion
	tsc     *tscFile
	halts   bool // what always has to fault in it is known
}

// codeFiles returns the files that the program can execute. False says that it can execute other memory, too. It cannot call the vdso as
// that is: its functions read memory that the kernel writes.
func (sp *space) codeFiles() (list []*codeFile, all bool) {
	all = true
	for _, m := range sp.maps.all() {
		if m.Prot&checkpoint.ProtExec == 0 || m.Start <= sp.vdso && sp.vdso < m.End || m.Start >= abi.TaskSize {
			continue
		}
		if !m.private() || m.Prot&checkpoint.ProtWrite != 0 || !sp.objects.isCleanFile(&m) {
			all = false
			continue
		}
		f := sp.codeFileOf(&m)
		if f == nil {
			all = false
			continue
		}
		list = append(list, f)
	}
	return list, all
}

// codeFileOf returns what is known of a mapping of a file; nil where that is not the file's any more. A program that maps hundreds of
// libraries asks for all of them each time it maps another.
func (sp *space) codeFileOf(m *mapping) *codeFile {
	if f := sp.codeKnown[m.Start]; f != nil && f.mapping == *m {
		return f
	}
	path, version, ok := sp.fileNow(m.Object)
	if !ok {
		return nil
	}
	if sp.codeKnown == nil {
		sp.codeKnown = map[uint64]*codeFile{}
	}
	f := &codeFile{mapping: *m, path: path, version: version}
	sp.codeKnown[m.Start] = f
	return f
}

// sites returns sites for the instructions of a kind in a mapping. False says that some are in doubt.
func (m *codeFile) sites(sp *space, kind siteKind, code *foundCode) (list []*site, ok bool) {
	isIn := func(off uint64) bool { return off-m.Offset < m.End-m.Start }
	if slices.ContainsFunc(code.doubt, isIn) || !m.isUnchanged(sp) {
		return nil, false
	}
	for i := range code.known {
		if insn := &code.known[i]; isIn(insn.off) {
			list = append(list, haltSite(m.Start+insn.off-m.Offset, kind, insn))
		}
	}
	return list, true
}

// haltSite is a site for an instruction at addr.
func haltSite(addr uint64, kind siteKind, insn *foundInsn) *site {
	return &site{addr: addr, kind: kind, jump: abi.Range{Addr: addr, Len: 1}, own: insn.own[:]}
}

// isUnchanged reports whether a mapping holds what its file does. Pages that are the process's own need not; but most of them
// are so because a jump was written there, in the process or in its parent.
func (m *codeFile) isUnchanged(sp *space) bool {
	var pages []uint64
	err := sp.mm.visit(m.Start, m.End, func(page, entry uint64) {
		if entry&(pmPresent|pmSwap) != 0 && entry&pmFile == 0 {
			pages = append(pages, page)
		}
	})
	if err != nil || len(pages) == 0 {
		return err == nil
	}
	f, err := os.Open(m.path)
	if err != nil {
		return false
	}
	defer f.Close()
	want := make([]byte, checkpoint.PageSize)
	return eachPage(sp.reader(), rangesOf(pages), func(addr uint64, b []byte) error {
		clear(want)
		if _, err := f.ReadAt(want, int64(m.Offset+addr-m.Start)); err != nil && err != io.EOF {
			return err
		}
		if !bytes.Equal(b, want) {
			return errOtherCode
		}
		return nil
	}) == nil
}

// errOtherCode says that code is not what its file has.
var errOtherCode = errors.New("the code was changed")

// addHalts adds those of the sites that there are not yet. False says that the agent has no room for all, which takes
// them out if the recorder is killed.
func (sp *space) addHalts(list []*site) (all bool) {
	all = true
	for _, s := range list {
		if sp.code.sites[s.addr] == nil {
			all = (sp.agent == nil || sp.agent.giveSlot(s)) && all
			sp.code.add(s)
		}
	}
	return all
}

// haltsToAgent tells the agent, which is new, of the sites that there are.
func (sp *space) haltsToAgent() {
	for _, s := range sp.code.sites {
		if !s.hasSlot && sp.agent.giveSlot(s) && s.mode != siteOwn {
			sp.agent.shared.PutJump(s.slot, s.jump.Addr, s.own[:jumpSize])
		}
	}
}

// lookForHalts looks for instructions that always have to fault in code that is new.
func (sp *space) lookForHalts() error {
	if sp.haltsLooked {
		return nil
	}
	sp.haltsLooked = true
	random := sp.agent != nil && hasCPUFlag("rdrand") && hasCPUFlag("rdseed")
	tsc := sp.session.haltsTSC
	if !random && !tsc {
		return nil
	}
	list, _ := sp.codeFiles()
	var sites []*site
	for _, m := range list {
		if m.halts {
			continue
		}
		m.halts = true
		if random {
			more := sp.haltsIn(m, siteRandom, &classRandom)
			sp.hasRandom = sp.hasRandom || len(more) > 0
			sites = append(sites, more...)
		}
		if tsc {
			sites = append(sites, sp.haltsIn(m, siteTSC, &classTraps)...)
		}
	}
	if tsc && sp.attached {
		sites = append(sites, sp.haltsInVDSO()...)
	}
	if len(sites) == 0 {
		return nil
	}
	if err := sp.ownCode(); err != nil { // it is compared
		return err
	}
	sp.addHalts(slices.DeleteFunc(sites, func(s *site) bool { // those that the program has changed are not what they were
		var now [jumpSize]byte
		return sp.readMem(s.addr, now[:]) != len(now) || !bytes.Equal(now[:], s.own)
	}))
	return sp.writeHalts()
}

// haltsIn returns a site for each instruction of a class that a mapping of a file shows, and that has none yet.
func (sp *space) haltsIn(m *codeFile, kind siteKind, class *insnClass) (sites []*site) {
	code := sp.session.foundIn(m, class)
	for i := range code.known {
		insn := &code.known[i]
		addr := m.Start + insn.off - m.Offset
		if insn.off-m.Offset < m.End-m.Start && sp.code.sites[addr] == nil {
			sites = append(sites, haltSite(addr, kind, insn))
		}
	}
	return sites
}

// haltsInVDSO is likewise for the vdso of a program that was attached to: a thread may be in it.
func (sp *space) haltsInVDSO() (sites []*site) {
	image := make([]byte, sp.vdsoEnd-sp.vdso)
	if sp.readMem(sp.vdso, image) != len(image) {
		return nil
	}
	for _, p := range sp.patches {
		copy(image[p.addr-sp.vdso:], p.old)
	}
	code, err := findCode(bytes.NewReader(image), &classTraps)
	if err != nil {
		sp.session.log.Warn().Err(err).Msg("RDTSC is not trapped in the vdso")
	}
	for i := range code.known {
		if addr := sp.vdso + code.known[i].off; sp.code.sites[addr] == nil {
			sites = append(sites, haltSite(addr, siteTSC, &code.known[i]))
		}
	}
	return sites
}

// codeRange is a part of a file that is mapped for execution, and what is looked for in it.
type codeRange struct {
	of       fileVersion
	off, len uint64
	class    *insnClass
}

// foundIn returns what there is of a class in what a mapping shows of its file, nothing where that cannot be read.
func (s *session) foundIn(m *codeFile, class *insnClass) *foundCode {
	at := codeRange{m.version, m.Offset, m.End - m.Start, class}
	if c := s.found[at]; c != nil {
		return c
	}
	c := &foundCode{}
	if s.found == nil {
		s.found = map[codeRange]*foundCode{}
	}
	s.found[at] = c
	f, err := os.Open(m.path)
	if err != nil {
		return c
	}
	defer f.Close()
	var search *codeSearch // hardly any file has such bytes
	err = class.each(f, at.off, at.len, func(off uint64) (err error) {
		if search == nil {
			if search, err = newCodeSearch(f, class); err != nil {
				return err
			}
			search.guesses = true
		}
		return search.look(off)
	})
	if search != nil && (err == nil || err == io.EOF) { // a mapping ends behind its file
		*c = search.result()
	}
	return c
}

// mustHalt reports whether a site has an instruction that is to fault, whether or not a thread runs under the agent.
func (sp *space) mustHalt(s *site) bool {
	return s.kind == siteRandom || s.kind == siteTSC && (sp.tsc.known || sp.session.haltsTSC)
}

// writeHalts has the instructions fault that are to.
func (sp *space) writeHalts() error {
	for _, s := range sp.code.sites {
		if sp.mustHalt(s) && s.mode != siteLeads {
			if err := s.write(sp, siteHalts); err != nil {
				return err
			}
		}
	}
	return nil
}

// codeAlone gives a thread its own code, which it runs for a while without the agent: no jumps, and the instructions
// fault that are to. Those that do already are left alone: a library of cryptography has hundreds, and a
// program with a fast timer would not get on.
func (t *thread) codeAlone() error {
	sp := t.space()
	if t.group().done {
		return sp.ownCode()
	}
	if err := sp.lookForHalts(); err != nil {
		return err
	}
	if !t.tscRuns && !sp.hasRandom {
		return sp.ownCode()
	}
	return sp.onlyHalts()
}

// alone returns what is to be at a site while a thread runs without the agent.
func (sp *space) alone(s *site) siteMode {
	if sp.mustHalt(s) {
		return siteHalts
	}
	return siteOwn
}

// underAgent returns what is to be at a site while a thread runs under the agent. within says that a thread stands in the midst of
// what the jump is written over.
func (sp *space) underAgent(s *site, within bool) siteMode {
	switch {
	case s.stub != 0 && !within:
		return siteLeads
	case s.stub == 0 && s.kind != siteCall: // whether or not it must
		return siteHalts
	default:
		return sp.alone(s)
	}
}

// onlyHalts puts the program's own code back where jumps are written over it, and has the instructions fault that are to.
func (sp *space) onlyHalts() error {
	c := &sp.code
	for _, s := range c.sites {
		if err := s.write(sp, sp.alone(s)); err != nil {
			return err
		}
	}
	c.clean = true
	return nil
}

// ownInsn returns what the program has at rip, where code is, with HLT or a jump in the place of an instruction that is made to fault.
func (t *thread) ownInsn(code []byte) []byte {
	if s := t.space().code.sites[t.regs.Rip]; s != nil && s.kind != siteCall && s.mode != siteOwn {
		return s.own[s.addr-s.jump.Addr:]
	}
	return code
}

// forgetCode says that what is known of the code does not hold any more: a call, at its entry, may make memory executable.
func (sp *space) forgetCode() { sp.tsc.known, sp.tsc.looked, sp.haltsLooked = false, false, false }

// forgetAllCode says so, too, of each file: a site is gone, or more has to fault.
func (sp *space) forgetAllCode() {
	sp.forgetCode()
	sp.codeKnown = nil
}

// beforeNewCode is called at the entry of a call that may make memory executable, as far as it does. What is no file's is not looked at: JIT
// compilers make it all the time.
func (sp *space) beforeNewCode(c *call) {
	a := &c.args
	isFile := func(m *mapping) bool { return m.Object != 0 }
	isCode := func(m *mapping) bool { return m.Prot&checkpoint.ProtExec != 0 }
	const shmExec = 0o100000 // linux/shm.h
	switch c.nr {
	case unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT:
		ofFile := c.nr == unix.SYS_MMAP && a[3]&mapAnonymous == 0 || c.nr != unix.SYS_MMAP && sp.maps.anyIn(pageDown(a[0]), pageUp(a[0]+a[1]), isFile)
		switch {
		case a[2]&unix.PROT_EXEC == 0:
		case ofFile:
			sp.forgetCode()
		default: // until the next interval
			sp.tsc.known, sp.tsc.looked = false, true
		}
	case unix.SYS_MREMAP:
		if sp.maps.anyIn(pageDown(a[0]), pageUp(a[0]+a[1]), isCode) {
			sp.forgetCode()
		}
	case unix.SYS_SHMAT:
		if a[2]&shmExec != 0 {
			sp.forgetCode()
		}
	case unix.SYS_REMAP_FILE_PAGES, unix.SYS_PERSONALITY:
		sp.forgetCode()
	}
}
