package script

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"vplay/checkpoint/abi"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// Functions of the recorded program that a script calls: in an expression, value("length(list)"), or by call. They
// run in a copy of the process (replay.Diversion), which is thrown away behind the expression: the
// replay does not notice.

// diverted is the copy in which the functions of one expression run; it is made for the first.
type diverted struct {
	m *moment
	d *replay.Diversion // nil: none was called
}

// maxCall is how long a function may run.
const maxCall = 10 * time.Second

// ReadMemory implements dwarf.Memory: what functions have changed is seen by the rest of the expression.
func (c *diverted) ReadMemory(a uint64, b []byte) int {
	if c.d == nil {
		return c.m.v.ReadMemory(a, b)
	}
	n, _ := c.d.Mem.Peek(a, b)
	return n
}

// copy returns the copy.
func (c *diverted) copy() *replay.Diversion {
	if c.d == nil {
		c.d = c.m.v.Machine().Divert()
		c.d.Output = func(b []byte) { c.m.r.print(strings.TrimSuffix(string(b), "\n")) }
	}
	return c.d
}

// close gives the copy back.
func (c *diverted) close() {
	if c.d != nil {
		c.d.Close()
		c.d = nil
	}
}

// Place implements dwarf.Runner.
func (c *diverted) Place(b []byte) (uint64, error) {
	d := c.copy()
	a, ok := d.Allocate(uint64(len(b)), mem.ProtRead|mem.ProtWrite)
	if !ok {
		return 0, errors.New("there is no room for it in the copy of the process")
	}
	return a, d.Write(a, b)
}

// Call implements dwarf.Runner: the function returns to the instruction that the program is at, with the
// stack as it was (System V ABI, AMD64 supplement, 3.2.2).
func (c *diverted) Call(entry uint64, ints, vectors []uint64) (rax, xmm0 uint64, err error) {
	d := c.copy()
	before := d.CPU.State
	sp := (before.R[x86.RSP]-redZone)&^15 - 8
	var ret [8]byte
	binary.LittleEndian.PutUint64(ret[:], before.RIP)
	if err := d.Write(sp, ret[:]); err != nil {
		return 0, 0, fmt.Errorf("there is no room on the stack: %w", err)
	}
	for i, n := range ints[:min(len(ints), len(observe.ArgumentRegisters))] {
		d.CPU.R[observe.ArgumentRegisters[i]] = n
	}
	for i, n := range vectors[:min(len(vectors), 8)] {
		d.CPU.V[i] = x86.Vec{n}
	}
	d.CPU.R[x86.RAX], d.CPU.R[x86.RSP], d.CPU.RIP = uint64(len(vectors)), sp, entry
	d.CPU.SetBreakpoints([]uint64{before.RIP})
	ctx, cancel := context.WithTimeout(c.m.r.ctx, maxCall)
	defer cancel()
	for {
		stop, err := d.Run(ctx, d.CPU.RIP == before.RIP)
		switch {
		case err != nil:
			return 0, 0, err
		case c.m.r.ctx.Err() != nil:
			return 0, 0, c.m.r.ctx.Err()
		}
		switch stop.Reason {
		case replay.StopBreak:
			if d.CPU.R[x86.RSP] != sp+8 {
				continue // the function comes there itself
			}
			rax, xmm0 = d.CPU.R[x86.RAX], d.CPU.V[0][0]
			d.CPU.State = before
			return rax, xmm0, nil
		case replay.StopSignal:
			return 0, 0, fmt.Errorf("the function got %s", abi.Signal(stop.Signo))
		case replay.StopEnd:
			return 0, 0, fmt.Errorf("the function ended the program with code %d", stop.Code)
		default:
			return 0, 0, fmt.Errorf("the function did not return within %s", maxCall)
		}
	}
}

// callFunction is call(function, arguments...): a name or an address, with integers; it gives the result.
func (m *moment) callFunction(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 || len(args) > 1+len(observe.ArgumentRegisters) || len(kwargs) > 0 {
		return nil, fmt.Errorf("call: a function, and up to %d numbers", len(observe.ArgumentRegisters))
	}
	var ints []uint64
	for _, a := range args[1:] {
		n, ok := a.(starlark.Int)
		if !ok {
			return nil, fmt.Errorf("call: an argument is a number, not %s", a.Type())
		}
		n = n.And(starlark.MakeUint64(^uint64(0)))
		v, _ := n.Uint64()
		ints = append(ints, v)
	}
	names, err := nameList(args[0])
	if err != nil || len(names) != 1 {
		return nil, errors.New("call: a function is a name or an address")
	}
	entry, ok := number(names[0])
	if !ok {
		if entry, ok = m.entryOf(names[0]); !ok {
			return nil, fmt.Errorf("call: no function, and no symbol, is called %s", names[0])
		}
	}
	c := &diverted{m: m}
	defer c.close()
	rax, _, err := c.Call(entry, ints, nil)
	if err != nil {
		return nil, fmt.Errorf("call: %s: %w", names[0], err)
	}
	return starlark.MakeUint64(rax), nil
}

// entryOf returns where the function of a name begins, in the first module that has it.
func (m *moment) entryOf(name string) (uint64, bool) {
	res := m.names()
	p := &place{names: []string{name}, kind: "call"}
	for _, mod := range res.Modules() {
		if d := res.File(mod); d != nil {
			chosen, _ := mod.Implementations(image.Memory(&m.r.view.memory))
			if spots := p.in(mod, d, chosen); len(spots) > 0 {
				return spots[0].addr, true
			}
		}
	}
	return 0, false
}

// symbol is dwarf.Env.Extern: a symbol of any module. It asks nothing that locks a module, for the frame's is locked.
func (m *moment) symbol(name string) (uint64, bool) {
	addr, mod := m.names().Lookup(name)
	return addr, mod != nil
}
