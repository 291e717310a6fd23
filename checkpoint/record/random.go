//go:build linux && amd64

package record

import "vplay/checkpoint/abi/ptrace"

// RDRAND and RDSEED, which halts.go has fault.

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
