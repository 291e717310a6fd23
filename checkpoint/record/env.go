//go:build linux && amd64

package record

import (
	"encoding/binary"
	"fmt"
	"strings"

	"vplay/checkpoint"
)

// Where CPUID cannot be made to fault, the environment tells libraries to
// use nothing that replay does not know. A program may execute another one with
// any environment, an empty one too, so the environment is edited on each new
// stack, after execve and before the first instruction. What stands in
// /proc/PID/environ, and in the manifest, is what was passed to execve.

const tunables = "GLIBC_TUNABLES"

// OpenSSL asks the CPU itself, and may be told by OPENSSL_ia32cap(3) what to
// leave alone: of leaf 7 EBX here AVX512F, DQ, IFMA, CD, BW and VL.
const (
	opensslCap  = "OPENSSL_ia32cap"
	opensslMask = ":~0xd0230000"
)

// limits returns the variables that limit a program with the given environment,
// and the index of the one that is replaced by them, -1 when there is none.
// There is nothing to add to an environment that has them.
func limits(given []string) (replaced int, add []string) {
	replaced = -1
	old, masked := "", false
	for i, e := range given {
		if v, ok := strings.CutPrefix(e, tunables+"="); ok && replaced < 0 {
			replaced, old = i, v
		}
		masked = masked || strings.HasPrefix(e, opensslCap+"=")
	}
	if !masked {
		add = append(add, opensslCap+"="+opensslMask)
	}
	v := mergeTunables(old, "glibc.cpu.hwcaps=-"+strings.Join(hwcaps, ",-"))
	if v == old {
		return -1, add
	}
	return replaced, append(add, tunables+"="+v)
}

// mergeTunables joins two values of GLIBC_TUNABLES; a later hwcaps list would
// replace an earlier one, so ours is appended to the program's own. One that has
// ours, as a program inherits it, stays.
func mergeTunables(old, mine string) string {
	if old == "" {
		return mine
	}
	name, list, _ := strings.Cut(mine, "=")
	if strings.Contains(old, list) {
		return old
	}
	parts := strings.Split(old, ":")
	for i, p := range parts {
		if n, v, ok := strings.Cut(p, "="); ok && n == name {
			parts[i] = n + "=" + v + "," + list
			return strings.Join(parts, ":")
		}
	}
	return old + ":" + mine
}

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
	word := func() (uint64, error) {
		var w [8]byte
		if at-t.regs.Rsp > 8*stackLimit || t.space().readMem(at, w[:]) != len(w) {
			return 0, fmt.Errorf("the new stack cannot be read at %#x", at)
		}
		at += 8
		return le64(w[:]), nil
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

// envChange is what is changed of an environment: variables that go, by index,
// and those that come.
type envChange struct {
	gone map[int]bool
	add  []string
}

// wantedEnv returns the change that this program's environment needs.
func (p *process) wantedEnv(given []string) envChange {
	c := envChange{gone: map[int]bool{}}
	if !p.session.canFaultCPUID() {
		p.session.noteOnce("CPUID cannot be trapped here: " + tunables + " and " + opensslCap + " limit glibc and OpenSSL to what can be replayed")
		i, add := limits(given)
		c.gone[i], c.add = true, add
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
	given := make([]string, len(s.env))
	for i, addr := range s.env {
		given[i], _ = t.space().readString(addr) // one that is too long is none of those looked for
	}
	change := t.proc.wantedEnv(given)
	if len(change.add) == 0 {
		return nil
	}
	env := make([]uint64, 0, len(s.env)+len(change.add))
	for i, addr := range s.env {
		if !change.gone[i] {
			env = append(env, addr)
		}
	}
	text := []byte(strings.Join(change.add, "\x00") + "\x00")
	top := t.regs.Rsp - uint64(len(text))
	var names []string
	at := top
	for _, v := range change.add {
		env = append(env, at)
		at += uint64(len(v)) + 1
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	s.env = env
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
		Addr: sp, Old: old, What: strings.Join(names, " and ") + " added to the environment, the lists on the stack moved down",
	})
	if n, err := t.space().mem.writeAt(b, sp); err != nil || n != len(b) {
		return fmt.Errorf("environment on the new stack at %#x: %w", sp, err)
	}
	t.regs.Rsp = sp
	return t.setRegs(&t.regs)
}
