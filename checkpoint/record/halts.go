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
	"vplay/checkpoint/record/agent"
)

// Instructions of the program that are to fault: HLT is written over their first byte, for as long as the agent's jumps stand.
// The recorder then executes them, and logs what they gave. Which they are says findcode.go.

// hlt is HLT, which faults as RDTSC does that is made to: #GP, with SI_KERNEL (Intel SDM volume 2, HLT).
const hlt = 0xf4

// siteKind is what a site has.
type siteKind uint8

const (
	siteCall   siteKind = iota // SYSCALL
	siteTSC                    // RDTSC or RDTSCP
	siteRandom                 // RDRAND or RDSEED
)

// codeFile is a file of which a mapping can be executed.
type codeFile struct {
	mapping
	path    string
	version fileVersion
	tsc     *tscFile
}

// codeFiles returns the files that the program can execute. False says that it can execute other memory, too. It cannot call the vdso as
// that is: its functions read memory that the kernel writes.
func (sp *space) codeFiles() (list []codeFile, all bool) {
	all = true
	for _, m := range sp.maps.all() {
		if m.Prot&checkpoint.ProtExec == 0 || m.Start <= sp.vdso && sp.vdso < m.End || m.Start >= abi.TaskSize {
			continue
		}
		if !m.private() || m.Prot&checkpoint.ProtWrite != 0 || !sp.objects.isCleanFile(&m) {
			all = false
			continue
		}
		path, version, ok := sp.fileNow(m.Object)
		if !ok {
			all = false
			continue
		}
		list = append(list, codeFile{mapping: m, path: path, version: version})
	}
	return list, all
}

// sites returns sites for the instructions of a kind in a mapping. False says that some are in doubt.
func (m *codeFile) sites(sp *space, kind siteKind, code *foundCode) (list []*site, ok bool) {
	isIn := func(off uint64) bool { return off-m.Offset < m.End-m.Start }
	if slices.ContainsFunc(code.doubt, isIn) || !m.isUnchanged(sp) {
		return nil, false
	}
	for i := range code.known {
		if insn := &code.known[i]; isIn(insn.off) {
			addr := m.Start + insn.off - m.Offset
			list = append(list, &site{addr: addr, kind: kind, jump: abi.Range{Addr: addr, Len: 1}, own: insn.own[:], to: []byte{hlt}})
		}
	}
	return list, true
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

// addHalts adds those of the sites that there are not yet. False says that there is no room for them.
func (sp *space) addHalts(list []*site) bool {
	a := sp.agent
	for _, s := range list {
		if a.sites[s.addr] != nil {
			continue
		}
		if s.slot = a.slot(); s.slot >= agent.Jumps {
			return false
		}
		a.sites[s.addr] = s
		a.inJump[s.addr] = s
	}
	return true
}

// mustHalt reports whether a site has an instruction that is to fault, whether or not a thread runs under the agent.
func (sp *space) mustHalt(s *site) bool {
	return s.kind == siteRandom || s.kind == siteTSC && sp.tsc.known
}

// writeHalts has the instructions fault that are to.
func (sp *space) writeHalts() error {
	if sp.agent == nil {
		return nil
	}
	for _, s := range sp.agent.sites {
		if sp.mustHalt(s) {
			sp.agent.halts = true
			if err := s.write(sp, true); err != nil {
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
	if t.group().done || sp.agent == nil {
		return sp.ownCode()
	}
	if err := sp.lookForRandom(); err != nil {
		return err
	}
	if !t.tscRuns && !sp.hasRandom {
		return sp.ownCode()
	}
	return sp.onlyHalts()
}

// onlyHalts puts the program's own code back where jumps are written over it, and has the instructions fault that are to.
func (sp *space) onlyHalts() error {
	a := sp.agent
	for _, s := range a.sites {
		halt := sp.mustHalt(s)
		a.halts = a.halts || halt
		if err := s.write(sp, halt); err != nil {
			return err
		}
	}
	a.clean = true
	return nil
}

// ownInsn returns what the program has at rip, where code, which is there, has HLT in its place.
func (t *thread) ownInsn(code []byte) []byte {
	if a := t.space().agent; a != nil && len(code) > 0 && code[0] == hlt {
		if s := a.sites[t.regs.Rip]; s != nil && s.kind != siteCall {
			return s.own
		}
	}
	return code
}

// forgetCode says that what is known of the code does not hold any more: a site is gone, or a call, at its entry, may make
// memory executable.
func (sp *space) forgetCode() { sp.tsc.known, sp.tsc.looked, sp.randomLooked = false, false, false }

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
