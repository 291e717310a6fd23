//go:build linux && amd64

package record

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// The vdso of a program that is attached to. Its functions read the time stamp counter and pages
// that the kernel writes at any time. From a new program it is hidden in the auxiliary vector; one
// that runs has the addresses of the functions already. So each function begins with a jump to
// code that makes the system call instead.
//
// At the end the functions get their first instructions back. The code that made the calls
// stays: a thread may be in it, or return to it from a signal handler. It stands in the zeros
// between the end of the vdso and that of its last page, and does no harm there.

// vdsoName is what the kernel calls its mapping.
const vdsoName = "[vdso]"

// codePatch is code of the program's that is replaced.
type codePatch struct {
	addr     uint64
	old, now []byte
}

// entryJump is the size of a JMP with a 32-bit offset.
const entryJump = 5

// jumpTo is such a jump.
func jumpTo(at, to uint64) []byte {
	return binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(to-at-entryJump))
}

// callStub is a function that makes system call nr: MOV EAX, nr; SYSCALL; RET.
func callStub(nr uint32) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{0xb8}, nr)
	return append(b, 0x0f, 0x05, 0xc3)
}

// randomStub is getrandom(2), which in the vdso has two arguments more: where the last is -1 a
// caller asks how large its state is to be, and is told that there is no such function.
func randomStub() []byte {
	b := []byte{0x49, 0x83, 0xf8, 0xff, 0x74, 0x08} // CMP R8, -1; JE +8
	b = append(b, callStub(unix.SYS_GETRANDOM)...)
	return append(b, 0xb8, 0xda, 0xff, 0xff, 0xff, 0xc3) // MOV EAX, -ENOSYS; RET
}

// vdsoStubs has the functions of the vdso (arch/x86/entry/vdso/vdso.lds.S) that need one.
var vdsoStubs = []struct {
	name string
	code []byte
}{
	{"__vdso_clock_gettime", callStub(unix.SYS_CLOCK_GETTIME)},
	{"__vdso_gettimeofday", callStub(unix.SYS_GETTIMEOFDAY)},
	{"__vdso_clock_getres", callStub(unix.SYS_CLOCK_GETRES)},
	{"__vdso_time", callStub(unix.SYS_TIME)},
	{"__vdso_getcpu", callStub(unix.SYS_GETCPU)},
	{"__vdso_getrandom", randomStub()},
}

// vdsoStubSize is the room of each.
const vdsoStubSize = 32

// callSite is the code for injected calls, the last of the stubs. A program whose recorder is killed comes out of the call
// with the recorder's registers, and must do no harm until the guardian has it: it waits here, for some seconds, then it
// ends, as it would have by going on.
var callSite = []byte{
	0x0f, 0x05, // SYSCALL
	0xb9, 0, 0, 0, 8, // MOV ECX, 1<<27
	0xf3, 0x90, // PAUSE, of 40 to 140 cycles
	0xff, 0xc9, // DEC ECX
	0x75, 0xfa, // JNZ to the PAUSE
	0x0f, 0x0b, // UD2
	0xcc,
	// copies: the same for a call that makes a copy of the process, which ends at once where nobody traces it.
	0x0f, 0x05, // SYSCALL
	0x85, 0xc0, // TEST EAX, EAX
	0x75, 0xec, // JNZ to the MOV above
	0xb8, 60, 0, 0, 0, // MOV EAX, exit(2)
	0x31, 0xff, // XOR EDI, EDI
	0x0f, 0x05, // SYSCALL
}

// copies is where in callSite a copy is made.
const copies = 16

// siteAt is where it is in a vdso that ends at end.
func siteAt(end uint64) uint64 { return end - vdsoStubSize }

// isCallSite reports whether an address for injected calls has that code, and not an instruction of the vdso's own.
func isCallSite(site uint64) bool { return siteAt(site&^pageMask+checkpoint.PageSize) == site }

// stubs returns the code of all, each at a multiple of vdsoStubSize.
func stubs() []byte {
	b := make([]byte, (len(vdsoStubs)+1)*vdsoStubSize)
	for i, s := range vdsoStubs {
		copy(b[i*vdsoStubSize:], s.code)
	}
	copy(b[len(vdsoStubs)*vdsoStubSize:], callSite)
	return b
}

// isRoom reports whether memory behind the end of a vdso is free, or has all or part of the code that is to
// go there, of an earlier recording.
func isRoom(room, code []byte) bool {
	if len(room) != len(code) {
		return false
	}
	for i := range room {
		if room[i] != 0 && room[i] != code[i] {
			return false
		}
	}
	return true
}

// placeSite writes the code for injected calls behind the end of the vdso of a new program, from which it is hidden. Where it
// has no room there, an instruction of the vdso's own must do.
func (sp *space) placeSite(m *mapping) error {
	all := stubs()
	at := siteAt(m.End)
	placed, err := sp.placeBehind(at, all[len(all)-vdsoStubSize:], "code for the recorder's system calls")
	if err != nil {
		return err
	}
	if !placed {
		sp.site, err = findSyscall(sp.mem, m.Start, m.End)
		return err
	}
	sp.site = at
	return sp.placeSegv(m.End)
}

// placeBehind writes what the recorder needs behind the end of the vdso, and reports whether it has room there.
func (sp *space) placeBehind(at uint64, code []byte, what string) (bool, error) {
	room := make([]byte, len(code))
	if sp.readMem(at, room) != len(room) || !isRoom(room, code) {
		return false, nil
	}
	if n, err := sp.mem.writeAt(code, at); err != nil || n != len(code) {
		return false, fmt.Errorf("the vdso cannot be changed: %w", err)
	}
	sp.artefact = append(sp.artefact, checkpoint.Artefact{Addr: at, Old: room, What: what + ", behind the end of the vdso"})
	return true, nil
}

// findVDSO finds the vdso and what is to be replaced in it.
func (sp *space) findVDSO() error {
	var at *mapping
	for m := range sp.maps.tree.From(0) {
		if m.Name == vdsoName {
			at = m
		}
	}
	if at == nil {
		return &refusal{"it has unmapped its vdso", "such a program cannot be recorded by attaching"}
	}
	sp.vdso, sp.vdsoEnd = at.Start, at.End
	image := make([]byte, at.End-at.Start)
	if n := sp.readMem(at.Start, image); n != len(image) {
		return errors.New("the vdso cannot be read")
	}
	var err error
	sp.patches, err = planVDSO(image, at.Start)
	for i, p := range sp.patches {
		what := "code that makes system calls, behind the end of the vdso"
		if i > 0 {
			what = "a function of the vdso makes the system call"
		}
		sp.artefact = append(sp.artefact, checkpoint.Artefact{Addr: p.addr, Old: p.old, What: what})
	}
	return err
}

// planVDSO returns what is to be changed in a vdso at an address: the first is new code, the
// others jumps to it.
func planVDSO(image []byte, start uint64) ([]codePatch, error) {
	symbols, err := vdsoSymbols(image)
	if err != nil {
		return nil, err
	}
	code := stubs()
	at := len(image) - len(code)
	if at < 0 || !isRoom(image[at:], code) {
		return nil, &refusal{"its vdso has no room behind its end", "please report it, with the version of the kernel"}
	}
	list := []codePatch{{start + uint64(at), bytes.Clone(image[at:]), code}}
	for i, stub := range vdsoStubs {
		for _, s := range symbols {
			if s.Name != stub.name {
				continue
			}
			if s.Size < entryJump || s.Value > uint64(at) {
				return nil, fmt.Errorf("%s of the vdso has no room for a jump", s.Name)
			}
			from := start + s.Value
			list = append(list, codePatch{from, bytes.Clone(image[s.Value:][:entryJump]), jumpTo(from, list[0].addr+uint64(i*vdsoStubSize))})
		}
	}
	return list, nil
}

// vdsoSymbols returns the functions of a vdso.
func vdsoSymbols(image []byte) ([]elf.Symbol, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("the vdso: %w", err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("the vdso: %w", err)
	}
	return symbols, nil
}

// patchVDSO has the functions of the vdso make system calls, and injected calls their place.
func (sp *space) patchVDSO() error {
	for _, p := range sp.patches {
		if n, err := sp.mem.writeAt(p.now, p.addr); err != nil || n != len(p.now) {
			return fmt.Errorf("the vdso cannot be changed: %w", err)
		}
	}
	sp.attached, sp.site = true, siteAt(sp.vdsoEnd)
	return sp.placeSegv(sp.vdsoEnd)
}

// unpatchVDSO gives the functions their own code back.
func unpatchVDSO(mem memory, patches []codePatch) error {
	for _, p := range patches[min(1, len(patches)):] {
		if n, err := mem.writeAt(p.old, p.addr); err != nil || n != len(p.old) {
			return fmt.Errorf("the vdso cannot be changed back: %w", err)
		}
	}
	return nil
}

// stepLimit is how many instructions a thread may take to leave the vdso.
const stepLimit = 1 << 20

// handlerDepth is how many bytes of a stack are searched for where a signal handler returns to.
const handlerDepth = 64 << 10

// returnsIntoPatch reports whether the thread's stack has an address that is inside an instruction
// once the vdso is changed: where a signal handler returns to that has interrupted a function there.
func (t *thread) returnsIntoPatch() bool {
	sp := t.space()
	b := make([]byte, handlerDepth)
	for b = b[:sp.readMem(t.regs.Rsp&^7, b)]; len(b) >= 8; b = b[8:] {
		word := le64(b)
		if word < sp.vdso || word >= sp.vdsoEnd {
			continue
		}
		for _, p := range sp.patches[1:] {
			if word > p.addr && word-p.addr < entryJump {
				return true
			}
		}
	}
	return false
}

// leaveVDSO has a thread execute instructions, one at a time, until it is neither in the vdso nor
// in a restartable sequence. Signals wait. The kernel forces the SIGTRAP of each step on a thread that blocks it, and takes it out
// of its mask and its action away then: so it is not blocked meanwhile.
func (t *thread) leaveVDSO() (err error) {
	const trap = 1 << (unix.SIGTRAP - 1)
	mask, err := t.session.source.getSigmask(t.tid)
	if err != nil {
		return err
	}
	if mask&trap != 0 && (t.inVDSO() || t.rseqSection()) {
		if err := t.session.source.setSigmask(t.tid, mask&^trap); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.session.source.setSigmask(t.tid, mask)) }()
	}
	for n := 0; t.inVDSO() || t.rseqSection(); n++ {
		if n == stepLimit {
			return &refusal{fmt.Sprintf("thread %d does not leave the vdso", t.tid), "try again"}
		}
		ws, err := t.runTo(ptrace.SingleStep, 0)
		switch {
		case err != nil:
			return err
		case !ws.Stopped():
			return &goneError{ws}
		}
		if sig := signalOf(ws); sig != 0 {
			var si ptrace.Siginfo
			if ptrace.GetSiginfo(t.tid, &si) == nil && !isFault(sig, &si) {
				t.sig.held = append(t.sig.held, heldSignal{sig, si})
				t.noteHeld()
			}
		}
		if err := t.readRegs(); err != nil {
			return err
		}
	}
	if t.returnsIntoPatch() {
		return &refusal{fmt.Sprintf("thread %d is in a signal handler that has interrupted the vdso", t.tid), "try again"}
	}
	return nil
}

func (t *thread) inVDSO() bool {
	return t.regs.Rip >= t.space().vdso && t.regs.Rip < t.space().vdsoEnd
}
