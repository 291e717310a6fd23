package debug

import (
	"encoding/binary"
	"sync"

	"vplay/checkpoint"
	"vplay/dwarf"
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
func (d *Symbols) Condition(pc uint64, expr string) func(api.Machine) bool {
	always := func(api.Machine) bool { return true }
	m, mod := d.at(pc)
	if m == nil {
		return always
	}
	frame := dwarf.Frame{PC: pc, Module: m, Bias: mod.Bias}
	x, err := (&dwarf.Env{Frame: frame}).Prepare(expr, 0)
	if err != nil {
		return always
	}
	if quick := x.Quick(&dwarf.Env{Frame: frame}); quick != nil {
		return func(a api.Machine) bool {
			q := quickMachines.Get().(*quickMachine)
			q.Machine = a
			n, ok := quick(q)
			q.Machine = nil
			quickMachines.Put(q)
			return n != 0 || !ok
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
	}
}

// quickMachine is the machine of a condition for package dwarf's quick expressions, of which
// millions are evaluated: nothing is allocated for one.
type quickMachine struct {
	api.Machine
	word [8]byte
}

var quickMachines = sync.Pool{New: func() any { return &quickMachine{} }}

// Register implements dwarf.Quick.
func (q *quickMachine) Register(number int) uint64 {
	if number == dwarf.RIP {
		return q.RIP()
	}
	return q.GPR(gprIndex[number&15])
}

// Load implements dwarf.Quick.
func (q *quickMachine) Load(addr uint64, n int) (uint64, bool) {
	clear(q.word[:])
	got, _ := q.ReadMemory(addr, q.word[:n])
	return binary.LittleEndian.Uint64(q.word[:]), got == n
}

// gprIndex are the indices of the general registers by their DWARF numbers.
var gprIndex = func() (index [16]int) {
	for n := range index {
		index[n], _ = loader.GPR(n)
	}
	return index
}()
