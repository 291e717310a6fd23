//go:build linux && amd64

package record

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
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
	functions := []abi.Range{{Addr: base, Len: uint64(len(code))}}
	for i, want := range map[int]struct {
		at uint64
		is bool
	}{1: {0, false}, 3: {0, false}, 5: {5, true}, 8: {7, true}, 11: {10, false}} {
		at, is, err := classTSC.at(code, base, base+uint64(i), functions)
		if err != nil || is != want.is || at != base+want.at {
			t.Errorf("bytes at %d: at %#x, %v, %v", i, at, is, err)
		}
	}
	if _, _, err := classTSC.at(code, base, base+15, functions); err != errDecode {
		t.Errorf("behind bytes that are none: %v", err)
	}
	if _, _, err := classTSC.at(code, base, base+5, nil); err != errOutside {
		t.Errorf("in no function: %v", err)
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
	if !isAmidData(table, len(table)/2) {
		t.Error("a table is taken for code")
	}
	code := bytes.Repeat([]byte{0x48, 0x89, 0xd8, 0xc3, 0x0f, 0x31, 0xc3, 0x90}, 2<<10)
	for _, i := range []int{4, len(code)/2 + 4} {
		if isAmidData(code, i) || isAmidData(append(slices.Clone(table), code...), len(table)+i) {
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
