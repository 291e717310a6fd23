package gdbstub

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"

	"vplay/replay/debug/api"
)

// The packets that write registers and memory: P, G, M and X (gdb manual, appendix
// "Remote Serial Protocol", "Packets"). They go to a copy of the process; when that is
// made and dropped is in divert.go.

// refusal is what a client is told when it wants to change something that does
// not change.
const refusal = "replay is read-only"

// writeRegister answers P N=VALUE.
func (s *session) writeRegister(arg string) reply {
	n, value, _ := strings.Cut(arg, "=")
	num, ok := parseHexInt(n)
	r := s.description().byNum[num]
	b, err := hex.DecodeString(value)
	switch {
	case !ok || r == nil:
		return replyError
	case err != nil || len(b) != r.size:
		return s.badWrite()
	}
	tid := s.generalThread()
	regs, err := s.registers(tid)
	if err != nil {
		return replyError
	}
	if !r.known(regs) {
		return s.refuse("the recording does not hold " + r.name)
	}
	r.setValue(regs, b)
	return s.setRegisters(tid, regs)
}

// writeRegisters answers G with all registers, x digits for those that are not
// known. A shorter text, as gdb sends when it leaves the rest alone, is taken for
// the registers it holds.
func (s *session) writeRegisters(arg string) reply {
	tid := s.generalThread()
	regs, err := s.registers(tid)
	if err != nil {
		return replyError
	}
	for _, r := range s.description().regs {
		if len(arg) < 2*r.size {
			break
		}
		b, err := hex.DecodeString(arg[:2*r.size])
		arg = arg[2*r.size:]
		switch {
		case r.known(regs) && err != nil:
			return replyError
		case r.known(regs):
			r.setValue(regs, b)
		}
	}
	if arg != "" { // the rest of a register, or more than there are
		return s.badWrite()
	}
	return s.setRegisters(tid, regs)
}

// badWrite answers registers that are none.
func (s *session) badWrite() reply {
	if _, ok := s.target.(api.DivertTarget); !ok {
		return s.refuse(refusal)
	}
	return replyError
}

// setRegisters gives thread tid registers. gdb writes registers back unchanged
// now and then, the pc before a reverse step for one, so what changes nothing is
// taken without a copy of the process.
func (s *session) setRegisters(tid int, regs *api.Registers) reply {
	have, err := s.registers(tid)
	if err != nil {
		return replyError
	}
	regs.OrigRAX = have.OrigRAX // gdb writes -1 with the pc; here no call is restarted
	if *regs == *have {
		s.div.writtenBack(regs)
		return replyOK
	}
	if err := s.divert(); err != nil {
		return s.refuseWrite(err)
	}
	if err := s.target.(api.DivertTarget).WriteRegisters(tid, regs); err != nil {
		return s.refuse(err.Error())
	}
	v := &s.div
	if tid != v.tid {
		v.tid, v.origin = tid, *have
	}
	v.moved = v.moved || regs.RIP != have.RIP
	if s.strays(have, regs, &v.origin) {
		v.wrote()
	}
	v.writtenBack(regs)
	return replyOK
}

// strays reports whether a write of registers changes one to a value that it does
// not have in the recording. gdb writes registers back one by one.
func (s *session) strays(have, now, origin *api.Registers) bool {
	var was, is, old [32]byte
	for _, r := range s.description().regs {
		v := r.appendValue(is[:0], now)
		if !bytes.Equal(v, r.appendValue(was[:0], have)) && !bytes.Equal(v, r.appendValue(old[:0], origin)) {
			return true
		}
	}
	return false
}

// refuseWrite tells why there is no copy of the process to write to.
func (s *session) refuseWrite(err error) reply {
	if errors.Is(err, api.ErrNotSupported) {
		return s.refuse(refusal)
	}
	return s.refuse(err.Error())
}

// writeMemoryHex answers M ADDR,LEN:HEX.
func (s *session) writeMemoryHex(arg string) reply {
	where, data, _ := strings.Cut(arg, ":")
	b, err := hex.DecodeString(data)
	if err != nil {
		return replyError
	}
	return s.writeMemory(where, b)
}

// writeMemoryBinary answers X ADDR,LEN:BYTES. Length 0 is the client's probe
// for the packet.
func (s *session) writeMemoryBinary(arg string) reply {
	where, data, _ := strings.Cut(arg, ":")
	return s.writeMemory(where, []byte(data))
}

// writeMemory stores in a copy of the process, unless it changes nothing.
func (s *session) writeMemory(where string, b []byte) reply {
	addr, n, ok := parseRange(where)
	if !ok || n != uint64(len(b)) || !s.live {
		return replyError
	}
	if n == 0 {
		return replyOK
	}
	if have, err := s.read(addr, n); err == nil && bytes.Equal(have, b) {
		return replyOK
	}
	if err := s.divert(); err != nil {
		return s.refuseWrite(err)
	}
	if err := s.target.(api.DivertTarget).WriteMemory(addr, b); err != nil {
		return s.refuse(err.Error())
	}
	s.forget()
	s.div.wrote()
	return replyOK
}

// setValue stores the register's bytes, r.size of them, little-endian.
func (r *regDesc) setValue(v *api.Registers, b []byte) {
	le := binary.LittleEndian
	switch r.kind {
	case kindST:
		copy(v.ST[r.index][:], b)
	case kindXMM, kindYMMH, kindZMMH:
		for i, q := range r.vector(v) {
			*q = le.Uint64(b[8*i:])
		}
	default:
		var x [8]byte
		copy(x[:], b)
		r.setInteger(v, le.Uint64(x[:]))
	}
}

// setInteger sets a register of at most 64 bits.
func (r *regDesc) setInteger(v *api.Registers, x uint64) {
	switch r.kind {
	case kindGPR:
		v.GPR[r.index] = x
	case kindRIP:
		v.RIP = x
	case kindFlags:
		v.EFLAGS = x
	case kindSeg:
		v.Seg[r.index] = uint16(x)
	case kindX87:
		setX87(v, r.index, x)
	case kindMXCSR:
		v.MXCSR = uint32(x)
	case kindOrigRAX:
		v.OrigRAX = x
	case kindBase:
		*[2]*uint64{&v.FSBase, &v.GSBase}[r.index] = x
	case kindMask:
		v.K[r.index] = x
	case kindST, kindXMM, kindYMMH, kindZMMH: // setValue has them
	}
}

// setX87 sets the control registers in the order of x87Names, as x87Control returns them.
func setX87(v *api.Registers, i int, x uint64) {
	const offset = 0xffffffff
	switch i {
	case 0:
		v.FCW = uint16(x)
	case 1:
		v.FSW = uint16(x)
	case 2:
		v.FTW = uint16(x)
	case 3:
		v.FIP = v.FIP&^(0xffff<<32) | x&0xffff<<32
	case 4:
		v.FIP = v.FIP&^offset | x&offset
	case 5:
		v.FDP = v.FDP&^(0xffff<<32) | x&0xffff<<32
	case 6:
		v.FDP = v.FDP&^offset | x&offset
	case 7:
		v.FOP = uint16(x)
	}
}
