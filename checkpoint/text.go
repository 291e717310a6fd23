package checkpoint

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
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
//	instr        rdtsc, rdtscp or cpuid
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
	p.s.WriteString(e.Kind.String())
	if s := e.Kind.spec(); s != nil {
		for _, id := range s.required {
			p.field(id, e, hidden)
		}
		for _, id := range s.optional {
			if !id.isZero(e) {
				p.field(id, e, hidden)
			}
		}
	}
	return p.s.String()
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
	var s strings.Builder
	fmt.Fprintf(&s, "interval %d: pid %d, image %d, %d threads, %d maps, %d pages%s%s, %d events, cpu %v to %v\n",
		iv.ID, iv.PID, iv.Image, len(iv.Start), len(iv.Maps), len(iv.Pages), mark(iv.Delta, " (delta)"), mark(iv.Slim, " (slim)"),
		len(iv.Events), iv.CPUStart, iv.CPUStart+iv.End.CPUTime)
	for i := range iv.Start {
		x := &iv.Start[i]
		fmt.Fprintf(&s, "  thread %d%s: rip %#x, rsp %#x%s\n", x.TID, mark(x.Name != "", " "+strconv.QuoteToASCII(x.Name)), x.Regs.RIP, x.Regs.R[4], mark(x.InCall, ", inside a call"))
	}
	for i := range iv.Maps {
		m := &iv.Maps[i]
		fmt.Fprintf(&s, "  map %x-%x %s %s %x object %d %s\n", m.Start, m.End, protText(m.Prot), flagText(m.Flags), m.Offset, m.Object, strconv.QuoteToASCII(m.Name))
	}
	for i := range iv.Artefact {
		a := &iv.Artefact[i]
		fmt.Fprintf(&s, "  artefact at %#x, %d bytes: %s\n", a.Addr, len(a.Old), strconv.QuoteToASCII(a.What))
	}
	for i := range iv.Events {
		fmt.Fprintf(&s, "%6d  %s\n", i, EventLine(&iv.Events[i], o))
		if s.Len() > 1<<16 {
			if _, err := io.WriteString(w, s.String()); err != nil {
				return err
			}
			s.Reset()
		}
	}
	fmt.Fprintf(&s, "  ends: %s\n", iv.End.text())
	_, err := io.WriteString(w, s.String())
	return err
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
	limit, call := 32, o.Call
	if o.Full {
		limit = 0
	}
	if hidden := formatted[e.Kind]; call != nil && hidden != nil {
		if s := call(e); s != "" {
			rest := e.text(limit, hidden)
			_, rest, _ = strings.Cut(rest, " ")
			return fmt.Sprintf("%-6s tid=%d %s%s%s", e.Kind, e.TID, s, mark(rest != "", "  "), rest)
		}
	}
	return e.text(limit, nil)
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

// textPrinter prints fields.
type textPrinter struct {
	s     strings.Builder
	limit int
}

func (p *textPrinter) printf(format string, args ...any) { fmt.Fprintf(&p.s, format, args...) }

func (p *textPrinter) field(id fieldID, e *Event, hidden []fieldID) {
	for _, h := range hidden {
		if h == id {
			return
		}
	}
	f := &eventFields[id]
	p.s.WriteByte(' ')
	p.s.WriteString(f.name)
	if f.typ == typeFlag {
		return
	}
	p.s.WriteByte('=')
	p.value(f.typ, f.at(e))
}

func (p *textPrinter) value(typ fieldType, at any) {
	switch v := at.(type) {
	case *int64:
		p.printf("%d", *v)
	case *int32:
		p.printf("%d", *v)
	case *uint64:
		switch typ {
		case typeHash:
			p.printf("%016x", *v)
		case typeCount:
			p.printf("%d", *v)
		default:
			p.printf("%#x", *v)
		}
	case *[6]uint64:
		p.numbers(v[:])
	case *[4]uint64:
		p.numbers(v[:])
	case fmt.Stringer: // a word of a list
		p.s.WriteString(v.String())
	case **Regs:
		p.regs(*v)
	case *[]byte:
		b, dots := p.cut(*v)
		p.s.WriteString(hex.EncodeToString(b) + dots)
	case *string:
		p.s.WriteString(strconv.QuoteToASCII(*v))
	case *[]MapOp:
		p.maps(*v)
	case *[]MemWrite:
		p.writes(*v)
	}
}

func (p *textPrinter) cut(b []byte) (head []byte, dots string) {
	if p.limit > 0 && len(b) > p.limit {
		return b[:p.limit], fmt.Sprintf("...(%d bytes)", len(b))
	}
	return b, ""
}

func (p *textPrinter) numbers(v []uint64) {
	for i, n := range v {
		p.printf("%s%#x", mark(i > 0, ","), n)
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
	p.s.WriteString(mark(sep == "{", "{") + "}")
}

func (p *textPrinter) maps(ops []MapOp) {
	for i := range ops {
		op := &ops[i]
		p.printf("%s%s:%#x-%#x", sepOf(i), op.Kind, op.Start, op.End)
		switch op.Kind {
		case MapOpMap:
			m := &op.Map
			p.printf(":%s:%s:%d:%#x:%s", protText(m.Prot), flagText(m.Flags), m.Object, m.Offset, strconv.QuoteToASCII(m.Name))
		case MapOpMove:
			p.printf(":%#x-%#x", op.New, op.NewEnd)
		case MapOpProtect:
			p.printf(":%s", protText(op.Prot))
		case MapOpUnmap, MapOpDrop: // The range says all.
		}
	}
	p.s.WriteByte(']')
}

func (p *textPrinter) writes(list []MemWrite) {
	for i := range list {
		b, dots := p.cut(list[i].Data)
		p.printf("%s%#x:%s%s", sepOf(i), list[i].Addr, strconv.QuoteToASCII(string(b)), dots)
	}
	p.s.WriteByte(']')
}

func sepOf(i int) string {
	if i == 0 {
		return "["
	}
	return ";"
}

var instrNames = [...]string{InstrRDTSC: "rdtsc", InstrRDTSCP: "rdtscp", InstrCPUID: "cpuid"}

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
