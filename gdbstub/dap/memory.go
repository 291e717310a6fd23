package dap

import (
	"encoding/base64"

	godap "github.com/google/go-dap"
)

// The requests readMemory and disassemble (Debug Adapter Protocol). An instruction's
// text comes from the symbols; here is how to find the instructions before an address.

// maxMemory bounds the bytes of one answer.
const maxMemory = 1 << 20

func readMemory(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.ReadMemoryArguments](raw)
	if err != nil {
		return nil, err
	}
	addr, err := parseAddress(a.MemoryReference)
	if err != nil {
		return nil, err
	}
	addr += uint64(a.Offset)
	n := min(max(a.Count, 0), maxMemory)
	if uint64(n) > -addr && addr != 0 {
		n = int(-addr)
	}
	b := make([]byte, n)
	got := 0
	if n > 0 {
		got, err = s.target.ReadMemory(addr, b)
		if got == 0 && err != nil {
			return nil, err
		}
	}
	return godap.ReadMemoryResponseBody{
		Address: hex(addr), Data: base64.StdEncoding.EncodeToString(b[:got]), UnreadableBytes: max(a.Count, 0) - got,
	}, nil
}

// maxInstructions bounds one disassembly; maxInstruction is an instruction's length
// (SDM volume 1, 3.3.7.2: 15 bytes).
const (
	maxInstructions = 4096
	maxInstruction  = 15
)

func disassemble(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.DisassembleArguments](raw)
	if err != nil {
		return nil, err
	}
	addr, err := parseAddress(a.MemoryReference)
	if err != nil {
		return nil, err
	}
	addr += uint64(a.Offset)
	count := min(max(a.InstructionCount, 0), maxInstructions)
	skip := max(-maxInstructions, min(a.InstructionOffset, maxInstructions))
	list := s.instructions(addr, skip, count)
	var last string
	for i := range list {
		at, _ := parseAddress(list[i].Address)
		l, ok := s.symbols.Line(at)
		if !ok || l.File == "" {
			continue
		}
		list[i].Line = l.Line - 1 + s.lineBase
		if l.File != last || i == 0 {
			list[i].Location, last = s.source(l.File), l.File
		}
	}
	return godap.DisassembleResponseBody{Instructions: list}, nil
}

// instructions returns count of them from the one at addr plus skip on. Those before
// addr are found by reading from the start of the function, or from a little before.
func (s *session) instructions(addr uint64, skip, count int) []godap.DisassembledInstruction {
	out := []godap.DisassembledInstruction{}
	if skip < 0 {
		before := s.before(addr, -skip)
		for len(before) < -skip { // a client counts on getting as many as it asks for
			at := addr
			if len(before) > 0 {
				at, _ = parseAddress(before[0].Address)
			}
			before = append([]godap.DisassembledInstruction{{Address: hex(at - 1), Instruction: "??"}}, before...)
		}
		out = append(out, before[:min(len(before), count)]...)
		skip = 0
	}
	for at := addr; len(out) < count; {
		in, n := s.instruction(at)
		if skip == 0 {
			out = append(out, in)
		} else {
			skip--
		}
		at += uint64(n)
	}
	return out
}

// before returns at most n instructions that end at addr.
func (s *session) before(addr uint64, n int) []godap.DisassembledInstruction {
	from := addr - uint64(n)*maxInstruction
	if low, _, ok := s.symbols.Extent(addr); ok && low < addr {
		from = max(min(from, addr), low)
		if addr-low < 1<<16 {
			from = low
		}
	}
	for ; from < addr; from++ {
		var list []godap.DisassembledInstruction
		at := from
		for at < addr {
			in, size := s.instruction(at)
			list, at = append(list, in), at+uint64(size)
		}
		if at == addr {
			return list[max(0, len(list)-n):]
		}
	}
	return nil
}

// instruction disassembles one.
func (s *session) instruction(at uint64) (in godap.DisassembledInstruction, n int) {
	var b [maxInstruction]byte
	room := uint64(maxInstruction)
	if end := -at; end != 0 && end < room { // of the address space
		room = end
	}
	got, err := s.target.ReadMemory(at, b[:room])
	if got == 0 {
		text := "??"
		if err != nil {
			text = "?? " + err.Error()
		}
		return godap.DisassembledInstruction{Address: hex(at), Instruction: text}, 1
	}
	text, n := s.symbols.Disassemble(b[:got], at)
	n = min(max(n, 1), got)
	return godap.DisassembledInstruction{
		Address: hex(at), Instruction: text, InstructionBytes: spaced(b[:n]), Symbol: s.symbols.Symbol(at),
	}, n
}

// spaced writes bytes in hexadecimal.
func spaced(b []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 3*len(b))
	for i, c := range b {
		if i > 0 {
			out = append(out, ' ')
		}
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}
