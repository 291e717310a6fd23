package dwarf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"
)

// manySymbols is an ELF file of so many symbols, whose names are what is left of one long
// name.
func manySymbols(t *testing.T, symbols int) []byte {
	t.Helper()
	names := bytes.Repeat([]byte{'x'}, 4*maxString)
	names[len(names)-1] = 0
	var table bytes.Buffer
	write := func(b *bytes.Buffer, v any) {
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	for i := range symbols {
		write(&table, elf.Sym64{Name: uint32(i % 100), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1, Value: uint64(1 + i)})
	}
	const head, section = 64, 64
	at := uint64(head + 4*section)
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: head,
		Ehsize: head, Shentsize: section, Shnum: 4, Shstrndx: 3,
	}
	copy(h.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1}))
	var file bytes.Buffer
	write(&file, h)
	for _, s := range []elf.Section64{
		{},
		{Type: uint32(elf.SHT_STRTAB), Off: at, Size: uint64(len(names))},
		{Type: uint32(elf.SHT_SYMTAB), Off: at + uint64(len(names)), Size: uint64(table.Len()), Link: 1, Entsize: symbolSize},
		{Type: uint32(elf.SHT_STRTAB), Off: at + uint64(len(names)) - 1, Size: 1},
	} {
		write(&file, s)
	}
	return append(append(file.Bytes(), names...), table.Bytes()...)
}

// stopped is a budget that refuses all from some amount of work on, as one does whose user
// pressed Ctrl-C. It counts the refusals.
type stopped struct {
	work    int64
	refused int
}

var errStopped = errors.New("stopped")

func (s *stopped) Take(int64, string) error { return nil }
func (s *stopped) Give(int64)               {}

func (s *stopped) Spend(n int64, _ string) error {
	if s.work -= n; s.work < 0 {
		s.refused++
		return errStopped
	}
	return nil
}

// TestSymbolsStopped stops the reading of a symbol table: what is left of it is not read.
// It was, each name of 64 kB, for 12 s.
func TestSymbolsStopped(t *testing.T) {
	const symbols = 1000
	file := manySymbols(t, symbols)
	whole, err := Open(file, &stopped{work: 1 << 40})
	if err != nil || len(whole.symbols) != symbols {
		t.Fatalf("%v, %d symbols, want %d", err, len(whole.symbols), symbols)
	}
	b := &stopped{work: 10 * maxString}
	m, err := Open(file, b)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.symbols); n == 0 || n > 10 || !errors.Is(m.Limited(), errStopped) {
		t.Errorf("%d symbols, %v", n, m.Limited())
	}
	if b.refused > 4 {
		t.Errorf("the budget was asked %d times when it had nothing left", b.refused)
	}
}
