package corefile

import (
	"encoding/binary"
	"unsafe"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// What notes say of a thread: its number, general registers and extended state.

// thread is one thread of the core file.
type thread struct {
	tid     checkpoint.TID
	signo   int32 // the signal it was stopped with
	regs    checkpoint.Regs
	origRAX int64
	floats  []byte // NT_PRFPREG: as FXSAVE writes it
	xstate  []byte // NT_X86_XSTATE
}

// places are the places of the registers, in encoding order, in struct user_regs_struct.
var places = [16]int{10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0}

func (c *Core) noteStatus(b []byte) error {
	if err := c.take(int64(unsafe.Sizeof(thread{})), "threads"); err != nil {
		return err
	}
	le := binary.LittleEndian
	reg := func(n int) uint64 { return le.Uint64(b[abi.PrstatusRegsOff+8*n:]) }
	t := thread{tid: checkpoint.TID(le.Uint32(b[32:])), signo: int32(int16(le.Uint16(b[12:]))), origRAX: int64(reg(15))}
	for i, n := range places {
		t.regs.R[i] = reg(n)
	}
	t.regs.RIP, t.regs.RFLAGS, t.regs.FSBase, t.regs.GSBase = reg(16), reg(18), reg(21), reg(22)
	t.regs.CS, t.regs.SS = uint16(reg(17)), uint16(reg(20))
	t.regs.DS, t.regs.ES, t.regs.FS, t.regs.GS = uint16(reg(23)), uint16(reg(24)), uint16(reg(25)), uint16(reg(26))
	c.threads = append(c.threads, t)
	return nil
}

// last returns the thread whose notes are read, nil before the first.
func (c *Core) last() *thread {
	if len(c.threads) == 0 {
		return nil
	}
	return &c.threads[len(c.threads)-1]
}

func (c *Core) noteFloats(b []byte) error {
	if t := c.last(); t != nil {
		t.floats = b
	}
	return nil
}

func (c *Core) noteXState(b []byte) error {
	if t := c.last(); t != nil {
		t.xstate = b
	}
	return nil
}

// contexts returns the threads in the recording's form, with extended state that fits components.
func (c *Core) contexts(x xsave, name func(checkpoint.TID) string) (out []checkpoint.Context, without []checkpoint.TID) {
	for i := range c.threads {
		t := &c.threads[i]
		img, ok := x.image(t)
		if !ok {
			without = append(without, t.tid)
		}
		out = append(out, checkpoint.Context{
			TID: t.tid, Regs: t.regs, XState: img, OrigRAX: t.origRAX, InCall: t.origRAX >= 0, Name: name(t.tid),
		})
	}
	return out, without
}

// signal returns the signal that ended the program, 0 when there was none.
func (c *Core) signal() int32 {
	if len(c.siginfo) >= 4 {
		if n := int32(binary.LittleEndian.Uint32(c.siginfo)); n != 0 {
			return n
		}
	}
	return c.threads[0].signo
}
