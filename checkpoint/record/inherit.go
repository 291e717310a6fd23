//go:build linux && amd64

package record

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi"
)

// A program inherits which signals are ignored and which are blocked: nohup and
// "trap '' INT" count on it. Go's runtime puts its own handlers in the place of
// SIG_IGN, and unblocks signals, before any code of ours runs. It keeps what it
// found, in variables that no package can name. So they are read from this process's
// memory, where the executable's symbols say that they are. Without symbols the
// program gets what the kernel and os/signal tell, which is what the runtime left alone.

// inheritance is what the recorder found at its start and the program gets: sets of
// signals as the kernel has them, bit n-1 is signal n.
type inheritance struct{ ignored, blocked uint64 }

// inherited returns what this process has inherited.
func inherited() inheritance {
	var in inheritance
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT} {
		if signal.Ignored(sig) {
			in.ignored |= 1 << (sig - 1)
		}
	}
	// The runtime's threads block all signals at times; not one that runs a goroutine.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if b, err := os.ReadFile("/proc/thread-self/status"); err == nil {
		status := abi.ProcStatus(b)
		in.ignored |= status.Mask("SigIgn")
		in.blocked = status.Mask("SigBlk")
	}
	found := ownVariables(map[string]uint64{"runtime.fwdSig": 65 * 8, "runtime.initSigmask": 8})
	if actions := found["runtime.fwdSig"]; actions != nil { // [65]uintptr, by signal
		for sig := 1; sig < len(actions)/8; sig++ {
			if binary.LittleEndian.Uint64(actions[8*sig:]) == sigIgn {
				in.ignored |= 1 << (sig - 1)
			}
		}
	}
	if mask := found["runtime.initSigmask"]; mask != nil {
		in.blocked = binary.LittleEndian.Uint64(mask)
	}
	return in
}

// ownVariables returns the bytes of variables of this process, by name; sizes are in
// bytes. It leaves out those that the executable's symbols do not have in that size, and
// all when it may be loaded anywhere. The executable is mapped: reading its symbols into
// memory would take a tenth of what it costs to record a short program.
func ownVariables(sizes map[string]uint64) map[string][]byte {
	exe, err := fileInMemory("/proc/self/exe")
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Munmap(exe) }() // it is what was mapped
	f, err := elf.NewFile(bytes.NewReader(exe))
	if err != nil {
		return nil
	}
	table := f.SectionByType(elf.SHT_SYMTAB)
	if table == nil || f.Type != elf.ET_EXEC || int(table.Link) >= len(f.Sections) {
		return nil
	}
	symbols, names := sectionOf(exe, table), sectionOf(exe, f.Sections[table.Link])
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil
	}
	defer func() { _ = mem.Close() }() // it was only read
	type variable struct {
		name []byte // and the 0 behind it
		size uint64
	}
	var wanted []variable
	for name, size := range sizes {
		wanted = append(wanted, variable{[]byte(name + "\x00"), size})
	}
	out := map[string][]byte{}
	for ; len(symbols) >= elf.Sym64Size && len(out) < len(wanted); symbols = symbols[elf.Sym64Size:] {
		at, size := binary.LittleEndian.Uint32(symbols), binary.LittleEndian.Uint64(symbols[16:])
		for i := range wanted {
			v := &wanted[i]
			if size != v.size || int(at) >= len(names) || !bytes.HasPrefix(names[at:], v.name) {
				continue
			}
			b := make([]byte, size)
			if _, err := mem.ReadAt(b, int64(binary.LittleEndian.Uint64(symbols[8:]))); err == nil {
				out[string(v.name[:len(v.name)-1])] = b
			}
		}
	}
	return out
}

// fileInMemory maps a file to be read.
func fileInMemory(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // what is mapped stays
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, int(fi.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
}

// sectionOf returns a section of a file that is in memory; nothing where it is not all there.
func sectionOf(file []byte, s *elf.Section) []byte {
	n := uint64(len(file))
	if s.Type == elf.SHT_NOBITS || s.Offset > n || s.FileSize > n-s.Offset {
		return nil
	}
	return file[s.Offset : s.Offset+s.FileSize]
}

// passedOn returns the descriptors from number first on that the recorder was started
// with, up to the first number that is free: the launcher's own goes there. Those behind
// are passed on without being named. The files are copies, closed by the function.
func passedOn(first int) (files []*os.File, done func()) {
	for fd := first; ; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			break
		}
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, first)
		if err != nil {
			break
		}
		files = append(files, os.NewFile(uintptr(copied), "inherited"))
	}
	return files, func() {
		for _, f := range files {
			_ = f.Close() // the program has its own
		}
	}
}

// inheritanceSize is the size of an encoded inheritance, in bytes.
const inheritanceSize = 16

func (in inheritance) encode() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, in.ignored), in.blocked)
}

func decodeInheritance(b []byte) inheritance {
	return inheritance{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// apply makes it the state of the calling thread, which executes a program next.
// Signals that have handlers get their default action by execve.
func (in inheritance) apply() {
	ignore := kernelAction{handler: sigIgn}
	for sig := 1; sig <= 64; sig++ {
		if in.ignored>>(sig-1)&1 != 0 {
			setAction(unix.Signal(sig), &ignore)
		}
	}
	setMask(in.blocked)
}
