//go:build linux && amd64

package jit

import (
	"slices"

	"vplay/replay/x86"
)

// Traces: generated code that says what it executes. Before each instruction it stores the words that the trace has of it to a log, and where it
// leaves a unit it stores the number of the unit and of the instructions. So a store or two for an access, and three for a unit, are all that it costs; Go
// reads the log when generated code is left (drain). Words are stored at fixed distances from where those of the
// unit begin: what was stored and then not executed is written over.
//
//	word    lea r15, ea; mov rax, [log]; mov [rax+8*n], r15
//	run     mov rax, [log]; mov [rax+8*n], run; lea rax, [rax+8*n+8]; mov [log], rax
//
// Flags stay. What the interpreter executes, because it is cold or no unit can have it, x86.TraceEngine tells.

// logRun bounds the instructions that are executed before the log is read: it stays in the processor's cache.
const logRun = 1 << 13

// logWarmup is what Engine.Warmup is at most: the interpreter needs ten times as long when it tells of all.
const logWarmup = warmup / 8

// logSize is how many words it has, for instructions that are units of their own, and for one unit more.
const logSize = (logRun + maxUnit) * (x86.MaxWords + 1)

// traceLog is the log, and who is told.
type traceLog struct {
	to    *x86.TraceEngine
	words []uint64
	begin uint64 // its address
	units []*tracedUnit
	runs  []tracedRun // in drain
}

// tracedUnit is what is known of a unit that is translated, by a number of its own: versions have others.
type tracedUnit struct {
	id   int
	list []x86.Word // of all instructions
	at   []uint16   // where those of each begin, and the end
}

// of returns the words of instruction i.
func (u *tracedUnit) of(i int) []x86.Word { return u.list[u.at[i]:u.at[i+1]] }

// tracedRun is what the log has of one passage through a unit.
type tracedRun struct {
	unit  *tracedUnit
	n     int // instructions
	first int // word
}

// Trace implements x86.UnitEngine. Close gives the engine's memory back, and no other processor gets the code.
func (e *Engine) Trace(t *x86.TraceEngine) {
	l := &traceLog{to: t, words: make([]uint64, logSize)}
	l.begin = addressOf(l.words)
	e.log, e.Warmup = l, min(e.Warmup, logWarmup)
	e.t.c.Host[wordLog] = l.begin
}

// dropTrace forgets all units.
func (e *Engine) dropTrace() {
	if e.log == nil {
		return
	}
	e.drain(e.t.c)
	e.log.units = e.log.units[:0]
}

// isTold reports whether the unit that is decoded may have in, which is at pc, and notes its words.
func (t *translator) isTold(pc uint64, in *x86.Inst) bool {
	if t.e.log == nil {
		return true
	}
	if t.rows[in.Row].ends && !t.emitted(in) { // the owner may have to execute it
		return false
	}
	list, ok := t.e.log.to.Units.Words(pc, in)
	if !ok || len(list) > x86.MaxWords {
		return false
	}
	t.words = append(t.words, list...)
	t.wordsAt = append(t.wordsAt, uint16(len(t.words)))
	return true
}

// beginTrace begins the trace of unit t.u.
func (t *translator) beginTrace() {
	l := t.e.log
	if l == nil {
		return
	}
	t.trace = &tracedUnit{id: len(l.units), list: slices.Clone(t.words), at: slices.Clone(t.wordsAt)}
	l.units = append(l.units, t.trace)
	t.u.trace = t.trace
	l.to.Units.Unit(t.trace.id, t.u.pc, t.u.insts)
}

// slot returns the place of word n from where the log is. scratch must have its address.
func slot(n int) memory { return at(scratch, 8*int32(n)) }

// logWords stores the words of the instruction.
func (t *translator) logWords() {
	if t.e.log == nil || !t.emitted(t.in) || t.in.Flags&x86.InstMem != 0 && !inMemory(t.in) {
		return // executeIn does
	}
	first := int(t.trace.at[t.i])
	for k, w := range t.trace.of(t.i) {
		r := uint8(address)
		switch {
		case w.Kind == x86.WordBefore, w.Kind == x86.WordAfter:
			continue // logMemory does
		case w.Kind == x86.WordNext:
			t.overwrites(address)
			t.load64(address, t.next())
		case w.Reg == x86.NoReg:
			t.effective(address)
			if seg := t.in.Seg; seg == x86.FS || seg == x86.GS {
				base := t.layout.FSBase
				if seg == x86.GS {
					base = t.layout.GSBase
				}
				t.mem(opMov, scratch, at(rsp, base))
				t.mem(opLea, address, memory{base: address, index: scratch})
			}
		case w.Add != 0:
			t.mem(opLea, address, at(t.operand(w.Reg, address), w.Add))
			t.overwrites(address)
		default:
			r = t.operand(w.Reg, address)
		}
		t.mem(opMov, scratch, t.word(wordLog))
		t.mem(opMovTo, r, slot(first+k))
	}
}

// placed is called where place is what is at the memory operand, or with isStack the stack's top: words of what is there are stored. Flags stay.
func (t *translator) placed(isStack bool) {
	if t.e.log != nil {
		t.isPlaced, t.isStack = true, isStack
		t.logMemory(x86.WordBefore, isStack)
	}
}

// logAfter stores the words of what the instruction has stored, where place is still what it was. A unit that lacks a word must not be used.
func (t *translator) logAfter() {
	if t.e.log == nil {
		return
	}
	memory := 0
	for _, w := range t.trace.of(t.i) {
		if w.Kind == x86.WordBefore || w.Kind == x86.WordAfter {
			memory++
		}
	}
	if t.isPlaced && !t.ended {
		t.logMemory(x86.WordAfter, t.isStack)
	}
	t.bad = t.bad || t.logged != memory
	t.isPlaced, t.logged = false, 0
}

// logMemory stores the words of a kind.
func (t *translator) logMemory(kind x86.WordKind, isStack bool) {
	first, isSpilled := int(t.trace.at[t.i]), false
	for k, w := range t.trace.of(t.i) {
		if w.Kind != kind || (w.Reg != x86.NoReg) != isStack {
			continue
		}
		if !isSpilled {
			t.mem(opMovTo, rcx, t.word(wordSpill1))
			t.mem(opMov, scratch, t.word(wordLog))
			isSpilled = true
		}
		from := t.place
		from.disp += int32(w.Off)
		t.logged++
		t.mem(loadOf[w.Size], rcx, from)
		t.mem(opMovTo, rcx, slot(first+k))
	}
	if isSpilled {
		t.mem(opMov, rcx, t.word(wordSpill1))
	}
}

// loadOf are the instructions that load so many bytes, and make the rest of a register 0.
var loadOf = [9]opcode{1: {op: 0xb6, opmap: 1}, 2: {op: 0xb7, opmap: 1}, 4: opMov32, 8: opMov}

// logRun stores that the first n instructions of the unit were executed, and what they have of words stays. Flags and
// address stay.
func (t *translator) logRun(n int) {
	if t.e.log == nil {
		return
	}
	words := int(t.trace.at[n])
	t.mem(opMov, scratch, t.word(wordLog))
	t.mem(opMovImm, 0, slot(words))
	t.imm32(uint32(runOf(t.trace, n)))
	t.mem(opLea, scratch, slot(words+1))
	t.mem(opMovTo, scratch, t.word(wordLog))
}

// runOf is how the log has n instructions of u.
func runOf(u *tracedUnit, n int) uint64 { return uint64(u.id)*(maxUnit+1) + uint64(n) }

// next returns where in the log the next word stands.
func (l *traceLog) next(c *x86.CPU) int { return int(c.Host[wordLog]-l.begin) / 8 }

// executeIn has the handler execute instruction i of u, where the log has what was executed of u before.
func (e *Engine) executeIn(c *x86.CPU, u *unit, i int) (x86.Exit, bool) {
	in := &u.insts[i]
	l := e.log
	if l == nil {
		return c.Execute(in)
	}
	words, out := u.trace.of(i), l.words[l.next(c)+int(u.trace.at[i]):]
	var r x86.WordReader
	r.Before(c, in, words, out)
	on, after := c.OnInst, c.AfterInst
	c.OnInst, c.AfterInst = nil, nil
	x, goesOn := c.Execute(in)
	c.OnInst, c.AfterInst = on, after
	r.After(c, words, out)
	return x, goesOn
}

// leaveIn is called where u is left for Go, at instruction i or, if that was executed, behind it. retired is the count before u.
func (e *Engine) leaveIn(c *x86.CPU, u *unit, i int, retired uint64) {
	l := e.log
	if l == nil {
		return
	}
	if c.Retired > retired+uint64(i) {
		i++
	}
	if i == 0 {
		return
	}
	at := l.next(c) + int(u.trace.at[i])
	l.words[at] = runOf(u.trace, i)
	c.Host[wordLog] += 8 * (uint64(u.trace.at[i]) + 1)
}

// drain tells of what the log has, and empties it.
func (e *Engine) drain(c *x86.CPU) {
	l := e.log
	if l == nil {
		return
	}
	runs, before := l.runs[:0], c.Retired
	for at := l.next(c); at > 0; {
		at--
		run := l.words[at]
		u, n := l.units[run/(maxUnit+1)], int(run%(maxUnit+1))
		at -= int(u.at[n])
		before -= uint64(n)
		runs = append(runs, tracedRun{u, n, at})
	}
	for i := len(runs) - 1; i >= 0; i-- {
		r := &runs[i]
		l.to.Units.Ran(r.unit.id, r.n, before, l.words[r.first:][:r.unit.at[r.n]])
		before += uint64(r.n)
	}
	l.runs = runs
	c.Host[wordLog] = l.begin
}

// tracer returns who is told, or nil.
func (e *Engine) tracer() *x86.TraceEngine {
	if e.log == nil {
		return nil
	}
	return e.log.to
}
