package gdbstub

import (
	"bytes"
	"errors"
	"strings"
)

// refusal is what a client is told when it wants to change something.
const refusal = "replay is read-only"

// description returns the register layout of the recording.
func (s *session) description() *description { return describe(s.target.Process().Features) }

// registers returns thread tid's registers, with the groups that the recording
// does not have marked missing.
func (s *session) registers(tid int) (*Registers, error) {
	if tid == 0 {
		return nil, errors.New(errNoProcess)
	}
	regs, err := s.target.Registers(tid)
	if err != nil {
		return nil, err
	}
	if regs == nil {
		return nil, errors.New("the target gave no registers")
	}
	out := *regs
	out.Missing |= ^s.target.Process().Features
	return &out, nil
}

// readRegisters answers g.
func (s *session) readRegisters(string) reply {
	regs, err := s.registers(s.general())
	if err != nil {
		return replyError
	}
	var out []byte
	d := s.description()
	for i := range d.regs {
		out = d.regs[i].appendHex(out, regs)
	}
	return reply{data: out}
}

// readRegister answers p N.
func (s *session) readRegister(arg string) reply {
	num, ok := parseHexInt(arg)
	r := s.description().byNum[num]
	if !ok || r == nil {
		return replyError
	}
	regs, err := s.registers(s.general())
	if err != nil {
		return replyError
	}
	return reply{data: r.appendHex(nil, regs)}
}

// writeRegister answers P N=VALUE. gdb writes registers back unchanged now and
// then, the pc before a reverse step for one, so a write that changes nothing
// is taken.
func (s *session) writeRegister(arg string) reply {
	n, value, _ := strings.Cut(arg, "=")
	num, ok := parseHexInt(n)
	r := s.description().byNum[num]
	if !ok || r == nil {
		return replyError
	}
	return s.writeSame([]byte(value), s.readRegister(n).data)
}

// writeRegisters answers G.
func (s *session) writeRegisters(arg string) reply {
	return s.writeSame([]byte(arg), s.readRegisters("").data)
}

// writeSame accepts hex text equal to what is there already.
func (s *session) writeSame(want, have []byte) reply {
	if len(want) > 0 && bytes.Equal(bytes.ToLower(want), have) {
		return replyOK
	}
	return s.refuse(refusal)
}
