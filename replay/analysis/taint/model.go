package taint

import (
	"encoding/binary"

	"vplay/replay/x86"
)

// Functions that a model stands for: those of the C library that look at whole words where
// bytes are meant, and the allocator. While such a function runs its instructions are not looked
// at; the model says what became of the marks. What it calls is part of it.

// Model stands for a function. Enter is called at its first instruction, and returns what is called
// when it has returned; nil has the function's instructions looked at as others are.
type Model interface {
	Enter(t *Engine, f *Frame) Return
}

// Return is called behind a call, with the registers as it left them.
type Return func(t *Engine, f *Frame, result uint64)

// Frame is a call of a function that a model stands for.
type Frame struct {
	Args   [6]uint64 // the integer arguments
	Marks  [6]uint64 // which of their bits are marked
	Tags   [6]Tag
	Caller uint64 // the return address
	slot   uint64 // of it
	then   Return
}

// callArguments are the registers of integer arguments (System V ABI, AMD64 supplement, 3.2.3).
var callArguments = [6]uint8{x86.RDI, x86.RSI, x86.RDX, x86.RCX, x86.R8, x86.R9}

// scratch are the general registers that a call does not keep, without that of the result.
var scratch = [...]uint8{x86.RCX, x86.RDX, x86.RSI, x86.RDI, x86.R8, x86.R9, x86.R10, x86.R11}

// enter has a model stand for the function at whose first instruction c is.
func (t *Engine) enter(c *x86.CPU, m Model) bool {
	f := Frame{slot: c.R[x86.RSP]}
	var b [8]byte
	if n, _ := t.m.Mem.Peek(f.slot, b[:]); n < len(b) {
		return false
	}
	f.Caller = binary.LittleEndian.Uint64(b[:])
	for i, r := range callArguments {
		f.Args[i], f.Marks[i], f.Tags[i] = c.R[r], t.cur.r[r], t.cur.rTag[r]
	}
	if f.then = m.Enter(t, &f); f.then == nil {
		return false
	}
	t.cur.inside = append(t.cur.inside, f)
	return true
}

// returned reports whether the thread is no longer inside of a function that a model stands for.
func (t *Engine) returned(c *x86.CPU, g *thread) bool {
	f := &g.inside[len(g.inside)-1]
	if sp := c.R[x86.RSP]; sp <= f.slot || c.RIP != f.Caller && sp < f.slot+maxFrame {
		return false
	}
	g.inside = g.inside[:len(g.inside)-1]
	if c.RIP != f.Caller { // it was left by longjmp
		g.hasSP = false
		return true
	}
	for _, r := range scratch {
		g.setGeneral(r, ^uint64(0), 0, 0)
	}
	g.setGeneral(x86.RAX, ^uint64(0), 0, 0)
	g.setFlags(^uint64(0), 0, 0)
	for v := range uint8(32) {
		if g.sum>>(sumVector+v)&1 != 0 {
			g.setVector(v, laneMask(0xff), &vector{}, 0)
		}
	}
	g.hasSP = true
	g.sp = f.slot + 8
	if t.o.Stack != nil {
		t.Mem.Mark(g.sp-redZone, redZone, t.o.Stack(c.RIP))
	}
	f2 := *f
	f2.then(t, &f2, c.R[x86.RAX])
	return true
}

// Machine, for models: memory as it is.

// Peek copies the known bytes at a and returns how many there are.
func (t *Engine) Peek(a uint64, b []byte) int {
	n, _ := t.m.Mem.Peek(a, b)
	return n
}

// StringSize is how many bytes a string of characters of size bytes has, with its zero, most at
// most.
func (t *Engine) StringSize(a uint64, size int, most uint64) uint64 {
	return t.stringSize(a, size, most)
}

// MoveMemory copies the marks of n bytes, as memmove does the bytes.
func (t *Engine) MoveMemory(to, from, n uint64) {
	if !t.share {
		t.Mem.Move(to, from, n)
		return
	}
	t.eachPage(to, n, func(a, off, n uint64) { t.moveRange(a, from+off, n) })
}

// FirstMark returns the offset and the tag of the first of n bytes at a that is marked.
func (t *Engine) FirstMark(a, n uint64) (off uint64, tag Tag, ok bool) {
	var b [1]byte
	for off < n {
		at := a + off
		if t.Mem.page(t.key(at)) == nil {
			off += pageSize - at%pageSize
			continue
		}
		if tag := t.Mem.Load(t.key(at), b[:]); b[0] != 0 {
			return off, tag, true
		}
		off++
	}
	return 0, 0, false
}

// SetResult marks bits of the register in which functions return their result.
func (t *Engine) SetResult(marks uint64, tag Tag) { t.cur.setGeneral(x86.RAX, ^uint64(0), marks, tag) }

// Tell tells of a use, as of Options.Use.
func (t *Engine) Tell(u *Use) bool { return t.tell(u) }
