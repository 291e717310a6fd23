package debugcode

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"vplay/checkpoint/abi"
	"vplay/dwarf"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// A call of a region: the diversion is made one of the moment, the addresses of what the region names are put
// into its code, and it runs until it returns.

// caller calls regions.
type caller struct {
	p     *Program
	ctx   context.Context
	h     *host
	d     *replay.Diversion // nil before the first call
	ready x86.State         // of debug code, when it waits to be called
	view  *replay.Machine   // where the program is
	steps uint64
	out   func(fd int, b []byte)

	names   naming
	printed bool // the program's functions may have printed what is still in their buffers
	nested  bool // its fflush runs, for us
	mute    bool // what it prints is what the program had in its buffers already
	failed  error
	calls   uint64
}

// start makes the diversion, and has debug code's own start code run until it is ready.
func (c *caller) start(m *replay.Machine) error {
	c.view = m
	c.d = m.Divert()
	d := c.d
	code := &replay.DebugCode{Mem: c.h.space, Start: c.p.base, End: c.p.base + windowSize, Syscall: c.h.syscall, Crossed: c.crossed}
	d.SetCode(code)
	d.Output = func(b []byte) {
		if !c.mute {
			c.out(1, b)
		}
	}
	d.Missing = c.missing
	c.h.setFS = func(a uint64) { d.CPU.FSBase = a }
	c.h.program = func(a uint64, b []byte) int {
		n, _ := d.Mem.Peek(a, b)
		return n
	}
	c.h.before = func() { c.flush() }
	c.h.output = c.out
	st := x86.New(nil, d.CPU.ID).State
	st.RIP, st.R[x86.RSP] = c.p.image.entry, c.h.stack()
	st.Seg = d.CPU.Seg
	d.RunCode(&st)
	d.CPU.SetBreakpoints([]uint64{c.p.image.symbols["vplay_ready"], c.p.image.symbols["vplay_done"]})
	if err := c.run(); err != nil {
		return err
	}
	c.ready = d.CPU.State
	return nil
}

// missing is replay.Diversion.Missing: code that the recording lacks comes from the files of the modules.
func (c *caller) missing(a uint64, page []byte) int {
	m := debug.Memory{Space: c.d.Mem}
	mod := image.ModuleAt(debug.Regions(c.p.s.Rec, c.d.Mem), m, a)
	if mod == nil {
		return 0
	}
	return c.p.o.Symbols.Text(mod, m, a, page)
}

// redZone is what a function may use below the stack pointer (System V ABI, AMD64 supplement, 3.2.2).
const redZone = 128

// call calls a region.
func (c *caller) call(v *observe.View, r *region, t *told) error {
	c.p.s.Rec.Budget().Renew() // each call may look at as much as a debugger's command
	m := v.Machine()
	if c.d == nil {
		if err := c.start(m); err != nil {
			return err
		}
	}
	c.calls++
	c.view, c.printed, c.failed = m, false, nil
	c.d.Renew(m)
	process := c.d.CPU.State
	if err := c.bind(r, &process); err != nil {
		return err
	}
	at := c.p.image.symbols["vplay_told"]
	c.h.inject(at, t.bytes(v))
	st := c.ready
	sp := (c.ready.R[x86.RSP]-redZone)&^15 - 8
	c.h.inject(sp, binary.LittleEndian.AppendUint64(nil, c.p.image.symbols["vplay_done"]))
	st.R[x86.RSP], st.R[x86.RDI], st.RIP = sp, at, c.p.image.symbols[r.function()]
	c.d.RunCode(&st)
	if err := c.run(); err != nil {
		return err
	}
	c.flush()
	return c.failed
}

// finish has debug code's main function return, so that what it wants done at its end is done.
func (c *caller) finish() error {
	if c.d == nil {
		return nil
	}
	st := c.ready
	c.d.RunCode(&st)
	stop, err := c.d.Run(c.ctx, true)
	if err == nil && stop.Reason == replay.StopEnd {
		return nil
	}
	return c.mistake(stop, err)
}

// run runs until the debug code comes to vplay_ready or vplay_done.
func (c *caller) run() error {
	if c.steps > 0 {
		c.d.Limit = c.d.CPU.Retired + c.steps
	}
	stop, err := c.d.Run(c.ctx, false)
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	if err == nil && stop.Reason == replay.StopBreak {
		return nil
	}
	return c.mistake(stop, err)
}

// Exit is debug code's call of exit.
type Exit struct{ Code int }

func (e *Exit) Error() string { return fmt.Sprintf("debug code ended with %d", e.Code) }

// LimitError says that a region ran for too long.
type LimitError struct {
	At    string
	Steps uint64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: the debug code was ended: it has executed %d instructions in one call", e.At, e.Steps)
}

// mistake is the error of a run that did not end as it should, with the line of debug code.
func (c *caller) mistake(stop replay.DiversionStop, err error) error {
	where, inProgram := c.where(), ""
	if !c.d.IsCode() {
		inProgram = "the program's function that is called here"
		if l := c.names.at(c.p, c.view).At(c.d.CPU.RIP); l.Function != "" {
			inProgram = "the program's " + l.Function + ", called here,"
		}
	}
	who := "debug code"
	if inProgram != "" {
		who = inProgram
	}
	var store *replay.StoreError
	var lacks *replay.DiversionError
	switch {
	case errors.As(err, &store):
		what := fmt.Sprintf("%#x", store.Addr)
		if name := c.names.at(c.p, c.view).Symbol(store.Addr); name != "" {
			what = name + " (" + what + ")"
		}
		return &Error{where, "debug code may not write to the program's memory, and does so at " + what}
	case errors.As(err, &lacks):
		return &Error{where, who + " cannot go on: " + lacks.What}
	case err != nil:
		return err
	case stop.Reason == replay.StopEnd && c.d.IsCode():
		return &Exit{stop.Code}
	case stop.Reason == replay.StopEnd:
		return &Error{where, fmt.Sprintf("%s has ended the program with code %d", who, stop.Code)}
	case stop.Reason == replay.StopLimit:
		return &LimitError{where, c.steps}
	case stop.Reason == replay.StopSignal:
		if name := c.copied(&stop); name != "" && inProgram == "" {
			return &Error{where, fmt.Sprintf("debug code may not write to %s, which the program has in a register here", name)}
		}
		return &Error{where, who + " got " + c.signal(&stop)}
	}
	return &Error{where, who + " has stopped"}
}

// faultAddress is what could not be accessed, where that made a signal.
func faultAddress(stop *replay.DiversionStop) (addr uint64, ok bool) {
	if signo := abi.Signal(stop.Signo); len(stop.Siginfo) < 24 || signo != abi.SIGSEGV && signo != abi.SIGBUS {
		return 0, false
	}
	return binary.LittleEndian.Uint64(stop.Siginfo[16:]), true
}

// copied is the variable whose copy could not be written, "" where it was no such.
func (c *caller) copied(stop *replay.DiversionStop) string {
	addr, ok := faultAddress(stop)
	for _, s := range c.p.symbols {
		if ok && s.scratch != 0 && addr >= s.scratch && addr < s.scratch+uint64(max(s.typ.Size(), 1)) {
			return s.program
		}
	}
	return ""
}

// signal is a signal with the address of the access that made it.
func (c *caller) signal(stop *replay.DiversionStop) string {
	name := abi.Signal(stop.Signo).String()
	addr, ok := faultAddress(stop)
	switch start := c.p.base + stackAt; {
	case !ok:
		return name
	case addr < start && addr >= start-stackSize:
		return fmt.Sprintf("%s at %#x: its stack of %d MiB is full", name, addr, stackSize>>20)
	}
	return fmt.Sprintf("%s at %#x", name, addr)
}

// where is the line of debug code that is executed, or that has called what is: the C library's functions have no
// lines, and no unwind tables, so the first word on the stack that a call of a line of the user's may have left is taken.
func (c *caller) where() string {
	img := c.p.image
	if c.d.IsCode() {
		if s := img.source(c.d.CPU.RIP); s != "" {
			return s
		}
	}
	top := c.p.base + stackAt + stackSize
	for a := (c.d.CPU.R[x86.RSP] + 7) &^ 7; a >= c.p.base+stackAt && a < top; a += 8 {
		var b [8]byte
		if n, _ := c.h.space.Peek(a, b[:]); n < len(b) {
			break
		}
		ret := binary.LittleEndian.Uint64(b[:])
		var code [7]byte
		if ret < img.text[0]+7 || ret >= img.text[1] {
			continue
		}
		if n, _ := c.h.space.Peek(ret-7, code[:]); n == len(code) && dwarf.EndsInCall(&code) {
			if s := img.source(ret - 1); s != "" {
				return s
			}
		}
	}
	return ""
}

// crossed is replay.DebugCode.Crossed: when the program's functions run for the first time in a call, what the
// program itself had in its output buffers is thrown away, so that what comes out is theirs.
func (c *caller) crossed(own bool) error {
	if c.nested || own {
		return nil
	}
	if !c.printed {
		c.mute = true
		c.fflush()
		c.mute = false
	}
	c.printed = true
	return nil
}

// flush has the program's C library print what its functions have put into buffers.
func (c *caller) flush() {
	if c.printed && !c.nested {
		c.fflush()
	}
}

// fflush calls the program's fflush(NULL). Where that is not there, or cannot run, nothing happens.
func (c *caller) fflush() {
	entry := c.names.fflush
	if entry == 0 {
		return
	}
	d := c.d
	wasCode, saved := d.IsCode(), d.CPU.State
	c.nested = true
	sp := (saved.R[x86.RSP]-redZone)&^15 - 8
	c.h.inject(sp, binary.LittleEndian.AppendUint64(nil, c.p.image.symbols["vplay_done"]))
	d.CPU.R[x86.RSP], d.CPU.R[x86.RDI], d.CPU.RIP = sp, 0, entry
	_, err := d.Run(c.ctx, false)
	if c.nested = false; err != nil && c.failed == nil {
		var store *replay.StoreError
		if errors.As(err, &store) {
			c.failed = err
		}
	}
	switch {
	case wasCode && !d.IsCode():
		d.RunCode(&saved)
	case !wasCode && d.IsCode():
		d.RunProcess()
	}
	d.CPU.State = saved
}

// bind puts the addresses of what a region uses into its code.
func (c *caller) bind(r *region, process *x86.State) error {
	if err := c.bindProgram(process); err != nil {
		return err
	}
	if len(r.order) == 0 {
		return nil
	}
	b := c.names.bound(c, process)
	for _, name := range r.order {
		s := r.locals[name]
		if len(s.sites) == 0 {
			continue
		}
		v, err := b.local(name)
		if err == nil {
			err = c.place(s, v)
		}
		if err != nil {
			return &Error{r.at, fmt.Sprintf("%s has no value here, at %#x: %v", name, process.RIP, err)}
		}
	}
	return nil
}

// place binds a symbol to where a value is; one that is not in memory is copied.
func (c *caller) place(s *symbol, v dwarf.Value) error {
	if a, ok := v.Address(); ok {
		c.set(s, a)
		return nil
	}
	b, err := v.Bytes()
	if err != nil {
		return err
	}
	if len(b) > maxScratch {
		return fmt.Errorf("it is larger than %d bytes, and not in memory", maxScratch)
	}
	c.h.inject(s.scratch, b)
	c.set(s, s.scratch)
	return nil
}

// set puts a symbol's address where debug code has it.
func (c *caller) set(s *symbol, a uint64) {
	if s.isSet && s.value == a {
		return
	}
	for _, x := range s.sites {
		c.h.inject(x.at, binary.LittleEndian.AppendUint64(nil, a+x.addend))
	}
	if !s.isSet {
		for _, x := range s.data {
			c.h.inject(x.at, binary.LittleEndian.AppendUint64(nil, a+x.addend))
		}
	}
	s.value, s.isSet = a, true
}

// bindProgram binds what is the same in all regions: functions, and variables outside of them. They move only with the memory map,
// but for those of threads.
func (c *caller) bindProgram(process *x86.State) error {
	res, isNew := c.names.renew(c.p, c.view)
	if isNew {
		for _, m := range res.Maps() {
			if m.Start < c.p.base+windowSize && m.End > c.p.base {
				return &Error{"", fmt.Sprintf("the recorded program has mapped memory at %#x, where debug code is", m.Start)}
			}
		}
	}
	modules := modulesOf(res)
	for _, s := range c.p.symbols {
		if s.isLocal || !isNew && !s.isThread {
			continue
		}
		if f := s.function; f != nil {
			a := uint64(0)
			if mod := modules[f.module]; mod != nil {
				a = f.entry + mod.Bias
			} else if f.isBare {
				a, _ = res.Lookup(s.program)
			}
			c.set(s, a)
			continue
		}
		if v, ok := c.names.global(c, s, process); !ok {
			c.set(s, 0)
		} else if err := c.place(s, v); err != nil && s.isThread {
			c.set(s, 0) // of a library that this thread has nothing of yet
		}
	}
	return nil
}
