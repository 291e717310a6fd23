//go:build linux && amd64

package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"vplay/checkpoint"
)

// What is added to the stack of a new program: cpulimits.go says what. A program
// may execute another one with any environment, an empty one too, so the
// environment is edited on each new stack, after execve and before the first
// instruction. What stands in /proc/PID/environ and /proc/PID/cmdline, and in the
// manifest, is what was passed to execve.

// newStack is what execve leaves on the stack, from its pointer up (System V
// ABI, AMD64 supplement, 3.4.1): argc, the pointers to the arguments and to the
// environment, each list with a 0 behind it, and the auxiliary vector.
type newStack struct{ args, env, auxv []uint64 }

// stackLimit bounds, in words, what is read of a new stack: the kernel bounds the
// strings and their pointers by 6 MiB (_STK_LIM / 4 * 3, fs/exec.c).
const stackLimit = 6 << 20 / 8

// readStack reads the new stack at the program's stack pointer.
func (t *thread) readStack() (*newStack, error) {
	at := t.regs.Rsp
	ahead := lookahead{space: t.space()}
	word := func() (uint64, error) {
		v, ok := ahead.word(at)
		if at-t.regs.Rsp > 8*stackLimit || !ok {
			return 0, fmt.Errorf("the new stack cannot be read at %#x", at)
		}
		at += 8
		return v, nil
	}
	list := func() (out []uint64, err error) {
		for {
			v, err := word()
			if err != nil || v == 0 {
				return out, err
			}
			out = append(out, v)
		}
	}
	if _, err := word(); err != nil { // argc
		return nil, err
	}
	var s newStack
	var err error
	if s.args, err = list(); err != nil {
		return nil, err
	}
	if s.env, err = list(); err != nil {
		return nil, err
	}
	for {
		key, err := word()
		if err != nil {
			return nil, err
		}
		v, err := word()
		if err != nil {
			return nil, err
		}
		s.auxv = append(s.auxv, key, v)
		if key == 0 {
			return &s, nil
		}
	}
}

// words returns the stack as it stands in memory.
func (s *newStack) words() []uint64 {
	out := append([]uint64{uint64(len(s.args))}, s.args...)
	out = append(append(append(out, 0), s.env...), 0)
	return append(out, s.auxv...)
}

// stackChange is what is changed on a new stack: variables of the environment that go, by
// index, those that come, and an argument that becomes the first.
type stackChange struct {
	gone map[int]bool
	add  []string
	arg  string // "" for none
}

// wantedEnv returns the change that this program needs.
func (p *process) wantedEnv(args, given []string) (c stackChange) {
	if !p.session.canFaultCPUID() {
		p.session.noteOnce("CPUID cannot be trapped here: " + tunables + ", " + opensslCap + " and others limit glibc, OpenSSL, Go, Node.js and Java to what can be replayed")
		c = p.limitsOf(args, given)
	}
	p.noteSanitizer(given)
	return c
}

// editEnv changes the environment of a program that is at the exit of its
// execve. The lists on the stack grow, so they move down, with the new strings
// above them, into the room that execve has made below the stack pointer (128
// KiB: setup_arg_pages, fs/exec.c).
func (t *thread) editEnv() error {
	s, err := t.readStack()
	if err != nil {
		return err
	}
	change := t.proc.wantedEnv(t.space().stringsAt(s.args), t.space().stringsAt(s.env))
	if len(change.add) == 0 && change.arg == "" {
		return nil
	}
	top, text, names := s.change(&change, t.regs.Rsp)
	var lists []byte
	for _, w := range s.words() {
		lists = binary.LittleEndian.AppendUint64(lists, w)
	}
	sp := (top - uint64(len(lists))) &^ 15
	b := make([]byte, t.regs.Rsp-sp)
	copy(b, lists)
	copy(b[top-sp:], text)
	old := make([]byte, len(b))
	if t.space().readMem(sp, old) != len(old) {
		return fmt.Errorf("no room on the new stack for %d bytes of environment", len(b))
	}
	t.space().artefact = append(t.space().artefact, checkpoint.Artefact{
		Addr: sp, Old: old, What: strings.Join(names, " and ") + " added to the new stack, the lists there moved down",
	})
	if n, err := t.space().mem.writeAt(b, sp); err != nil || n != len(b) {
		return fmt.Errorf("environment on the new stack at %#x: %w", sp, err)
	}
	t.regs.Rsp = sp
	return t.setRegs(&t.regs)
}

// stringsAt reads strings. One that is too long is none of those looked for.
func (sp *space) stringsAt(addrs []uint64) []string {
	out := make([]string, len(addrs))
	ahead := lookahead{space: sp}
	for i, addr := range addrs {
		out[i] = ahead.string(addr)
	}
	return out
}

// lookahead reads what stands close together in a program's memory: a call for each word or string takes longer than
// reading all of a new stack. The memory must not change meanwhile.
type lookahead struct {
	space *space
	at    uint64
	b     []byte // what is there, from at on
}

// lookaheadSize is how much is read at once, in bytes.
const lookaheadSize = 16384

// from returns what is known from addr on: n bytes or more, where so many can be read.
func (l *lookahead) from(addr uint64, n int) []byte {
	if addr < l.at || addr-l.at > uint64(len(l.b)) || len(l.b)-int(addr-l.at) < n {
		if l.b == nil {
			l.b = make([]byte, lookaheadSize)
		}
		l.at, l.b = addr, l.b[:cap(l.b)]
		l.b = l.b[:l.space.readMem(addr, l.b)]
	}
	return l.b[addr-l.at:]
}

// word reads the word at addr.
func (l *lookahead) word(addr uint64) (v uint64, ok bool) {
	b := l.from(addr, 8)
	if len(b) < 8 {
		return 0, false
	}
	return le64(b), true
}

// string reads the string at addr, or as much of it as space.readString does.
func (l *lookahead) string(addr uint64) string {
	b := l.from(addr, 1)
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		b = l.from(addr, stringLimit)
		end = bytes.IndexByte(b, 0)
	}
	if end < 0 || end > stringLimit {
		end = min(len(b), stringLimit)
	}
	return string(b[:end])
}

// change changes the lists of a stack that ends at end. It returns where the text of what is new
// is to stand, the text, and names for what is new.
func (s *newStack) change(c *stackChange, end uint64) (top uint64, text []byte, names []string) {
	added := c.add
	if c.arg != "" {
		added = append(slices.Clone(added), c.arg)
	}
	text = []byte(strings.Join(added, "\x00") + "\x00")
	top = end - uint64(len(text))
	kept := make([]uint64, 0, len(s.env)+len(c.add))
	for i, addr := range s.env {
		if !c.gone[i] {
			kept = append(kept, addr)
		}
	}
	at := top
	for i, v := range added {
		if i < len(c.add) {
			kept = append(kept, at)
			v, _, _ = strings.Cut(v, "=")
		} else {
			s.args = slices.Insert(s.args, 1, at)
		}
		names = append(names, v)
		at += uint64(len(added[i])) + 1
	}
	s.env = kept
	return top, text, names
}
