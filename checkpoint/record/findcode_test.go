//go:build linux && amd64

package record

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"testing"

	"vplay/checkpoint/abi"
)

// TestInsnAt: an instruction is told from its bytes in another one.
func TestInsnAt(t *testing.T) {
	const base = 0x1000
	code := []byte{
		0xb8, 0x0f, 0x31, 0x0f, 0x31, // MOV EAX, 0x310f310f
		0x0f, 0x31, // RDTSC
		0x66, 0x0f, 0x31, // with a prefix
		0xb0, 0x0f, 0x31, 0xc0, // MOV AL, 15; XOR EAX, EAX
		0x06,       // no instruction in 64-bit mode
		0x0f, 0x31, // behind it
	}
	section := &elf.Section{SectionHeader: elf.SectionHeader{Addr: base, FileSize: uint64(len(code))}}
	search := func(functions ...abi.Range) *codeSearch {
		return &codeSearch{r: bytes.NewReader(code), class: &classTSC, functions: func(addr uint64) (fn abi.Range, ok bool) {
			for _, f := range functions {
				if addr-f.Addr < f.Len {
					return f, true
				}
			}
			return fn, false
		}}
	}
	whole := search(abi.Range{Addr: base, Len: uint64(len(code))})
	for _, c := range []struct {
		i, at uint64
		is    bool
	}{{1, 0, false}, {3, 0, false}, {5, 5, true}, {8, 7, true}, {11, 10, false}, {5, 5, true}} {
		at, is, err := whole.insnAt(section, base+c.i)
		if err != nil || is != c.is || at != base+c.at {
			t.Errorf("bytes at %d: at %#x, %v, %v", c.i, at, is, err)
		}
	}
	if _, _, err := whole.insnAt(section, base+15); err != errDecode {
		t.Errorf("behind bytes that are none: %v", err)
	}
	if _, _, err := search().insnAt(section, base+5); err != errOutside {
		t.Errorf("in no function: %v", err)
	}
	parts := search(abi.Range{Addr: base, Len: 5}, abi.Range{Addr: base + 5, Len: 2}, abi.Range{Addr: base + 8, Len: 2})
	for _, c := range []struct {
		i, at uint64
		err   error
	}{{3, 0, nil}, {5, 5, nil}, {7, 0, errOutside}, {8, 8, nil}} {
		if at, _, err := parts.insnAt(section, base+c.i); err != c.err || err == nil && at != base+c.at {
			t.Errorf("of several functions, bytes at %d: at %#x, %v", c.i, at, err)
		}
	}
}

// TestEachPlace: places are found across the pieces that a file is read in, each once.
func TestEachPlace(t *testing.T) {
	for name, c := range map[string]struct {
		class *insnClass
		insn  []byte
		size  int
	}{"RDTSC": {&classTSC, []byte{0x0f, 0x31}, 2}, "RDTSCP": {&classTSC, []byte{0x0f, 0x01, 0xf9}, 3}, "RDSEED": {&classRandom, []byte{0x0f, 0xc7, 0xf9}, 3}} {
		for _, at := range []int{0, 1, pieceSize - 4, pieceSize - 3, pieceSize - 2, pieceSize - 1, pieceSize, 2*pieceSize - 6, 2*pieceSize - 5, 2*pieceSize - 4, 3*pieceSize - c.size} {
			b := bytes.Repeat([]byte{0x0f, 0xc7, 0x0e}, pieceSize) // CMPXCHG8B
			copy(b[at:], c.insn)
			if end := at + len(c.insn); end < len(b) {
				b[end] = 0x90
			}
			const before = 7 // what stands there is not asked for
			var got []uint64
			note := func(off uint64) error { got = append(got, off); return nil }
			if err := c.class.each(bytes.NewReader(append([]byte{0x0f, 0x31, 0x0f, 0xc7, 0xf9, 0x0f, 0x31}, b...)), before, uint64(len(b)), note); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, []uint64{uint64(before + at)}) {
				t.Errorf("%s at %d: found at %d", name, before+at, got)
			}
		}
	}
	err := classTSC.each(bytes.NewReader(make([]byte, 10)), 3, 8, nil)
	if err != io.EOF {
		t.Errorf("beyond the end of the file: %v", err)
	}
}

// TestAmidData: a table of constants is no code, and code is none.
func TestAmidData(t *testing.T) {
	table := make([]byte, 16<<10)
	x := uint64(1)
	for i := 0; i < len(table); i += 8 {
		x = x*6364136223846793005 + 1442695040888963407
		binary.LittleEndian.PutUint64(table[i:], x^x>>29)
	}
	around := func(b []byte, i int) ([]byte, int) {
		from := max(i-dataAround, 0)
		return b[from:min(i+dataAround, len(b))], i - from
	}
	if !isAmidData(around(table, len(table)/2)) {
		t.Error("a table is taken for code")
	}
	code := bytes.Repeat([]byte{0x48, 0x89, 0xd8, 0xc3, 0x0f, 0x31, 0xc3, 0x90}, 2<<10)
	for _, i := range []int{4, len(code)/2 + 4} {
		if isAmidData(around(code, i)) || isAmidData(around(append(slices.Clone(table), code...), len(table)+i)) {
			t.Errorf("code at %d is taken for a table", i)
		}
	}
}

// FuzzFindCode: the files that a program has mapped are input like any other.
func FuzzFindCode(f *testing.F) {
	var b bytes.Buffer
	h := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: 64, Ehsize: 64, Shentsize: 64, Shnum: 5, Shstrndx: 4}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	const at = 64 + 5*64
	names := "\x00.eh_frame\x00.eh_frame_hdr\x00.text\x00"
	text := []byte{0x0f, 0x31, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x0f, 0x31, 0xc3, 0x90}
	frames := make([]byte, 16)
	binary.LittleEndian.PutUint32(frames[8:], ^uint32(8+16)+1) // of text, 16 bytes before
	binary.LittleEndian.PutUint32(frames[12:], 8)
	hdr := []byte{1, pcrelInt32, uint32Plain, datarelInt32, 0, 0, 0, 0, 1, 0, 0, 0, 0xe0, 0xff, 0xff, 0xff, 0xf0, 0xff, 0xff, 0xff}
	sections := []elf.Section64{
		{},
		{Name: 25, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Addr: 0x1000, Off: at, Size: uint64(len(text))},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Addr: 0x1010, Off: at + 16, Size: 16},
		{Name: 11, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Addr: 0x1020, Off: at + 32, Size: uint64(len(hdr))},
		{Name: 0, Type: uint32(elf.SHT_STRTAB), Off: at + 64, Size: uint64(len(names))},
	}
	_ = binary.Write(&b, binary.LittleEndian, h)
	_ = binary.Write(&b, binary.LittleEndian, sections)
	b.Write(append(text, make([]byte, 16-len(text))...))
	b.Write(frames)
	b.Write(append(hdr, make([]byte, 32-len(hdr))...))
	b.WriteString(names)
	c, err := findCode(bytes.NewReader(b.Bytes()), &classTSC)
	if err != nil || len(c.known) != 1 || c.known[0].off != at || !slices.Equal(c.doubt, []uint64{at + 8}) {
		f.Fatalf("the seed has %+v, %v", c, err)
	}
	f.Add(b.Bytes())
	if exe, err := os.ReadFile("/proc/self/exe"); err == nil {
		f.Add(exe[:min(len(exe), 4<<10)])
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		c, err := findCode(bytes.NewReader(b), &classTSC)
		if err != nil {
			return
		}
		for _, i := range c.known {
			if i.off+jumpSize > uint64(len(b)) {
				panic("an instruction behind the end of its file")
			}
		}
	})
}

// TestLooksLikeTrap: what has no unwind table is told from the bytes around it.
func TestLooksLikeTrap(t *testing.T) {
	const before = "\xcc\x64\x48\x8b\x04\x25\xf8\xff\xff\xff\x48\x39\x60\x08\x77\x05\xe8\xcc\xff\xff\xff\x48\x3b\x20\x77\x05\xe8\xc2\xff\xff\xff\xc3\xcc"
	ticks := "\x80\x3d\x75\x38\xd2\x00\x01\x75\x10\x0f\x01\xf9\x48\xc1\xe2\x20\x48\x01\xd0\x48\x89\x44\x24\x08\xc3\x0f\xae\xf0\x0f\xae\xe8\x0f\x31\xeb\xe9" // runtime.cputicks of Go
	cpuid := "\x8b\x44\x24\x08\x8b\x4c\x24\x0c\x0f\xa2\x89\x44\x24\x10\x89\x5c\x24\x14\x89\x4c\x24\x18\x89\x54\x24\x1c\xc3"                                 // its internal/cpu.cpuid
	behind := string(bytes.Repeat([]byte{0xcc}, 16))
	for _, c := range []struct {
		name, code, insn string
		want             bool
	}{
		{"RDTSCP", before + ticks, "\x0f\x01\xf9", true},
		{"RDTSC", before + ticks, "\x0f\x31", true},
		{"CPUID", before + cpuid, "\x0f\xa2", true},
		{"the number of a MOV", before + "\xb8\x0f\x31\x00\x00\x48\xc1\xe2\x20\xc3", "\x0f\x31", false},
		{"a number that is not put together", before + "\x90\x0f\x31\xc3", "\x0f\x31", false},
		{"text", before + "0123456789abcdef\x0f\xa2ghijklmnopqrst", "\x0f\xa2", false},
	} {
		code := []byte(c.code + behind)
		i := bytes.LastIndex(code, []byte(c.insn))
		if got := looksLikeTrap(code, i); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
