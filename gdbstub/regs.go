package gdbstub

import (
	"errors"

	"vplay/replay/debug/api"
)

// The packets g and p, which read registers (gdb manual, appendix "Remote Serial
// Protocol", "Packets"). What a register is, is in register.go; P and G, which write,
// are in write.go.

// description returns the register layout of the recording.
func (s *session) description() *description { return describe(s.target.Process().Features) }

// registers returns thread tid's registers, with the groups that the recording
// does not have marked missing.
func (s *session) registers(tid int) (*api.Registers, error) {
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
	regs, err := s.registers(s.generalThread())
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
	regs, err := s.registers(s.generalThread())
	if err != nil {
		return replyError
	}
	return reply{data: r.appendHex(nil, regs)}
}
