package dwarf

import (
	"strconv"
	"strings"
)

// Functions of stripped files are known by their call frame information alone.
// They get a name by their address, as disassemblers do it.

// FrameRange is the code of a function, as call frame information has it: file
// virtual addresses from Low up to High.
type FrameRange struct{ Low, High uint64 }

// FrameRanges returns the functions of an .eh_frame section, sorted by address
// without repetition. addr is the section's file virtual address. Reading it is charged
// to budget, which may be nil; what it has no room for is left out.
func FrameRanges(data []byte, addr uint64, budget Budget) []FrameRange {
	s := &frameSection{data: data, addr: addr, eh: true}
	s.meter = newMeter(budget, s)
	s.parse()
	out := make([]FrameRange, 0, len(s.fdes))
	for i := range s.fdes {
		f := &s.fdes[i]
		if n := len(out); n == 0 || out[n-1].Low != f.low {
			out = append(out, FrameRange{f.low, f.high})
		}
	}
	return out
}

const functionPrefix = "fun_"

// FunctionName is the name of a function without a symbol that begins at a file
// virtual address: fun_1234.
func FunctionName(low uint64) string { return functionPrefix + strconv.FormatUint(low, 16) }

// unnamed returns the function without a symbol that holds addr.
func (m *Module) unnamed(addr uint64) (name string, low, high uint64, ok bool) {
	f, err := m.find(addr)
	if err != nil {
		return "", 0, 0, false
	}
	return FunctionName(f.low), f.low, f.high, true
}

// lookupUnnamed returns the address of the function that FunctionName gave a
// name.
func (m *Module) lookupUnnamed(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, functionPrefix)
	if !ok {
		return 0, false
	}
	addr, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 0, false
	}
	_, low, _, ok := m.unnamed(addr)
	return addr, ok && low == addr
}
