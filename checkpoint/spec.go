package checkpoint

import (
	"fmt"
	"unsafe"
)

// The event table: one row per kind of event, with its fields in order. The
// encoder, the decoder, the text printer and the checker of package tests all
// derive from it, so that a field is added in one place. FORMAT.md prints the
// same table; a test compares them.
//
// An event is: kind (1 byte), length of the rest (varint), a varint with one
// bit per optional field of the kind (bit 0 is the first one; left out when
// the kind has none), the required fields, and those optional fields whose bit
// is set. A bit is set exactly when the field is not zero.

// fieldType is how a field is coded and printed.
type fieldType uint8

// The field types.
const (
	typeInt    fieldType = iota // int64: zigzag varint, decimal
	typeInt32                   // int32: zigzag varint, decimal
	typeCount                   // uint64: varint, decimal
	typeAddr                    // uint64: varint, hexadecimal
	typeHash                    // uint64: 8 bytes little endian, hexadecimal
	typeFlag                    // bool: no bytes; only as an optional field, where its bit says all
	typeArgs                    // [6]uint64: 6 varints
	typeOut                     // [4]uint64: 4 varints
	typeInstr                   // InstrKind: varint
	typeSched                   // SchedReason: varint
	typeThread                  // ThreadOp: varint
	typeRegs                    // *Regs
	typeBytes                   // []byte: length, bytes
	typeText                    // string: length, bytes
	typeMaps                    // []MapOp
	typeWrites                  // []MemWrite
	numFieldTypes
)

// fieldCodec is what a field type can do with a pointer to a field.
type fieldCodec struct {
	name   string
	code   func(c *coder, p any)
	isZero func(p any) bool
}

// codec makes a fieldCodec from functions on the field's Go type.
func codec[T any](name string, code func(*coder, *T), isZero func(*T) bool) fieldCodec {
	return fieldCodec{
		name:   name,
		code:   func(c *coder, p any) { code(c, p.(*T)) },
		isZero: func(p any) bool { return isZero(p.(*T)) },
	}
}

func isZero[T comparable](p *T) bool     { var z T; return *p == z }
func isEmpty[T any](p *[]T) bool         { return len(*p) == 0 }
func codeInstr(c *coder, p *InstrKind)   { enum(c, p, InstrRDTSC, InstrRandom, "instruction kind") }
func codeSched(c *coder, p *SchedReason) { enum(c, p, SchedBlocked, SchedStart, "reason of a switch") }
func codeThread(c *coder, p *ThreadOp)   { enum(c, p, ThreadStart, ThreadExit, "change of a thread") }

// codeFlag writes nothing when it encodes: others may read the event.
func codeFlag(c *coder, p *bool) {
	if c.decoding {
		*p = true
	}
}

func codeNumbers(c *coder, p []uint64) {
	for i := range p {
		c.u64(&p[i])
	}
}

func codeRegsPtr(c *coder, p **Regs) {
	if *p == nil {
		c.reserve(1, int(unsafe.Sizeof(Regs{})))
		*p = new(Regs)
	}
	codeRegs(c, *p)
}

var fieldCodecs = [numFieldTypes]fieldCodec{
	typeInt:    codec("int", (*coder).i64, isZero[int64]),
	typeInt32:  codec("int32", (*coder).i32, isZero[int32]),
	typeCount:  codec("count", (*coder).u64, isZero[uint64]),
	typeAddr:   codec("addr", (*coder).u64, isZero[uint64]),
	typeHash:   codec("hash", (*coder).fixed64, isZero[uint64]),
	typeFlag:   codec("flag", codeFlag, isZero[bool]),
	typeArgs:   codec("6 addr", func(c *coder, p *[6]uint64) { codeNumbers(c, p[:]) }, isZero[[6]uint64]),
	typeOut:    codec("4 addr", func(c *coder, p *[4]uint64) { codeNumbers(c, p[:]) }, isZero[[4]uint64]),
	typeInstr:  codec("instr", codeInstr, isZero[InstrKind]),
	typeSched:  codec("sched", codeSched, isZero[SchedReason]),
	typeThread: codec("thread", codeThread, isZero[ThreadOp]),
	typeRegs:   codec("regs", codeRegsPtr, isZero[*Regs]),
	typeBytes:  codec("bytes", (*coder).bytes, isEmpty[byte]),
	typeText:   codec("text", (*coder).str, isZero[string]),
	typeMaps:   codec("maps", func(c *coder, p *[]MapOp) { list(c, p, 3, codeMapOp) }, isEmpty[MapOp]),
	typeWrites: codec("writes", func(c *coder, p *[]MemWrite) { list(c, p, 2, codeMemWrite) }, isEmpty[MemWrite]),
}

// eventField is one field of Event.
type eventField struct {
	name string
	typ  fieldType
	at   func(*Event) any // pointer to the field
}

// fieldID indexes eventFields.
type fieldID uint8

// The fields of Event.
const (
	fTID fieldID = iota
	fHash
	fNR
	fArgs
	fResult
	fRestart
	fRestartNR
	fRegs
	fXState
	fMaps
	fWrites
	fSigno
	fSiginfo
	fAddr
	fInstr
	fOut
	fReason
	fNote
	fSeq
	fWhy
	fThread
	fParent
	fFlags
	fStatus
	numFields
)

var eventFields = [numFields]eventField{
	fTID:       {"tid", typeInt32, func(e *Event) any { return (*int32)(&e.TID) }},
	fHash:      {"hash", typeHash, func(e *Event) any { return &e.RegHash }},
	fNR:        {"nr", typeInt, func(e *Event) any { return &e.NR }},
	fArgs:      {"args", typeArgs, func(e *Event) any { return &e.Args }},
	fResult:    {"result", typeInt, func(e *Event) any { return &e.Result }},
	fRestart:   {"restart", typeFlag, func(e *Event) any { return &e.Restart }},
	fRestartNR: {"restart_nr", typeInt, func(e *Event) any { return &e.RestartNR }},
	fRegs:      {"regs", typeRegs, func(e *Event) any { return &e.Regs }},
	fXState:    {"xstate", typeBytes, func(e *Event) any { return &e.XState }},
	fMaps:      {"maps", typeMaps, func(e *Event) any { return &e.Maps }},
	fWrites:    {"writes", typeWrites, func(e *Event) any { return &e.Writes }},
	fSigno:     {"signo", typeInt32, func(e *Event) any { return &e.Signo }},
	fSiginfo:   {"siginfo", typeBytes, func(e *Event) any { return &e.Siginfo }},
	fAddr:      {"addr", typeAddr, func(e *Event) any { return &e.Addr }},
	fInstr:     {"instr", typeInstr, func(e *Event) any { return &e.Instr }},
	fOut:       {"out", typeOut, func(e *Event) any { return &e.Out }},
	fReason:    {"reason", typeText, func(e *Event) any { return &e.Reason }},
	fNote:      {"note", typeText, func(e *Event) any { return &e.Note }},
	fSeq:       {"seq", typeCount, func(e *Event) any { return &e.Seq }},
	fWhy:       {"why", typeSched, func(e *Event) any { return &e.Why }},
	fThread:    {"thread", typeThread, func(e *Event) any { return &e.Thread }},
	fParent:    {"parent", typeInt32, func(e *Event) any { return (*int32)(&e.Parent) }},
	fFlags:     {"flags", typeAddr, func(e *Event) any { return &e.Flags }},
	fStatus:    {"status", typeInt32, func(e *Event) any { return &e.Status }},
}

// eventSpec is one kind of event.
type eventSpec struct {
	name     string
	required []fieldID
	optional []fieldID
	banned   []fieldID // all others, made by init
}

// eventSpecs is the event table, indexed by EventKind.
var eventSpecs = [...]eventSpec{
	EventEnter:  {name: "enter", required: []fieldID{fTID, fHash, fNR, fArgs}, optional: []fieldID{fMaps, fWrites, fNote, fSeq, fRegs}},
	EventExit:   {name: "exit", required: []fieldID{fTID, fHash, fNR, fResult}, optional: []fieldID{fRestart, fRestartNR, fRegs, fXState, fMaps, fWrites, fNote, fSeq}},
	EventSignal: {name: "signal", required: []fieldID{fTID, fHash, fSigno}, optional: []fieldID{fSiginfo, fRegs, fXState, fMaps, fWrites, fAddr, fNote, fSeq}},
	EventSched:  {name: "sched", required: []fieldID{fTID, fHash}, optional: []fieldID{fNote, fSeq, fRegs, fWhy}},
	EventInstr:  {name: "instr", required: []fieldID{fTID, fHash, fInstr, fOut}, optional: []fieldID{fRegs, fNote, fSeq}},
	EventFault:  {name: "fault", required: []fieldID{fTID, fHash, fSigno, fAddr}, optional: []fieldID{fSiginfo, fMaps, fWrites, fNote, fSeq, fRegs}},
	EventGap:    {name: "gap", required: []fieldID{fTID, fHash, fNR}, optional: []fieldID{fArgs, fReason, fNote, fSeq}},
	EventEnd:    {name: "end", required: []fieldID{fTID, fHash}, optional: []fieldID{fNR, fSigno, fSiginfo, fReason, fNote, fSeq}},
	EventThread: {name: "thread", required: []fieldID{fTID, fHash, fThread}, optional: []fieldID{fParent, fFlags, fStatus, fRegs, fWrites, fNote, fSeq}},
}

func init() {
	for k := range eventSpecs {
		s := &eventSpecs[k]
		var used [numFields]bool
		for _, id := range s.required {
			used[id] = true
		}
		for _, id := range s.optional {
			used[id] = true
		}
		for id := range numFields {
			if !used[id] {
				s.banned = append(s.banned, id)
			}
		}
	}
}

// spec returns the row of a kind, nil for an unknown one.
func (k EventKind) spec() *eventSpec {
	if k < EventEnter || int(k) >= len(eventSpecs) {
		return nil
	}
	return &eventSpecs[k]
}

// String returns the kind's name.
func (k EventKind) String() string {
	if s := k.spec(); s != nil {
		return s.name
	}
	return fmt.Sprintf("event(%d)", uint8(k))
}

func (id fieldID) code(c *coder, e *Event) {
	f := &eventFields[id]
	fieldCodecs[f.typ].code(c, f.at(e))
}

func (id fieldID) isZero(e *Event) bool {
	f := &eventFields[id]
	return fieldCodecs[f.typ].isZero(f.at(e))
}

// encodeEvent appends an event to c. scratch is a coder it may use.
func encodeEvent(c, scratch *coder, e *Event) {
	s := e.Kind.spec()
	if s == nil {
		c.fail("unknown event kind %d", e.Kind)
		return
	}
	for _, id := range s.banned {
		if !id.isZero(e) {
			c.fail("%s event has a value in field %s", s.name, eventFields[id].name)
			return
		}
	}
	scratch.b, scratch.err = scratch.b[:0], nil
	present := uint64(0)
	for i, id := range s.optional {
		if !id.isZero(e) {
			present |= 1 << i
		}
	}
	if len(s.optional) > 0 {
		scratch.u64(&present)
	}
	for _, id := range s.required {
		id.code(scratch, e)
	}
	for i, id := range s.optional {
		if present>>i&1 != 0 {
			id.code(scratch, e)
		}
	}
	if scratch.err != nil {
		c.fail("%s event: %w", s.name, scratch.err)
		return
	}
	c.b = append(c.b, byte(e.Kind))
	c.bytes(&scratch.b)
}

// decodeEvent takes one event from c. Its byte slices alias c's input.
func decodeEvent(c *coder, e *Event) {
	kind := c.take(1)
	if c.err != nil {
		return
	}
	e.Kind = EventKind(kind[0])
	s := e.Kind.spec()
	if s == nil {
		c.fail("unknown event kind %d", e.Kind)
		return
	}
	var body []byte
	c.bytes(&body)
	if c.err != nil {
		return
	}
	d := coder{decoding: true, version: c.version, b: body, budget: c.budget, charge: c.charge}
	present := uint64(0)
	if len(s.optional) > 0 {
		present = d.limited(0, 1<<len(s.optional)-1, "presence bits")
	}
	for _, id := range s.required {
		id.code(&d, e)
	}
	for i, id := range s.optional {
		if present>>i&1 == 0 || d.err != nil {
			continue
		}
		id.code(&d, e)
		if d.err == nil && id.isZero(e) {
			d.fail("field %s is present and zero", eventFields[id].name)
		}
	}
	if c.version < 2 && (e.Kind > EventEnd || e.Why != 0) {
		d.fail("version 1 has no such event")
	}
	if err := d.finish(); err != nil {
		c.fail("%s event: %w", s.name, err)
	}
	c.budget = d.budget
}

const (
	// leastEvent is the least length of an event in bytes: kind, length,
	// presence, thread and hash.
	leastEvent = 12
	// maxEvents is the greatest number of events of an interval.
	maxEvents = 1 << 21
)

// writesOfEvent is what the writes of an event take beside their data, in bytes: half of the events, exits of calls, have one or two.
const writesOfEvent = 40

// DecodedSize is about what the interval takes once it is read, in bytes. It is what the manifest says, which may be forged.
func (i *IntervalInfo) DecodedSize() int64 {
	events := int64(min(max(i.Events, 0), maxEvents))
	return events*(int64(unsafe.Sizeof(Event{}))+writesOfEvent) + min(max(i.LogRaw, 0), maxDecoded)
}

// decodeEvents takes a whole log of n events from raw, in a version of the format.
func decodeEvents(raw []byte, n, version int, ch *charge) ([]Event, error) {
	if n < 0 || n > maxEvents || n > len(raw)/leastEvent {
		return nil, &offsetError{0, fmt.Errorf("%d events cannot be in %d bytes", n, len(raw))}
	}
	if n == 0 && len(raw) == 0 {
		return nil, nil
	}
	if err := ch.add(int64(n) * int64(unsafe.Sizeof(Event{}))); err != nil {
		return nil, err
	}
	events := makeEvents(n)
	c := newDecoder(raw, nil)
	c.charge, c.version = ch, version
	for i := range events {
		at := c.pos
		decodeEvent(c, &events[i])
		if c.err != nil {
			return nil, &offsetError{int64(at), fmt.Errorf("event %d: %w", i, c.err)}
		}
	}
	if err := c.finish(); err != nil {
		return nil, &offsetError{int64(c.pos), err}
	}
	return events, nil
}
