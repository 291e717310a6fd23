package debug

import (
	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/dwarf/agentexpr"
	"vplay/loader"
	"vplay/replay/debug/api"
)

// Conditions of breakpoints that are expressions of the program's language: tested for the
// machine that stands there, which in a search is not the cursor's.

// machineMemory is the memory of the machine that a condition is tested for.
type machineMemory struct{ api.Machine }

func (m machineMemory) ReadMemory(addr uint64, b []byte) int {
	n, _ := m.Machine.ReadMemory(addr, b)
	return n
}

// generalRegisters returns the registers that expressions may need.
func generalRegisters(m api.Machine) dwarf.Regs {
	r := checkpoint.Regs{RIP: m.RIP()}
	for i := range r.R {
		r.R[i] = m.GPR(i)
	}
	return loader.DwarfRegs(&r)
}

// Condition implements api.Symbols.
func (d *Symbols) Condition(pc uint64, expr string) (test func(api.Machine) bool, code []byte) {
	always := func(api.Machine) bool { return true }
	m, mod := d.at(pc)
	if m == nil {
		return always, nil
	}
	frame := dwarf.Frame{PC: pc, Module: m, Bias: mod.Bias}
	x, err := (&dwarf.Env{Frame: frame}).Prepare(expr, 0)
	if err != nil {
		return always, nil
	}
	if code = x.Quick(&dwarf.Env{Frame: frame}); code != nil {
		if p, err := agentexpr.Parse(code); err == nil {
			return func(a api.Machine) bool { return p.Holds(a, nil) }, code
		}
	}
	return func(a api.Machine) bool {
		e := &dwarf.Env{Frame: frame, Mem: machineMemory{a}}
		e.Regs = generalRegisters(a)
		v, err := x.Eval(e)
		if err != nil {
			return true
		}
		if n, err := v.Uint(); err == nil {
			return n != 0
		}
		n, ok := v.Truth()
		return !ok || n != 0
	}, nil
}
