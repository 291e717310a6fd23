package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"vplay/checkpoint"
)

// Where .eh_frame lies is in PT_GNU_EH_FRAME in most files. Static
// programs have no such header, and section headers are not loaded, so there it
// is found by what it looks like: a chain of records, the first of which is a
// CIE, each FDE of which points back at a CIE, up to a terminator (LSB,
// "Exception Frames").

// maxUnwind bounds one module's unwind table, in bytes.
const maxUnwind = 64 << 20

// EhFrame returns the address range of the module's .eh_frame in memory, with
// its terminator. start is equal to end when there is none, or it was not
// captured.
func (mod *Module) EhFrame(m Memory) (start, end uint64) {
	hdr := false
	for _, p := range mod.Segments {
		if p.Type != elf.PT_GNU_EH_FRAME {
			continue
		}
		hdr = true
		if at, ok := mod.ehFrameStart(p, m); ok {
			return at, at + mod.ehFrameSize(at, m)
		}
	}
	if hdr {
		return 0, 0
	}
	searched := uint64(0)
	for _, p := range mod.Segments {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_W != 0 || p.Filesz > maxUnwind-searched {
			continue
		}
		searched += p.Filesz
		lo := mod.Bias + p.Vaddr
		if at, n, ok := searchEhFrame(lo, lo+p.Filesz, m); ok {
			return at, at + n
		}
	}
	return 0, 0
}

// ehFrameStart returns where .eh_frame begins as .eh_frame_hdr says.
func (mod *Module) ehFrameStart(hdr elf.ProgHeader, m Memory) (uint64, bool) {
	at := mod.Bias + hdr.Vaddr
	var b [8]byte
	if m.ReadMemory(at, b[:]) < len(b) || b[0] != 1 || b[1] != 0x1b { // DW_EH_PE_pcrel | sdata4
		return 0, false
	}
	return at + 4 + uint64(int64(int32(binary.LittleEndian.Uint32(b[4:])))), true
}

// segmentEnd returns the end of the loaded file bytes of the segment that
// holds an address; 0 when none does.
func (mod *Module) segmentEnd(addr uint64) uint64 {
	for _, p := range mod.Segments {
		if lo := mod.Bias + p.Vaddr; p.Type == elf.PT_LOAD && addr >= lo && addr-lo < p.Filesz {
			return lo + p.Filesz
		}
	}
	return 0
}

// ehFrameSize walks the records of .eh_frame up to and with the terminator. It
// stops early where records make no sense or are not captured.
func (mod *Module) ehFrameSize(start uint64, m Memory) uint64 {
	end := mod.segmentEnd(start)
	if end <= start || end-start > maxUnwind {
		return 0
	}
	b := readRun(start, end, m)
	return uint64(walkEhFrame(b))
}

// walkEhFrame returns the size in bytes of the whole records at the start of
// b, with the terminator if there is one.
func walkEhFrame(b []byte) int {
	at := 0
	for at+4 <= len(b) {
		n := binary.LittleEndian.Uint32(b[at:])
		if n == 0 {
			return at + 4
		}
		if n >= 0xfffffff0 || int(n) > len(b)-at-4 {
			break
		}
		at += 4 + int(n)
	}
	return at
}

// UnwindTable returns what was captured of a module's .eh_frame section, up to the first
// gap, and its file virtual address.
func (mod *Module) UnwindTable(m Memory) (b []byte, addr uint64) {
	start, end := mod.EhFrame(m)
	return readRun(start, end, m), start - mod.Bias
}

// readRun reads [start,end), or as much of it as was captured. It takes memory
// for no more than that.
func readRun(start, end uint64, m Memory) []byte {
	var b []byte
	var page [checkpoint.PageSize]byte
	for a := start; a < end; {
		want := page[:min(checkpoint.PageSize-a%checkpoint.PageSize, end-a)]
		n := m.ReadMemory(a, want)
		b = append(b, want[:n]...)
		if n < len(want) {
			break
		}
		a += uint64(n)
	}
	return b
}

// searchEhFrame looks for a chain of records in [lo,hi), one captured run
// after the other.
func searchEhFrame(lo, hi uint64, m Memory) (at, size uint64, ok bool) {
	for a := lo; a < hi; {
		b := readRun(a, hi, m)
		if i, size := findEhFrame(b); size > 0 {
			return a + uint64(i), uint64(size), true
		}
		a = (a + uint64(len(b)) + checkpoint.PageSize) &^ (checkpoint.PageSize - 1)
	}
	return 0, 0, false
}

// augmentations are the strings that follow a CIE's version in what compilers
// emit.
var augmentations = [][]byte{[]byte("zR\x00"), []byte("zPLR\x00"), []byte("zRS\x00"), []byte("zPR\x00"), []byte("zLR\x00")}

// findEhFrame returns where a chain of at least eight records begins in b, and
// its size; size is 0 when there is none.
func findEhFrame(b []byte) (at, size int) {
	for i := 0; i+16 <= len(b); i += 4 {
		if binary.LittleEndian.Uint32(b[i+4:]) != 0 || !isCIE(b[i:]) {
			continue
		}
		if n, records := chainOf(b[i:]); records >= 8 {
			return i, n
		}
	}
	return 0, 0
}

// isCIE reports whether b begins with a common information entry.
func isCIE(b []byte) bool {
	n := binary.LittleEndian.Uint32(b)
	if n < 12 || n > 256 || b[8] != 1 && b[8] != 3 {
		return false
	}
	for _, a := range augmentations {
		if bytes.HasPrefix(b[9:], a) {
			return true
		}
	}
	return false
}

// chainOf walks records from a CIE on for as long as each is a CIE or points
// back at one. It returns their size with the terminator, and how many there are.
func chainOf(b []byte) (size, records int) {
	le := binary.LittleEndian
	cies := map[int]bool{}
	at := 0
	for at+8 <= len(b) {
		n, id := le.Uint32(b[at:]), le.Uint32(b[at+4:])
		if n == 0 {
			return at + 4, records
		}
		if n < 8 || int64(n) > int64(len(b)-at-4) {
			break
		}
		switch {
		case id == 0 && len(b)-at >= 16 && isCIE(b[at:]):
			cies[at] = true
		case id == 0 || !cies[at+4-int(int32(id))]:
			return at, records
		}
		records++
		at += 4 + int(n)
	}
	if at+4 <= len(b) && le.Uint32(b[at:]) == 0 {
		return at + 4, records
	}
	return at, records
}
