package debug

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/replay"
)

// The C library ends a program by abort where it finds its memory damaged: the guard of
// a stack frame, or the header of a heap block. The damage was done earlier, and a
// recording has the store that did it.

// AbortMessage returns what glibc said when it aborted: it keeps that for debuggers, at
// __abort_msg (glibc, include/stdlib.h: a size of 4 bytes and the text). "" when there
// is none.
func AbortMessage(r *loader.Resolver, m Memory) string {
	for _, mod := range r.Modules() {
		if !strings.HasPrefix(baseName(mod.Path), "libc.so") && !strings.HasPrefix(baseName(mod.Path), "libc-") {
			continue
		}
		d := r.Open(mod.Base)
		if d == nil {
			continue
		}
		addr, ok := d.Lookup("__abort_msg")
		if !ok {
			continue
		}
		at, ok := m.Word(mod.Bias + addr)
		if !ok || at == 0 {
			continue
		}
		b := make([]byte, maxAbortMessage)
		text, _, _ := strings.Cut(string(b[:m.ReadMemory(at+4, b)]), "\x00")
		return strings.TrimSpace(text)
	}
	return ""
}

// maxAbortMessage bounds the message, in bytes.
const maxAbortMessage = 256

func baseName(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// frameOf returns the index of the first frame in a function of one of the names, and
// where the function begins; -1 when there is none.
func frameOf(frames []dwarf.Frame, names ...string) (i int, entry uint64) {
	for i := range frames {
		f := &frames[i]
		if f.Module == nil {
			continue
		}
		name, low, ok := f.Module.Function(f.PC - f.Bias)
		for _, n := range names {
			if ok && name == n {
				return i, low + f.Bias
			}
		}
	}
	return -1, 0
}

// smashedGuard returns the stack guard that __stack_chk_fail was called for: where it is,
// what is there, and the function whose it is. A function puts its guard, which it
// takes from %fs:0x28, on the stack when it begins.
func smashedGuard(f *replay.FinalImage, r *loader.Resolver) *Overwrite {
	st, m := &f.Current().State, Memory{Space: f.Mem}
	frames := r.Backtrace(&checkpoint.Regs{R: st.R, RIP: st.RIP}, 64)
	i, _ := frameOf(frames, "__stack_chk_fail", "__stack_chk_fail_local")
	if i < 0 || i+1 >= len(frames) || frames[i+1].Module == nil {
		return nil
	}
	in := &frames[i+1]
	name, low, ok := in.Module.Function(in.PC - in.Bias)
	if !ok || in.PC-in.Bias-low > maxFunction {
		return nil
	}
	code := make([]byte, in.PC-in.Bias-low)
	code = code[:m.ReadMemory(low+in.Bias, code)]
	guard, ok := m.Word(st.FSBase + guardOffset)
	if !ok {
		return nil
	}
	o := &Overwrite{What: "stack guard of " + name}
	if o.Slot, ok = guardSlot(code, &in.Regs); !ok {
		return nil
	}
	if o.Value, ok = m.Word(o.Slot); !ok || o.Value == guard {
		return nil
	}
	return o
}

// guardOffset is where a thread has the value of its guards (System V ABI, AMD64
// supplement; gcc -mstack-protector-guard-offset).
const guardOffset = 0x28

// maxFunction bounds how much of a function is decoded, in bytes.
const maxFunction = 1 << 20

// guardSlot finds where code stores the guard first.
func guardSlot(code []byte, regs *dwarf.Regs) (uint64, bool) {
	bases := map[x86asm.Reg]int{x86asm.RSP: dwarf.RSP, x86asm.RBP: dwarf.RBP}
	var held x86asm.Reg
	for len(code) > 0 {
		in, err := decode(code)
		if err != nil || in.Len == 0 {
			return 0, false
		}
		code = code[in.Len:]
		if in.Op != x86asm.MOV {
			continue
		}
		if m, ok := in.Args[1].(x86asm.Mem); ok && m.Segment == x86asm.FS && m.Base == 0 && m.Index == 0 && m.Disp == guardOffset {
			held, _ = in.Args[0].(x86asm.Reg)
			continue
		}
		m, ok := in.Args[0].(x86asm.Mem)
		if r, isReg := in.Args[1].(x86asm.Reg); held == 0 || !ok || !isReg || r != held {
			continue
		}
		base, ok := bases[m.Base]
		if !ok || m.Index != 0 || regs.Known>>base&1 == 0 {
			return 0, false
		}
		return regs.V[base] + uint64(m.Disp), true
	}
	return 0, false
}

// heapFault says what of a block glibc's malloc found wrong.
type heapFault uint8

const (
	badHeader  heapFault = iota // the size before the block
	badNext                     // the size before the next block
	freedTwice                  // the block has been freed
)

// heapFaults are by what the message begins with (glibc, malloc/malloc.c).
var heapFaults = []struct {
	message string
	fault   heapFault
}{
	{"double free or corruption (out)", badHeader},
	{"double free or corruption (!prev)", badNext},
	{"double free or corruption", freedTwice},
	{"free(): double free detected", freedTwice},
	{"free(): invalid next size", badNext},
	{"free(): invalid pointer", badHeader},
	{"free(): invalid size", badHeader},
	{"free(): corrupted unsorted chunks", badNext},
	{"corrupted size vs. prev_size", badNext},
	{"munmap_chunk(): invalid pointer", badHeader},
	{"realloc(): invalid pointer", badHeader},
	{"realloc(): invalid old size", badHeader},
	{"realloc(): invalid next size", badNext},
}

// badBlock returns what is wrong with the block that free or realloc was called with. The
// cursor ends up anywhere.
func (e *Ending) badBlock(ctx context.Context, c *replay.Cursor) (o *Overwrite, err error) {
	fault, ok := heapFault(0), false
	for _, h := range heapFaults {
		if ok = strings.HasPrefix(e.Message, h.message); ok {
			fault = h.fault
			break
		}
	}
	st := &e.Final.Current().State
	frames := e.Names.Backtrace(&checkpoint.Regs{R: st.R, RIP: st.RIP}, 64)
	i, entry := frameOf(frames, "cfree", "free", "__libc_free", "__GI___libc_free", "realloc", "__libc_realloc", "__GI___libc_realloc")
	if !ok || i < 0 {
		return nil, nil
	}
	found, err := c.Timeline().Find(ctx, &replay.Search{Exec: []uint64{entry}, Most: 1})
	if err == nil && len(found) > 0 {
		err = c.Seek(ctx, found[0].Pos)
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	block := c.Machine().CPU.R[7]
	size, _ := Memory{Space: c.Machine().Mem}.Word(block - 8)
	o = &Overwrite{Slot: block - 8}
	switch fault {
	case badHeader:
		o.What = fmt.Sprintf("size of the block at %#x, if it is one", block)
	case badNext:
		o.Slot += size &^ 15
		o.What = fmt.Sprintf("size of the block behind the one at %#x", block)
	case freedTwice:
		return e.freedBefore(ctx, c, entry, block)
	}
	o.Value, ok = Memory{Space: c.Machine().Mem}.Word(o.Slot)
	if !ok {
		return nil, nil
	}
	return o, nil
}

// freedBefore looks for the call before the present one that has the same argument.
func (e *Ending) freedBefore(ctx context.Context, c *replay.Cursor, entry, block uint64) (*Overwrite, error) {
	o := &Overwrite{What: fmt.Sprintf("the block at %#x", block), Slot: block, IsFreed: true}
	c.SetBreakpoints([]uint64{entry}, func(m *replay.Machine) bool { return m.CPU.R[7] == block })
	c.SetSignals(func(int32) bool { return false })
	stop, err := c.ReverseContinue(ctx)
	switch {
	case err != nil:
		return nil, err
	case stop.Edge:
		o.Why = "it was not freed before in the recorded time"
		return o, nil
	}
	e.place(o, c)
	return o, nil
}
