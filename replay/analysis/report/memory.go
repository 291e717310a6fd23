package report

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/debug"
)

// The memory that the crash is about, in rows of 16 bytes: what was overwritten, or where the
// fault was, or what the faulting value was kept in last; who stored each word last; and where
// blocks of the heap begin and end there.

// memory is the picture of the memory.
type memory struct {
	What    string // the bytes that are marked
	Where   string // the mapping
	Rows    []memRow
	Writers []writer
	HasOld  bool // words that were not stored to in the recorded time
	HasSize bool // sizes of blocks
	Block   string
	Notes   []string
}

// memRow is 16 bytes.
type memRow struct {
	Address string
	Words   [2]memWord
	Text    string
	Note    string
}

// memWord is 8 bytes, and the letter of who stored there last.
type memWord struct {
	Bytes  []memByte
	Writer string
	Class  string
}

// memByte is a byte. It is marked when it is one that the crash is about.
type memByte struct {
	Hex    string
	IsMark bool
	IsSize bool // of a block's header
}

// writer is an instruction whose store was the last one to some words.
type writer struct {
	Letter, Class, Position, Place, Text, Code string
	Caller                                     string // of the program, where a library stored

	at       checkpoint.Position // the newest
	pc       uint64
	isSystem bool
}

// Bounds of the picture.
const (
	rowBytes    = 16
	rowsAround  = 6  // before and behind the bytes concerned
	maxRows     = 22 // with a block that is a little larger
	maxMarked   = 64 // bytes
	maxWriters  = 26 // letters
	writerHues  = 6
	wordsInRow  = 2
	maxOfBlocks = 1 << 21
)

// subject is what the memory picture is about.
type subject struct {
	addr, len uint64
	what      string
}

// errNoMemory is why there is no picture.
const errNoMemory = sentence("It does not follow from this moment which memory is concerned.")

// subject chooses the bytes.
func (m *maker) subject() (subject, bool) {
	if o := m.o.Overwrite; o != nil && m.o.IsEnd && m.isMapped(o.Slot) {
		what := "what was overwritten: the " + o.What
		if o.IsFreed {
			what = "what was freed twice: " + o.What
		}
		return subject{o.Slot, 8, what}, true
	}
	if b, err := m.g.Siginfo(m.tid); err == nil && len(b) >= abi.SizeofSiginfo {
		if si := abi.Siginfo(b); si.IsFault() && m.isMapped(si.Addr()) {
			return subject{si.Addr(), 1, "the address of the fault"}, true
		}
	}
	return m.stored()
}

// stored is where the faulting value was kept in memory: the newest store of the slice that is
// not on the stack, else the newest one.
func (m *maker) stored() (s subject, ok bool) {
	if m.slice == nil {
		return s, false
	}
	for _, onStack := range []bool{false, true} {
		for i := range m.slice.Rows {
			r := &m.slice.Rows[i]
			if r.Stored == 0 || !m.isMapped(r.Stored) || !onStack && m.isStack(r.Stored) {
				continue
			}
			return subject{r.Stored &^ 7, 8, fmt.Sprintf("where the faulting value was kept (row #%d above)", r.Number)}, true
		}
	}
	return s, false
}

func (m *maker) isMapped(a uint64) bool {
	r, err := m.g.Region(a)
	return err == nil && r.Mapped
}

// isStack reports whether an address is in the mapping of the thread's stack.
func (m *maker) isStack(a uint64) bool {
	regs, err := m.g.Registers(m.tid)
	if err != nil {
		return false
	}
	r, err := m.g.Region(regs.GPR[4])
	return err == nil && r.Mapped && a-r.Start < r.Size
}

// makeMemory makes the picture.
func (m *maker) makeMemory(ctx context.Context) error {
	s, ok := m.subject()
	if !ok {
		return errNoMemory
	}
	region, err := m.g.Region(s.addr)
	if err != nil {
		return err
	}
	out := &memory{What: fmt.Sprintf("%#x, %s", s.addr, m.text(s.what)), Where: m.text(regionText(region.Name, region.Start, region.Size))}
	heap := m.blocks(region.Name, region.Start, region.Size, s.addr)
	from, to := window(&s, heap, region.Start, region.Start+region.Size)
	out.Block = heap.text
	for a := from; a < to; a += rowBytes {
		out.Rows = append(out.Rows, m.memRow(a, &s, heap))
	}
	out.HasSize = len(heap.sizes) > 0
	m.page.Memory = out
	return m.writers(ctx, out, from, &s)
}

// regionText names a mapping.
func regionText(name string, start, size uint64) string {
	if name == "" {
		name = "anonymous memory"
	}
	return fmt.Sprintf("%s, %#x-%#x", name, start, start+size)
}

// window is what is shown: some rows around the bytes, and their block, if that is not large.
func window(s *subject, h heap, low, high uint64) (from, to uint64) {
	at := s.addr &^ (rowBytes - 1)
	from, to = at-min(at, rowsAround*rowBytes), at+(rowsAround+1)*rowBytes
	if h.end > h.start && h.start <= s.addr+rowBytes && h.end-h.start <= (maxRows-4)*rowBytes {
		from, to = min(from, h.start&^(rowBytes-1)), max(to, (h.end+rowBytes)&^(rowBytes-1))
		if s.addr > h.end || to-from > maxRows*rowBytes {
			from = max(from, to-min(to, maxRows*rowBytes))
		}
	}
	return max(from, low), min(to, high)
}

// memRow shows 16 bytes.
func (m *maker) memRow(at uint64, s *subject, h heap) memRow {
	var b [rowBytes]byte
	n, _ := m.g.ReadMemory(at, b[:])
	row := memRow{Address: fmt.Sprintf("%#x", at)}
	var chars strings.Builder
	for i := range b {
		a := at + uint64(i)
		x := memByte{Hex: "??", IsMark: a-s.addr < s.len, IsSize: h.isSize(a)}
		if i < n {
			x.Hex = fmt.Sprintf("%02x", b[i])
		}
		w := &row.Words[i/8]
		w.Bytes = append(w.Bytes, x)
		switch {
		case i >= n:
			chars.WriteByte('?')
		case b[i] >= ' ' && b[i] <= '~':
			chars.WriteByte(b[i])
		default:
			chars.WriteByte('.')
		}
	}
	row.Text, row.Note = chars.String(), h.note(at)
	return row
}

// writers finds who stored each word last: those that the page is about first, for time may
// run out.
func (m *maker) writers(ctx context.Context, out *memory, from uint64, s *subject) error {
	for _, i := range outward(int((s.addr-from)/8), len(out.Rows)*wordsInRow) {
		found, err := m.g.Accesses(ctx, debug.AccessQuery{Addr: from + uint64(i)*8, Len: 8, Most: 1})
		if err != nil {
			out.Notes = append(out.Notes, "Not all writers were found. "+m.text(m.why(err)))
			break
		}
		w := &out.Rows[i/wordsInRow].Words[i%wordsInRow]
		if len(found) == 0 {
			w.Writer, out.HasOld = "-", true
			continue
		}
		w.Writer, w.Class = m.writer(out, &found[0])
	}
	return m.callers(ctx, out)
}

// outward lists the numbers below n, those near to first before the others.
func outward(first, n int) (out []int) {
	for d := 0; len(out) < n; d++ {
		if i := first + d; i < n {
			out = append(out, i)
		}
		if i := first - d; d > 0 && i >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// writer returns the letter of an instruction that stored a word last, and how it is coloured.
func (m *maker) writer(out *memory, a *debug.Access) (letter, class string) {
	for i := range out.Writers {
		if w := &out.Writers[i]; w.pc == a.At.Addr {
			if w.at.Compare(a.Position) < 0 {
				w.at, w.Position = a.Position, a.Position.String()
			}
			return w.Letter, w.Class
		}
	}
	n := len(out.Writers)
	if n == maxWriters {
		return "+", ""
	}
	class = "late"
	if n < writerHues {
		class = fmt.Sprintf("w%d", n)
	}
	out.Writers = append(out.Writers, writer{
		Letter: string(rune('A' + n)), Class: class, Position: a.Position.String(), Place: m.place(&a.At), Code: m.most(a.Instruction, 100),
		Text: m.sourceText(a.At.File, a.At.Line), at: a.Position, pc: a.At.Addr, isSystem: isSystem(a.At.Module),
	})
	return out.Writers[n].Letter, class
}

// callers finds, for stores of system libraries, the caller of the program that they are for.
func (m *maker) callers(ctx context.Context, out *memory) error {
	var of []*writer
	for i := range out.Writers {
		if out.Writers[i].isSystem {
			of = append(of, &out.Writers[i])
		}
	}
	slices.SortFunc(of, func(a, b *writer) int { return a.at.Compare(b.at) })
	at := make([]checkpoint.Position, len(of))
	for i, w := range of {
		at[i] = w.at
	}
	stacks, err := m.g.Stacks(ctx, at, maxFrames)
	for i, stack := range stacks {
		for k := range stack {
			if l := &stack[k]; l.Module != "" && !isSystem(l.Module) {
				of[i].Caller, of[i].Text = m.place(l), m.sourceText(l.File, l.Line)
				break
			}
		}
	}
	return err
}

// heap is what is known of the heap's blocks around an address: of glibc's malloc, which has the
// size of a block in the eight bytes before it, with three flags (glibc, malloc/malloc.c,
// struct malloc_chunk).
type heap struct {
	start, end uint64            // of the block that is concerned, what the program may use
	sizes      map[uint64]string // the addresses of size fields, and what is to be said of them
	text       string
}

// isSize reports whether a byte belongs to the size of a block.
func (h *heap) isSize(a uint64) bool {
	_, ok := h.sizes[a&^7]
	return ok
}

// note is what is to be said of a row.
func (h *heap) note(at uint64) string {
	var out []string
	for a := at; a < at+rowBytes; a += 8 {
		if s := h.sizes[a]; s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, "; ")
}

// Of glibc's chunks: what lies between the size field and the next one, and how small they are.
const (
	sizeField = 8
	minChunk  = 32
	chunkMask = 15
)

// blocks walks the chunks of the main heap up to an address, from its start: there is no
// other way to know where one begins. Nothing is said where that is no chain of chunks.
func (m *maker) blocks(name string, start, size, addr uint64) (h heap) {
	if name != "[heap]" {
		return h
	}
	h.sizes = map[uint64]string{}
	end, chunk, known := start+size, start, 0
	for range maxOfBlocks {
		field, ok := m.word(chunk + sizeField)
		length := field &^ 7
		next := chunk + length
		bad := !ok || length < minChunk || length&chunkMask != 0 || next > end || next < chunk
		if bad && known < 2 {
			return heap{}
		}
		if chunk+sizeField+4*rowBytes*rowsAround > addr {
			h.sizes[chunk+sizeField] = sizeText(bad, next >= end, chunk+2*sizeField, length)
		}
		if bad {
			h.text = strings.TrimLeft(h.text+fmt.Sprintf(" The size at %#x, %#x, is none that malloc writes: it was overwritten, and no block behind it is known.", chunk+sizeField, field), " ")
			return h
		}
		known++
		// A block may use the first eight bytes of the chunk behind it.
		if addr >= chunk+sizeField && addr < next+sizeField {
			h.start, h.end = chunk+2*sizeField, next+sizeField
			if h.text = fmt.Sprintf("The block at %#x has %d bytes, up to %#x.", h.start, h.end-h.start, h.end); next >= end {
				h.start, h.end, h.text = 0, 0, fmt.Sprintf("It is behind the last block of the heap, from %#x on.", chunk)
			}
		}
		if next >= end || chunk > addr+rowBytes*maxRows {
			return h
		}
		chunk = next
	}
	return h
}

// sizeText says what a size field is of. The last chunk is the rest of the heap, which is free.
func sizeText(bad, last bool, block, length uint64) string {
	switch {
	case bad:
		return "damaged size of a block"
	case last:
		return "size of the rest of the heap"
	}
	return fmt.Sprintf("size, then block %#x of %d bytes", block, length-sizeField)
}

// word reads eight bytes.
func (m *maker) word(a uint64) (uint64, bool) {
	var b [8]byte
	n, _ := m.g.ReadMemory(a, b[:])
	return binary.LittleEndian.Uint64(b[:]), n == len(b)
}
