package report

import (
	"fmt"
	"path"

	"vplay/replay/debug/api"
)

// The source text and the disassembly around a place.

// code is what is around the instruction at which the program stands.
type code struct {
	File   string // of Lines, as recorded
	Lines  []codeLine
	Note   string // on Lines, or why there are none
	Caller string // the frame that Lines is of, where that is not the innermost
	Asm    []codeLine
	AsmOf  string
}

// codeLine is a line of source text, or an instruction.
type codeLine struct {
	Number string // of the line, or the address
	Text   string
	IsHere bool
}

// How much is shown around the place.
const (
	linesBefore, linesBehind = 10, 6
	asmBefore, asmBehind     = 10, 6
)

// makeCode shows the innermost frame whose source text is found, and the instructions of the
// innermost one.
func (m *maker) makeCode() {
	stack := m.symbols.Stack(m.tid, maxFrames)
	if len(stack) == 0 {
		return
	}
	c := &m.page.Code
	m.source(c, stack)
	m.disassemble(c, stack[0].PC)
}

// source fills in the source text.
func (m *maker) source(c *code, stack []api.Frame) {
	first := -1
	for i := range stack {
		f := &stack[i]
		if f.File == "" {
			continue
		}
		if first < 0 {
			first = i
		}
		text := m.o.Sources.file(f.File)
		if text == nil || f.Line < 1 || f.Line > len(text.lines) {
			continue
		}
		c.File = m.text(f.File)
		if i > 0 {
			c.Caller = fmt.Sprintf("#%d %s", i, m.text(f.Function))
		}
		for n := max(1, f.Line-linesBefore); n <= min(len(text.lines), f.Line+linesBehind); n++ {
			c.Lines = append(c.Lines, codeLine{fmt.Sprint(n), m.code(text.lines[n-1]), n == f.Line})
		}
		if text.modified.After(m.g.Recording().Manifest().Start) {
			c.Note = "The file was changed after the recording was made: its lines may be others."
		}
		return
	}
	switch {
	case first < 0:
		c.Note = "No source line is known here: --symbols FOLDER takes files with debug information."
	default:
		c.Note = fmt.Sprintf("The text of %s was not found: --source FOLDER says where it lies.", m.text(stack[first].File))
	}
}

// maxDecoded bounds how many bytes before the place are decoded: instructions can be decoded
// forward only, from the start of the function or of its line.
const maxDecoded = 4096

// disassemble fills in the instructions around pc.
func (m *maker) disassemble(c *code, pc uint64) {
	start, end, ok := m.symbols.Extent(pc)
	if !ok || pc-start > maxDecoded {
		start, end = pc, pc+15*asmBehind
		if l, ok := m.symbols.Line(pc); ok && pc-l.Start <= maxDecoded {
			start = l.Start
		}
	}
	end = min(end, pc+15*(asmBehind+1))
	if end < start { // at the end of the address space
		return
	}
	b := make([]byte, end-start)
	n, _ := m.g.ReadMemory(start, b)
	var all []codeLine
	here, behind := -1, 0
	for off := 0; off < n && behind <= asmBehind; {
		at := start + uint64(off)
		if at > pc && here < 0 { // pc is inside of an instruction
			break
		}
		text, size := m.symbols.Disassemble(b[off:n], at)
		if at == pc {
			here = len(all)
		}
		if here >= 0 {
			behind++
		}
		all = append(all, codeLine{fmt.Sprintf("%#x", at), text, at == pc})
		off += size
	}
	if here < 0 { // not captured, or something else than code
		return
	}
	for _, l := range all[max(0, here-asmBefore):] {
		l.Text = m.text(l.Text)
		c.Asm = append(c.Asm, l)
	}
	c.AsmOf = m.text(m.symbols.Symbol(pc))
}

// sourceText is the text of a line, as far as it is found.
func (m *maker) sourceText(file string, line int) string {
	return m.most(trimIndent(m.o.Sources.line(file, line)), 160)
}

// module is the last part of a module's path.
func (m *maker) module(p string) string {
	if p == "" {
		return ""
	}
	return m.most(path.Base(p), 80)
}
