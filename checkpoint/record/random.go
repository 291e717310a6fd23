//go:build linux && amd64

package record

import (
	"io"
	"os"

	"vplay/checkpoint/abi/ptrace"
)

// RDRAND and RDSEED. Programs use them where CPUID says that the CPU has them, and where that cannot be made to fault no setting
// keeps all from it: std::random_device of C++ is such. So they are looked for in each file as it is mapped for execution, and
// made to fault by HLT. Where some are in doubt, in code that is made as the program runs, and without the agent they are
// executed as they are, and replay refuses them by name.

// lookForRandom looks for such instructions in code that is new.
func (sp *space) lookForRandom() error {
	if sp.randomLooked || sp.agent == nil {
		return nil
	}
	sp.randomLooked = true
	if !hasCPUFlag("rdrand") || !hasCPUFlag("rdseed") {
		return nil
	}
	list, _ := sp.codeFiles()
	var sites []*site
	for _, m := range list {
		code := sp.session.randomIn(&m)
		if len(code.known) == 0 {
			continue
		}
		if err := sp.ownCode(); err != nil { // it is compared
			return err
		}
		more, _ := m.sites(sp, siteRandom, code)
		sites = append(sites, more...)
	}
	if len(sites) == 0 {
		return nil
	}
	sp.hasRandom = true
	sp.addHalts(sites)
	return sp.writeHalts()
}

// codeRange is a part of a file that is mapped for execution.
type codeRange struct {
	of       fileVersion
	off, len uint64
}

// randomIn returns what there is of them in what a mapping shows of its file, nothing where that cannot be read.
func (s *session) randomIn(m *codeFile) *foundCode {
	at := codeRange{m.version, m.Offset, m.End - m.Start}
	if c := s.random[at]; c != nil {
		return c
	}
	c := &foundCode{}
	if s.random == nil {
		s.random = map[codeRange]*foundCode{}
	}
	s.random[at] = c
	f, err := os.Open(m.path)
	if err != nil {
		return c
	}
	defer f.Close()
	var search *codeSearch // hardly any file has such bytes
	err = classRandom.each(f, at.off, at.len, func(off uint64) (err error) {
		if search == nil {
			if search, err = newCodeSearch(f, &classRandom); err != nil {
				return err
			}
		}
		return search.look(off)
	})
	if search != nil && (err == nil || err == io.EOF) { // a mapping ends behind its file
		*c = search.result()
	}
	return c
}

// indexRandom returns where the bytes 0F C7 stand first, -1 for nowhere. It is in cpu_amd64.s.
func indexRandom(b []byte) int

// rdrand and rdseed are in cpu_amd64.s. ok is the carry flag: there was a number.
func rdrand() (v uint64, ok bool)
func rdseed() (v uint64, ok bool)

// giveRandom executes such an instruction for the thread, whose bytes are code, but does not move behind it. It returns what the log has of it:
// the register afterwards, and the carry flag.
func giveRandom(r *ptrace.Regs, code []byte) (out [4]uint64) {
	rex, short := byte(0), false
	for ; code[0] != 0x0f; code = code[1:] {
		if code[0]&0xf0 == 0x40 {
			rex = code[0]
		}
		short = short || code[0] == 0x66
	}
	v, ok := rdrand()
	if code[2] >= 0xf8 {
		v, ok = rdseed()
	}
	reg := register(r, code[2]&7|rex&1<<3)
	switch {
	case rex&8 != 0:
		*reg = v
	case short:
		*reg = *reg&^0xffff | v&0xffff
	default:
		*reg = v & 0xffffffff
	}
	const arithmetic = 0x8d5 // OF, SF, ZF, AF, PF and CF
	r.Eflags &^= arithmetic
	if ok {
		r.Eflags |= 1
	}
	return [4]uint64{*reg, r.Eflags & 1}
}
