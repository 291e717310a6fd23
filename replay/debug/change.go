package debug

import (
	"encoding/binary"
	"errors"
	"fmt"

	"vplay/dwarf"
	"vplay/loader"
	"vplay/replay/debug/api"
	"vplay/replay/x86"
)

// Calls in expressions, and new values of variables: which function is meant, and what has to
// be stored where. It is done in a copy of the process, by whoever asks (divert.go).

// calling returns a frame in which expressions call functions; with a nil run it is the
// frame itself.
func (d *Symbols) calling(e *dwarf.Env, run api.Runner) *dwarf.Env {
	if run == nil {
		return e
	}
	out := *e
	out.Run = run
	out.Extern = func(name string) (uint64, bool) {
		addr, module := d.elsewhere(name)
		return addr, module != ""
	}
	return &out
}

// countedRunner counts the calls: what has called is not tried once more.
type countedRunner struct {
	api.Runner
	calls int
}

func (r *countedRunner) Call(entry uint64, ints, vectors []uint64) (rax, xmm0 uint64, err error) {
	r.calls++
	return r.Runner.Call(entry, ints, vectors)
}

// errOfCaller says that a variable is where only the frames inside of its own know.
var errOfCaller = errors.New("it is in a register that belongs to the functions called since: it is set only in the innermost frame")

// Assign implements api.Symbols.
func (d *Symbols) Assign(f *api.Frame, to *api.Value, expr string, run api.Runner) (api.Patch, error) {
	h, ok := f.Handle.(frameHandle)
	if !ok {
		return api.Patch{}, errNoFrame
	}
	regs := &h.env.Regs
	isInnermost := regs.V[dwarf.RIP] == h.state.RIP && regs.V[dwarf.RSP] == h.state.R[x86.RSP]
	if n, ok := registerIndex(to.Expr); ok {
		v, err := d.EvalCalling(f, expr, run)
		switch {
		case err != nil:
			return api.Patch{}, err
		case !v.IsNumber:
			return api.Patch{}, fmt.Errorf("%s is no number", expr)
		case !isInnermost:
			return api.Patch{}, errOfCaller
		}
		return api.Patch{Register: n, Bytes: binary.LittleEndian.AppendUint64(nil, v.Bits)}, nil
	}
	v, ok := to.Handle.(dwarf.Value)
	if !ok {
		return api.Patch{}, errors.New("it cannot be set")
	}
	var p dwarf.Patch
	err := d.inEach(h, run, func(e *dwarf.Env, scope int) (err error) {
		p, err = e.Assign(v, expr, scope)
		return err
	})
	switch {
	case err != nil:
		return api.Patch{}, err
	case !p.InRegister:
		return api.Patch{Register: api.InMemory, Addr: p.Addr, Bytes: p.Bytes}, nil
	case !isInnermost:
		return api.Patch{}, errOfCaller
	}
	n, ok := patchRegister(p.Register)
	if !ok {
		return api.Patch{}, errors.New("it is in a register that is not set")
	}
	return api.Patch{Register: n, Addr: p.Addr, Bytes: p.Bytes}, nil
}

// registerIndex returns the register that an expression names, as a Patch has it.
func registerIndex(expr string) (n int, ok bool) {
	for _, r := range registerOrder {
		if expr == "$"+r.name {
			return patchRegister(r.num)
		}
	}
	return 0, false
}

// patchRegister returns a register by its DWARF number as a Patch has it.
func patchRegister(number int) (n int, ok bool) {
	if number == dwarf.RIP {
		return api.PatchRIP, true
	}
	if number > dwarf.RIP && number <= dwarf.RIP+16 { // xmm0 to xmm15 (System V ABI, AMD64, figure 3.36)
		return api.PatchYMM0 + number - dwarf.RIP - 1, true
	}
	return loader.GPR(number)
}
