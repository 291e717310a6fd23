package checkpoint

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The text form of an event is its kind and then its fields as name=value, in
// the order of the event table: all required ones, and those optional ones
// that are not zero. It loses nothing: ParseEvent reads it back. Values:
//
//	int, int32   decimal, and so is count
//	addr         0x and hexadecimal
//	hash         16 hexadecimal digits
//	flag         the name alone
//	args, out    addresses between commas
//	instr        rdtsc, rdtscp, cpuid or random (RDRAND, RDSEED)
//	sched        blocked, slice, yield, exit or start
//	thread       start or exit
//	regs         {rax:0x1,rip:0x2}, registers that are zero left out
//	bytes        hexadecimal digits
//	text         quoted as Go does, in ASCII
//	maps         [map:0x1000-0x2000:r-x:----:3:0x0:"libc";unmap:0x1000-0x2000;
//	             protect:0x1000-0x2000:rw-;move:0x1000-0x2000:0x5000-0x6000;drop:0x1000-0x2000]
//	writes       [0x1000:"bytes quoted";0x2000:""]

// Text returns the text form of an event, on one line.
func (e *Event) Text() string { return e.text(0, nil) }

// text prints an event; with limit > 0, byte strings are cut to limit bytes,
// and fields in hidden are left out.
func (e *Event) text(limit int, hidden []fieldID) string {
	p := &textPrinter{limit: limit}
	p.str(e.Kind.String())
	p.fields(e, hidden)
	return string(p.b)
}

// slimMark says how slim an interval is.
func slimMark(iv *Interval) string {
	return mark(iv.FirstLoads, " (first loads)") + mark(iv.Slim && !iv.FirstLoads, " (slim)")
}

// TextOptions says how WriteText prints.
type TextOptions struct {
	// Full prints all bytes; without, byte strings are cut to 32 and marked
	// with three dots, so that lines cannot be read back.
	Full bool
	// Call, when set, prints a system call: for an enter the call with its
	// arguments, for an exit the result; for a signal or fault what it tells
	// the program. "" falls back to the plain form.
	Call func(e *Event) string
}

// WriteText prints an interval: a line of what it is, its maps, one line for
// each event, and how it ends. The error is w's.
func WriteText(w io.Writer, iv *Interval, o TextOptions) error {
	p := &textPrinter{w: w}
	p.printf("interval %d: pid %d, image %d, %d threads, %d maps, %d pages%s%s, %d events, cpu %v to %v\n",
		iv.ID, iv.PID, iv.Image, len(iv.Start), len(iv.Maps), len(iv.Pages), mark(iv.Delta, " (delta)"), slimMark(iv),
		len(iv.Events), iv.CPUStart, iv.CPUStart+iv.End.CPUTime)
	for i := range iv.Start {
		x := &iv.Start[i]
		p.printf("  thread %d%s: rip %#x, rsp %#x%s\n", x.TID, mark(x.Name != "", " "+strconv.QuoteToASCII(x.Name)), x.Regs.RIP, x.Regs.R[4], mark(x.InCall, ", inside a call"))
		p.spill()
	}
	for i := range iv.Maps {
		m := &iv.Maps[i]
		p.printf("  map %x-%x %s %s %x object %d %s\n", m.Start, m.End, protText(m.Prot), flagText(m.Flags), m.Offset, m.Object, strconv.QuoteToASCII(m.Name))
		p.spill()
	}
	for i := range iv.Artefact {
		a := &iv.Artefact[i]
		p.printf("  artefact at %#x, %d bytes: %s\n", a.Addr, len(a.Old), strconv.QuoteToASCII(a.What))
		p.spill()
	}
	for i := range iv.Events {
		p.eventNumber(i)
		p.line(&iv.Events[i], o)
		p.str("\n")
		if p.spill(); p.err != nil {
			return p.err
		}
	}
	p.printf("  ends: %s\n", iv.End.text())
	return p.flush()
}

func mark(b bool, s string) string {
	if b {
		return s
	}
	return ""
}

// formatted are the fields that a formatter's text stands for, by kind of event.
var formatted = map[EventKind][]fieldID{
	EventEnter:  {fTID, fHash, fNR, fArgs},
	EventExit:   {fTID, fHash, fNR, fResult},
	EventSignal: {fTID, fHash, fSigno, fSiginfo},
	EventFault:  {fTID, fHash, fSigno, fSiginfo, fAddr},
}

// EventLine prints one event as WriteText does, without its number: a call or signal by
// the formatter when there is one.
func EventLine(e *Event, o TextOptions) string {
	p := &textPrinter{}
	p.line(e, o)
	return string(p.b)
}

var endNames = [...]string{EndSync: "at the last event", EndForced: "forced", EndCrash: "crash", EndExit: "exit", EndExec: "execve", EndGap: "gap", EndStop: "recording stopped"}

// String returns a word or two for people.
func (k EndKind) String() string {
	if int(k) < len(endNames) && k != 0 {
		return endNames[k]
	}
	return fmt.Sprintf("end(%d)", uint8(k))
}

func (e *End) text() string {
	s := e.Kind.String()
	switch e.Kind {
	case EndCrash:
		s += fmt.Sprintf(", signal %d", e.Signo)
	case EndExit:
		s += fmt.Sprintf(", code %d", e.ExitCode)
	case EndSync, EndForced, EndExec, EndGap, EndStop: // The kind says all.
	}
	if e.Forced {
		s += ", at a place found by its state"
	}
	if e.Reason != "" {
		s += ": " + strconv.QuoteToASCII(e.Reason)
	}
	return fmt.Sprintf("%s; memory hash %016x, %d pages written", s, e.MemHash, len(e.Pages))
}

// textPrinter prints fields. One event may print as hundreds of megabytes, so what is
// printed is given to w in between.
type textPrinter struct {
	b     []byte
	w     io.Writer // nil: all stays in b
	err   error     // w's; what is printed behind it is lost
	limit int
}

// spillAt is how many bytes are given to the writer at once, about.
const spillAt = 1 << 16

// spill makes room. It is called wherever a list of the file's is gone through.
func (p *textPrinter) spill() {
	if p.w != nil && len(p.b) > spillAt {
		_ = p.flush() // whoever prints looks at p.err
	}
}

func (p *textPrinter) flush() error {
	if p.err == nil {
		_, p.err = p.w.Write(p.b)
	}
	p.b = p.b[:0]
	return p.err
}

func (p *textPrinter) printf(format string, args ...any) { p.b = fmt.Appendf(p.b, format, args...) }
func (p *textPrinter) str(s string)                      { p.b = append(p.b, s...) }

// number prints in hexadecimal, as %#x does.
func (p *textPrinter) number(v uint64) { p.b = strconv.AppendUint(append(p.b, "0x"...), v, 16) }

// eventNumber prints as %6d and two spaces do.
func (p *textPrinter) eventNumber(i int) {
	at := len(p.b)
	p.b = strconv.AppendInt(append(p.b, "     "...), int64(i), 10)
	if digits := len(p.b) - at - 5; digits > 1 {
		p.b = append(p.b[:at], p.b[at+min(digits-1, 5):]...)
	}
	p.str("  ")
}

// line prints an event as EventLine does.
func (p *textPrinter) line(e *Event, o TextOptions) {
	if p.limit = 32; o.Full {
		p.limit = 0
	}
	hidden := formatted[e.Kind]
	if o.Call == nil {
		hidden = nil
	}
	if hidden == nil {
		p.str(e.Kind.String())
		p.fields(e, nil)
		return
	}
	s := o.Call(e)
	if s == "" {
		p.str(e.Kind.String())
		p.fields(e, nil)
		return
	}
	p.printf("%-6s tid=%d %s", e.Kind, e.TID, s)
	if p.shows(e, hidden) {
		p.str(" ")
	}
	p.fields(e, hidden)
}

// shown reports whether a field of an event is printed.
func (e *Event) shown(id fieldID, isRequired bool, hidden []fieldID) bool {
	return !slices.Contains(hidden, id) && (isRequired || !id.isZero(e))
}

// shows reports whether an event has a field that is printed.
func (p *textPrinter) shows(e *Event, hidden []fieldID) bool {
	s := e.Kind.spec()
	return s != nil && (slices.ContainsFunc(s.required, func(id fieldID) bool { return e.shown(id, true, hidden) }) ||
		slices.ContainsFunc(s.optional, func(id fieldID) bool { return e.shown(id, false, hidden) }))
}

// fields prints the fields of an event but the hidden ones, each behind a space.
func (p *textPrinter) fields(e *Event, hidden []fieldID) {
	s := e.Kind.spec()
	if s == nil {
		return
	}
	for _, id := range s.required {
		if e.shown(id, true, hidden) {
			p.field(id, e)
		}
	}
	for _, id := range s.optional {
		if e.shown(id, false, hidden) {
			p.field(id, e)
		}
	}
}

func (p *textPrinter) field(id fieldID, e *Event) {
	f := &eventFields[id]
	p.str(" ")
	p.str(f.name)
	if f.typ == typeFlag {
		return
	}
	p.str("=")
	p.value(f.typ, f.at(e))
}

func (p *textPrinter) value(typ fieldType, at any) {
	switch v := at.(type) {
	case *int64:
		p.b = strconv.AppendInt(p.b, *v, 10)
	case *int32:
		p.b = strconv.AppendInt(p.b, int64(*v), 10)
	case *uint64:
		switch typ {
		case typeHash:
			p.b = hex.AppendEncode(p.b, binary.BigEndian.AppendUint64(nil, *v))
		case typeCount:
			p.b = strconv.AppendUint(p.b, *v, 10)
		default:
			p.number(*v)
		}
	case *[6]uint64:
		p.numbers(v[:])
	case *[4]uint64:
		p.numbers(v[:])
	case fmt.Stringer: // a word of a list
		p.str(v.String())
	case **Regs:
		p.regs(*v)
	case *[]byte:
		b, dots := p.cut(*v)
		for part := range slices.Chunk(b, spillAt) {
			p.b = hex.AppendEncode(p.b, part)
			p.spill()
		}
		p.str(dots)
	case *string:
		p.quoted([]byte(*v))
	case *[]MapOp:
		p.maps(*v)
	case *[]MemWrite:
		p.writes(*v)
	}
}

// quoted prints bytes as strconv.QuoteToASCII does.
func (p *textPrinter) quoted(b []byte) {
	p.str(`"`)
	for len(b) > 0 {
		n := min(len(b), spillAt)
		for k := 0; k < utf8.UTFMax && n < len(b) && !utf8.RuneStart(b[n]); k++ {
			n++ // no rune is cut
		}
		at := len(p.b)
		p.b = strconv.AppendQuoteToASCII(p.b, string(b[:n]))
		p.b = append(p.b[:at], p.b[at+1:len(p.b)-1]...) // without quotes
		p.spill()
		b = b[n:]
	}
	p.str(`"`)
}

func (p *textPrinter) cut(b []byte) (head []byte, dots string) {
	if p.limit > 0 && len(b) > p.limit {
		return b[:p.limit], fmt.Sprintf("...(%d bytes)", len(b))
	}
	return b, ""
}

func (p *textPrinter) numbers(v []uint64) {
	for i, n := range v {
		p.str(mark(i > 0, ","))
		p.number(n)
	}
}

func (p *textPrinter) regs(r *Regs) {
	sep := "{"
	for _, f := range regFields(r) {
		if v := f.get(); v != 0 {
			p.printf("%s%s:%#x", sep, f.name, v)
			sep = ","
		}
	}
	p.str(mark(sep == "{", "{") + "}")
}

func (p *textPrinter) maps(ops []MapOp) {
	for i := range ops {
		op := &ops[i]
		p.str(sepOf(i))
		p.str(op.Kind.String())
		p.rangeOf(op.Start, op.End)
		switch op.Kind {
		case MapOpMap:
			m := &op.Map
			p.printf(":%s:%s:%d:%#x:%s", protText(m.Prot), flagText(m.Flags), m.Object, m.Offset, strconv.QuoteToASCII(m.Name))
		case MapOpMove:
			p.rangeOf(op.New, op.NewEnd)
		case MapOpProtect:
			p.str(":")
			p.str(protText(op.Prot))
		case MapOpUnmap, MapOpDrop: // The range says all.
		}
		if p.spill(); p.err != nil {
			return
		}
	}
	p.str("]")
}

// rangeOf prints a range of addresses behind a colon.
func (p *textPrinter) rangeOf(start, end uint64) {
	p.str(":")
	p.number(start)
	p.str("-")
	p.number(end)
}

func (p *textPrinter) writes(list []MemWrite) {
	for i := range list {
		b, dots := p.cut(list[i].Data)
		p.str(sepOf(i))
		p.number(list[i].Addr)
		p.str(":")
		p.quoted(b)
		p.str(dots)
		if p.spill(); p.err != nil {
			return
		}
	}
	p.str("]")
}

func sepOf(i int) string {
	if i == 0 {
		return "["
	}
	return ";"
}

var instrNames = [...]string{InstrRDTSC: "rdtsc", InstrRDTSCP: "rdtscp", InstrCPUID: "cpuid", InstrRandom: "random"}

// String returns the mnemonic.
func (k InstrKind) String() string {
	return nameOf(instrNames[:], uint8(k), "instr")
}

var schedNames = [...]string{SchedBlocked: "blocked", SchedSlice: "slice", SchedYield: "yield", SchedExit: "exit", SchedStart: "start"}

// String returns the reason in a word.
func (r SchedReason) String() string { return nameOf(schedNames[:], uint8(r), "sched") }

var threadNames = [...]string{ThreadStart: "start", ThreadExit: "exit"}

// String returns the change in a word.
func (o ThreadOp) String() string { return nameOf(threadNames[:], uint8(o), "thread") }

// nameOf returns name n of a list, or the kind with the number where there is none.
func nameOf(names []string, n uint8, kind string) string {
	if n != 0 && int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("%s(%d)", kind, n)
}

var mapOpNames = [...]string{MapOpMap: "map", MapOpUnmap: "unmap", MapOpProtect: "protect", MapOpMove: "move", MapOpDrop: "drop"}

// String returns the change's name.
func (k MapOpKind) String() string {
	return nameOf(mapOpNames[:], uint8(k), "mapop")
}

const (
	protLetters = "rwx"
	flagLetters = "sdkh" // shared, grows down, stack, heap
)

func protText(p uint8) string { return letters(p, protLetters) }
func flagText(p uint8) string { return letters(p, flagLetters) }

// letters prints bit i as letter i, or as a dash when it is clear.
func letters(bits uint8, names string) string {
	b := []byte(names)
	for i := range b {
		if bits>>i&1 == 0 {
			b[i] = '-'
		}
	}
	return string(b)
}

// regField is one register of Regs.
type regField struct {
	name string
	wide *uint64
	seg  *uint16 // when wide is nil
}

func (f regField) get() uint64 {
	if f.wide != nil {
		return *f.wide
	}
	return uint64(*f.seg)
}

// RegNames are the names of the general registers, in encoding order (as Regs.R).
var RegNames = [16]string{
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
}

// regFields names the registers in the order of the format.
func regFields(r *Regs) []regField {
	list := make([]regField, 0, 26)
	for i := range r.R {
		list = append(list, regField{name: RegNames[i], wide: &r.R[i]})
	}
	return append(list,
		regField{name: "rip", wide: &r.RIP}, regField{name: "rflags", wide: &r.RFLAGS},
		regField{name: "fs_base", wide: &r.FSBase}, regField{name: "gs_base", wide: &r.GSBase},
		regField{name: "cs", seg: &r.CS}, regField{name: "ss", seg: &r.SS}, regField{name: "ds", seg: &r.DS},
		regField{name: "es", seg: &r.ES}, regField{name: "fs", seg: &r.FS}, regField{name: "gs", seg: &r.GS})
}
