package corefile

import (
	"bytes"
	"encoding/binary"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// The program's memory, of the core file and of the files that are mapped, for those who look for ELF
// files in it, and the arguments and the environment, which the kernel puts on the stack.

// memory implements image.FileReader.
type memory struct {
	*Core
	m     *memoryMap
	files map[uint32]*mappedFile // by object
}

// ReadMemory implements image.Memory.
func (m *memory) ReadMemory(addr uint64, b []byte) (n int) {
	for n < len(b) {
		got := m.read(addr+uint64(n), b[n:])
		if got == 0 {
			got = m.readBehind(addr+uint64(n), b[n:])
		}
		if got == 0 {
			break
		}
		n += got
	}
	return n
}

// readBehind reads what a file has at an address that the core file has not.
func (m *memory) readBehind(addr uint64, b []byte) int {
	g := m.m.at(addr)
	if g == nil || g.Object == 0 {
		return 0
	}
	return m.ReadFile(g.Object, addr-g.Start+g.Offset, b[:min(uint64(len(b)), pageSize-addr%pageSize)])
}

// ReadFile implements image.FileReader.
func (m *memory) ReadFile(object uint32, off uint64, b []byte) int {
	f := m.files[object]
	if f == nil || off > 1<<62 {
		return 0
	}
	n, _ := f.ReadAt(b, int64(off)) // a short read is one
	return n
}

// Bounds of what is believed to be on a stack.
const (
	maxStrings = 1 << 16 // arguments, and variables of the environment
	maxString  = 128 << 10
	maxText    = 8 << 20 // of all of them, in bytes
)

// stackText returns the arguments and the environment of the program as they are on its stack: argc, the
// pointers to the arguments, a null, those to the environment, a null, and the auxiliary vector (System V
// ABI, AMD64 supplement, 3.4.1). ok is false where they are not found there.
func (m *memory) stackText() (args, env []string, ok bool) {
	at, ok := m.findAuxv()
	if !ok {
		return nil, nil, false
	}
	back := func() (uint64, bool) {
		at -= 8
		return m.word(at)
	}
	if p, ok := back(); !ok || p != 0 {
		return nil, nil, false
	}
	var envp, argv []uint64
	for len(envp) < maxStrings {
		p, ok := back()
		if !ok {
			return nil, nil, false
		}
		if p == 0 {
			break
		}
		envp = append(envp, p)
	}
	for len(argv) < maxStrings {
		p, ok := back()
		if !ok {
			return nil, nil, false
		}
		if p == uint64(len(argv)) { // argc; pointers are larger
			left := maxText
			return m.strings(argv, &left), m.strings(envp, &left), true
		}
		argv = append(argv, p)
	}
	return nil, nil, false
}

// strings reads strings of which the last is pointed to first. left is how many bytes may be read.
func (m *memory) strings(list []uint64, left *int) (out []string) {
	for i := range list {
		s := m.cstring(list[len(list)-1-i], min(maxString, *left))
		*left -= len(s) + 1
		if *left <= 0 {
			break
		}
		out = append(out, s)
	}
	return out
}

func (m *memory) cstring(addr uint64, limit int) string {
	var s strings.Builder
	for s.Len() < limit {
		var b [256]byte
		n := m.ReadMemory(addr+uint64(s.Len()), b[:])
		if end := bytes.IndexByte(b[:n], 0); end >= 0 {
			s.Write(b[:end])
			break
		}
		if s.Write(b[:n]); n < len(b) {
			break
		}
	}
	return s.String()
}

func (m *memory) word(addr uint64) (uint64, bool) {
	var b [8]byte
	n := m.read(addr, b[:])
	return binary.LittleEndian.Uint64(b[:]), n == len(b)
}

// maxStack is how much of the stack is looked through for the auxiliary vector, in bytes.
const maxStack = 4 << 20

// findAuxv returns the address of the auxiliary vector on the stack. AT_RANDOM points behind it.
func (m *memory) findAuxv() (uint64, bool) {
	end := m.aux[abi.AT_RANDOM]
	s := m.segmentAt(end)
	if s == nil || len(m.auxv) < 64 {
		return 0, false
	}
	from := max(s.start, end-min(end, maxStack))
	b := make([]byte, end-from)
	b = b[:m.read(from, b)]
	for at := len(b) &^ 7; at >= 0; at -= 8 {
		if bytes.HasPrefix(b[at:], m.auxv[:64]) {
			return from + uint64(at), true
		}
	}
	return 0, false
}

// describe fills in what the core file says of the process.
func (m *memory) describe(o *checkpoint.Manifest, keepEnv string) {
	args, env, ok := m.stackText()
	if !ok {
		args = strings.Fields(m.command)
	}
	o.Program, o.Args, o.Env = m.program(m.m), args, checkpoint.MaskEnvironment(env, keepEnv)
	o.PID, o.Auxv = m.pid, m.auxv
	if o.PID < 1 {
		o.PID = int32(m.threads[0].tid)
	}
}
