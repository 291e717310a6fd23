package debug

import (
	"debug/elf"
	"errors"
	"fmt"
	"path"

	"golang.org/x/arch/x86/x86asm"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay/debug/api"
	"vplay/replay/x86"
)

// What package api's Symbols asks, answered by package dwarf for all modules at once:
// frames, lines, functions, variables, expressions, conditions. Here addresses of the
// process become those of a file and back; what a file says is read by package dwarf.

// Symbols tells what addresses, lines and names mean where a cursor is.
type Symbols struct{ g *Cursor }

// NewSymbols returns the symbols at a cursor.
func NewSymbols(g *Cursor) *Symbols { return &Symbols{g} }

// modules lists the modules at the present position.
func (d *Symbols) modules() []*image.Module { return d.g.names().Modules() }

// open returns what is known of a module's file, nil when nothing is.
func (d *Symbols) open(mod *image.Module) *dwarf.Module { return d.g.names().File(mod) }

// at returns the module that holds an address, if it can be opened.
func (d *Symbols) at(addr uint64) (m *dwarf.Module, mod *image.Module) {
	names := d.g.names()
	if mod = names.Module(addr); mod == nil {
		return nil, nil
	}
	return names.File(mod), mod
}

// frameHandle is what a frame is evaluated in.
type frameHandle struct {
	env   *dwarf.Env
	state *x86.State // of the thread
	scope int        // index among the functions at the frame's place
}

// Stack implements api.Symbols. A thread that is not there has no frames.
func (d *Symbols) Stack(tid, limit int) (out []api.Frame) {
	st, err := d.g.threadState(tid)
	if err != nil {
		return nil
	}
	regs := loader.DwarfRegs(&checkpoint.Regs{R: st.R, RIP: st.RIP})
	frames := dwarf.Backtrace(regs, Memory{d.g.mem()}, d.g.names().Find, min(limit+1, 4096))
	envs := dwarf.Envs(frames, present{d.g}) // frames outlive a copy that is written to
	for _, e := range envs {
		if len(out) >= limit {
			break
		}
		d.equip(e, st)
		out = append(out, d.frames(e, st)...)
	}
	return out[:min(len(out), limit)]
}

// equip gives a frame of a thread what it needs beyond its registers. Vector registers are not
// kept by calls (System V ABI, AMD64 supplement, 3.2.1): in callers they are those of
// the innermost frame, as gdb has it.
func (d *Symbols) equip(e *dwarf.Env, st *x86.State) {
	e.Vector = loader.Vector(st)
	e.TLS = func(m *dwarf.Module, offset uint64) (uint64, bool) { return d.threadLocal(m, st.FSBase, offset) }
	e.Symbolize = d.Symbol
	e.Why = func(addr uint64) error {
		var b [1]byte
		_, err := d.g.ReadMemory(addr, b[:])
		return err
	}
}

// threadLocal returns the address of the byte at offset of a module's thread-local
// storage in the thread with this thread pointer. A program without a dynamic linker has its own right below the thread
// pointer (ELF Handling For Thread-Local Storage, variant II).
func (d *Symbols) threadLocal(m *dwarf.Module, fs, offset uint64) (uint64, bool) {
	if a, ok := d.g.names().ThreadLocal(m, fs, offset); ok {
		return a, true
	}
	for _, mod := range d.modules() {
		if d.open(mod) != m {
			continue
		}
		for i := range mod.Segments {
			if s := &mod.Segments[i]; s.Type == elf.PT_TLS && fs != 0 && mod.Path == d.g.program().path {
				align := max(s.Align, 1)
				return fs - (s.Memsz+align-1)/align*align + offset, true
			}
		}
	}
	return 0, false
}

// frames returns the frames at one place of the stack: inlined functions and the
// one they ended up in.
func (d *Symbols) frames(e *dwarf.Env, st *x86.State) []api.Frame {
	f := api.Frame{PC: e.Regs.V[dwarf.RIP], Handle: frameHandle{env: e, state: st}}
	if _, mod := d.at(e.PC); mod != nil {
		f.Module = mod.Path
	}
	if e.Module == nil {
		if e.Caller != nil {
			f.CFA = e.Caller.Regs.V[dwarf.RSP]
		}
		return []api.Frame{f}
	}
	f.CFA, _ = e.Module.CFA(&e.Regs, e.Mem, e.Bias, e.PC != e.Regs.V[dwarf.RIP])
	if e.Signal {
		f.Function = loader.SignalFrame
		return []api.Frame{f}
	}
	pc := e.PC - e.Bias
	f.File, f.Line, _ = e.Module.Line(pc)
	if name, _, ok := e.Module.Function(pc); ok {
		f.Function = name
	}
	var out []api.Frame
	for i, s := range e.Scopes() {
		f.Function = s.Function
		f.Handle = frameHandle{env: e, state: st, scope: i}
		f.Inlined = s.Inlined
		if !s.Inlined {
			break
		}
		out = append(out, f)
		f.File, f.Line = s.CallFile, s.CallLine
	}
	f.Inlined = false
	return append(out, f)
}

// Lines implements api.Symbols.
func (d *Symbols) Lines(file string, line int) (out []api.Place) {
	for _, mod := range d.modules() {
		m := d.open(mod)
		if m == nil || !m.HasLines() {
			continue
		}
		for _, p := range m.Places(file, line) {
			out = append(out, api.Place{Addr: p.Addr + mod.Bias, File: p.File, Line: p.Line})
		}
	}
	return out
}

// Functions implements api.Symbols.
func (d *Symbols) Functions(name string) (out []api.Place) {
	for _, mod := range d.modules() {
		m := d.open(mod)
		if m == nil {
			continue
		}
		for _, entry := range m.Functions(name) {
			out = append(out, placeIn(m, mod, m.Body(entry)))
		}
		for _, site := range m.InlineSites(name) {
			out = append(out, placeIn(m, mod, site))
		}
	}
	return out
}

// placeIn is the place of an address of a module's file.
func placeIn(m *dwarf.Module, mod *image.Module, pc uint64) api.Place {
	p := api.Place{Addr: pc + mod.Bias}
	p.File, p.Line, _ = m.Line(pc)
	return p
}

// Line implements api.Symbols.
func (d *Symbols) Line(pc uint64) (api.Line, bool) {
	m, mod := d.at(pc)
	if m == nil {
		return api.Line{}, false
	}
	s, ok := m.Stretch(pc - mod.Bias)
	return api.Line{File: s.File, Line: s.Line, Start: s.Start + mod.Bias, End: s.End + mod.Bias, IsStart: s.IsStart}, ok
}

// Extent implements api.Symbols.
func (d *Symbols) Extent(pc uint64) (low, high uint64, ok bool) {
	m, mod := d.at(pc)
	if m == nil {
		return 0, 0, false
	}
	low, high, ok = m.Extent(pc - mod.Bias)
	return low + mod.Bias, high + mod.Bias, ok
}

// Modules implements api.Symbols.
func (d *Symbols) Modules() (list []api.Module) {
	for _, mod := range d.modules() {
		m := api.Module{Path: mod.Path, Base: mod.Base, End: mod.End, BuildID: mod.BuildID}
		if file, ok := d.g.session.symbols.Find(mod, Memory{d.g.mem()}); ok {
			m.SymbolFile = file
		} else if file, ok := d.g.session.symbols.SystemFile(mod); ok {
			m.SymbolFile = file
		}
		if f := d.open(mod); f != nil {
			m.HasLines, m.HasNames = f.HasLines(), f.HasNames()
		}
		list = append(list, m)
	}
	return list
}

// Sources implements api.Symbols.
func (d *Symbols) Sources(most int) (list []string) {
	for _, mod := range d.modules() {
		if m := d.open(mod); m != nil && len(list) < most {
			list = append(list, m.Sources(most-len(list))...)
		}
	}
	return list
}

// Body implements api.Symbols.
func (d *Symbols) Body(entry uint64) uint64 {
	m, mod := d.at(entry)
	if m == nil {
		return entry
	}
	return m.Body(entry-mod.Bias) + mod.Bias
}

// Symbol implements api.Symbols.
func (d *Symbols) Symbol(addr uint64) string { return d.g.names().Symbol(addr) }

// Disassemble implements api.Symbols.
func (d *Symbols) Disassemble(b []byte, pc uint64) (string, int) {
	in, err := x86.Decode(b)
	if err != nil {
		return fmt.Sprintf("(bad) %#02x", b[0]), 1
	}
	if a, err := decode(b); err == nil && a.Len == in.Len {
		return x86asm.GNUSyntax(a, pc, func(addr uint64) (string, uint64) {
			m, mod := d.at(addr)
			if m == nil {
				return "", 0
			}
			name, off, _ := m.Within(addr - mod.Bias)
			return name, addr - off
		}), in.Len
	}
	return in.Mnemonic, in.Len
}

// Scopes implements api.Symbols.
func (d *Symbols) Scopes(f *api.Frame) []api.Scope {
	h, ok := f.Handle.(frameHandle)
	if !ok {
		return nil
	}
	var out []api.Scope
	if ss := h.env.Scopes(); h.scope < len(ss) {
		s := &ss[h.scope]
		out = append(out, api.Scope{Name: "Locals", Hint: "locals", Variables: func() []api.Value {
			return d.values(append(s.Arguments(), s.Locals()...))
		}})
	}
	if h.env.Module != nil && h.env.Module.HasLines() {
		out = append(out, api.Scope{Name: "Globals", Expensive: true, Variables: func() []api.Value { return d.values(h.env.Globals()) }})
	}
	return append(out, api.Scope{Name: "Registers", Hint: "registers", Variables: func() []api.Value { return d.registers(h.env, h.state) }})
}

func (d *Symbols) values(list []dwarf.Value) []api.Value {
	out := make([]api.Value, len(list))
	for i := range list {
		out[i] = d.Value(list[i], list[i].Name)
	}
	return out
}

// Value describes a variable to the server; expr is the expression that has it.
func (d *Symbols) Value(v dwarf.Value, expr string) api.Value {
	out := api.Value{Name: v.Name, Expr: expr, Text: v.String(), Type: v.Type().String(), Handle: v}
	if v.HasIntegers() {
		out.Format = v.Format
	}
	out.Again = func() api.Value { return d.Value(v, expr) }
	if addr, ok := v.Address(); ok {
		if n := v.Size(); n > 0 {
			out.Addr, out.Size = addr, n
		}
	}
	out.Named, out.Indexed = v.NumChildren()
	isPointer := v.IsPointer()
	if n, err := v.Uint(); err == nil {
		out.Bits, out.IsNumber = n, true
		if isPointer {
			out.Pointer = n
		}
	} else if v.Err() == nil {
		out.Bits, out.IsNumber = v.Truth()
	}
	if out.Named+out.Indexed > 0 {
		out.Children = func(start, count int) []api.Value {
			kids := v.Children(start, count)
			list := make([]api.Value, len(kids))
			for i, k := range kids {
				list[i] = d.Value(k, childExpr(expr, k, isPointer, out.Named == 1 && isPointer))
				if k.Name == "" {
					list[i].Name = "(anonymous)"
				}
			}
			return list
		}
	}
	return out
}

// childExpr returns the expression that has a child, "" where there is none.
func childExpr(expr string, k dwarf.Value, isPointer, single bool) string {
	switch {
	case expr == "":
		return ""
	case k.Name == "" || k.IsBase(): // its members are found as the object's own
		return expr
	case k.Name == dwarf.ContainedValue:
		return "*(" + expr + ")"
	case k.IsKeyed():
		return ""
	case k.Name[0] == '[':
		return "(" + expr + ")" + k.Name
	case single && k.Name[0] == '*':
		return "*(" + expr + ")"
	case isPointer:
		return "(" + expr + ")->" + k.Name
	}
	return "(" + expr + ")." + k.Name
}

// registerOrder is how registers are listed.
var registerOrder = []struct {
	name string
	num  int
}{
	{"rax", dwarf.RAX},
	{"rbx", dwarf.RBX},
	{"rcx", dwarf.RCX},
	{"rdx", dwarf.RDX},
	{"rsi", dwarf.RSI},
	{"rdi", dwarf.RDI},
	{"rbp", dwarf.RBP},
	{"rsp", dwarf.RSP},
	{"r8", dwarf.R8},
	{"r9", dwarf.R9},
	{"r10", dwarf.R10},
	{"r11", dwarf.R11},
	{"r12", dwarf.R12},
	{"r13", dwarf.R13},
	{"r14", dwarf.R14},
	{"r15", dwarf.R15},
	{"rip", dwarf.RIP},
}

// registers lists the frame's registers, and those that all frames share.
func (d *Symbols) registers(e *dwarf.Env, st *x86.State) (out []api.Value) {
	for _, r := range registerOrder {
		v := api.Value{Name: r.name, Expr: "$" + r.name, Text: "<not saved>"}
		if e.Regs.Known>>r.num&1 != 0 {
			v.Text, v.Bits, v.IsNumber = fmt.Sprintf("%#x", e.Regs.V[r.num]), e.Regs.V[r.num], true
			if s := d.Symbol(v.Bits); s != "" {
				v.Text += " <" + s + ">"
			}
		}
		out = append(out, v)
	}
	shared := func(name string, v uint64) { out = append(out, api.Value{Name: name, Text: fmt.Sprintf("%#x", v)}) }
	shared("eflags", st.Flags()&0xffffffff)
	shared("fs_base", st.FSBase)
	shared("gs_base", st.GSBase)
	shared("mxcsr", uint64(st.MXCSR))
	vectors := func(int, int) (list []api.Value) {
		for i := range st.V[:16] {
			v := st.V[i]
			list = append(list, api.Value{Name: fmt.Sprintf("ymm%d", i), Text: fmt.Sprintf("0x%016x_%016x_%016x_%016x", v[3], v[2], v[1], v[0])})
		}
		return list
	}
	return append(out, api.Value{Name: "vector", Text: "{...}", Named: 16, Children: vectors})
}

// errNoFrame says that an expression has nothing to be evaluated in.
var errNoFrame = errors.New("nothing is known of this frame")

// Eval implements api.Symbols.
func (d *Symbols) Eval(f *api.Frame, expr string) (api.Value, error) {
	return d.EvalCalling(f, expr, nil)
}

// EvalCalling implements api.Symbols.
func (d *Symbols) EvalCalling(f *api.Frame, expr string, run api.Runner) (api.Value, error) {
	h, ok := f.Handle.(frameHandle)
	if !ok {
		return api.Value{}, errNoFrame
	}
	var v dwarf.Value
	err := d.inEach(h, run, func(e *dwarf.Env, scope int) (err error) {
		v, err = e.Eval(expr, scope)
		return err
	})
	if err == nil {
		return d.Value(v, expr), nil
	}
	if addr, mod := d.elsewhere(expr); mod != "" {
		return api.Value{Name: expr, Expr: expr, Text: fmt.Sprintf("{code or data of %s} %#x <%s>", path.Base(mod), addr, expr), Bits: addr, IsNumber: true, Pointer: addr}, nil
	}
	return api.Value{}, err
}

// inEach calls f for a frame, and if that fails, for what is global in the other modules,
// until it succeeds or has called a function of the program. The error is the frame's.
func (d *Symbols) inEach(h frameHandle, run api.Runner, f func(e *dwarf.Env, scope int) error) error {
	made := &countedRunner{Runner: run}
	if run != nil {
		run = made
	}
	err := f(d.calling(h.env, run), h.scope)
	if err == nil {
		return nil
	}
	for _, mod := range d.modules() {
		if m := d.open(mod); made.calls == 0 && m != nil && m != h.env.Module && m.HasLines() {
			e := *h.env
			e.Module, e.Bias, e.PC, e.Caller = m, mod.Bias, mod.Bias, nil
			if f(d.calling(&e, run), -1) == nil {
				return nil
			}
		}
	}
	return err
}

// elsewhere finds a symbol of another module than the frame's.
func (d *Symbols) elsewhere(name string) (addr uint64, module string) {
	addr, mod := d.g.names().Lookup(name)
	if mod == nil {
		return 0, ""
	}
	return addr, mod.Path
}
