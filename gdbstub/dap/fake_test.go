package dap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"vplay/replay/debug/api"
)

// fake is a program of 100 instructions of 4 bytes, two on each line; every 20th
// calls a function of two instructions. It stands at its end, a crash. Its only
// variable, n, counts the lines; at is where the memory of it is.
type fake struct {
	pos    int
	breaks map[placedKey]bool
	tests  map[placedKey]func(api.Machine) bool
	hang   bool // a continue goes on until it is interrupted
	panics bool
}

const (
	fakeCode = 0x1000
	fakeData = 0x8000
	fakeTID  = 7
	fakeEnd  = 99
)

func newFake() *fake {
	return &fake{pos: fakeEnd, breaks: map[placedKey]bool{}, tests: map[placedKey]func(api.Machine) bool{}}
}

func (f *fake) rip() uint64 { return fakeCode + 4*uint64(f.pos) }

func (f *fake) check() {
	if f.panics {
		panic("told to")
	}
}

func (f *fake) Process() api.Process { return api.Process{PID: fakeTID, ExecFile: "/bin/fake"} }

func (f *fake) Threads() []api.Thread {
	return []api.Thread{{PID: fakeTID, TID: fakeTID, Name: "fake"}}
}

func (f *fake) Stop() api.Stop {
	return api.Stop{Kind: api.StopSignal, Signo: 11, TID: fakeTID}
}

func (f *fake) Registers(int) (*api.Registers, error) {
	r := &api.Registers{RIP: f.rip()}
	r.GPR[4] = 0x7000
	return r, nil
}

func (f *fake) ReadMemory(addr uint64, b []byte) (int, error) {
	f.check()
	for i := range b {
		if addr+uint64(i) < fakeCode || addr+uint64(i) > fakeData+7 {
			return i, errors.New("nothing is mapped there")
		}
		b[i] = byte(f.pos / 2)
	}
	return len(b), nil
}

func (f *fake) Resume(ctx context.Context, r api.Resume) (api.Stop, error) {
	f.check()
	if f.hang && r.Kind == api.Continue {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		return api.Stop{Kind: api.StopInterrupted, TID: fakeTID}, nil
	}
	step, edge, end := 1, api.StopSignal, fakeEnd
	if r.Dir == api.Backward {
		step, edge, end = -1, api.StopReplayBegin, 0
	}
	for {
		if f.pos == end {
			return api.Stop{Kind: edge, Signo: 11, TID: fakeTID}, nil
		}
		f.pos += step
		soft := placedKey{api.BreakSoftware, f.rip(), 1}
		hit := f.breaks[soft] && (f.tests[soft] == nil || f.tests[soft](nil)) || f.breaks[placedKey{api.BreakHardware, f.rip(), 1}]
		switch {
		case r.Kind == api.Step, r.Kind == api.RangeStep && (hit || f.rip() < r.Start || f.rip() >= r.End):
			return api.Stop{Kind: api.StopStep, TID: fakeTID}, nil
		case hit:
			return api.Stop{Kind: api.StopBreakpoint, TID: fakeTID}, nil
		case f.pos%2 == 0 && f.breaks[placedKey{api.WatchWrite, fakeData, 8}]:
			return api.Stop{Kind: api.StopWatchWrite, Addr: fakeData, TID: fakeTID}, nil
		}
	}
}

func (f *fake) SetBreakpoint(b api.Breakpoint) error {
	f.breaks[placedKey{b.Kind, b.Addr, b.Len}] = true
	f.tests[placedKey{b.Kind, b.Addr, b.Len}] = b.Test
	return nil
}

func (f *fake) ClearBreakpoint(b api.Breakpoint) error {
	delete(f.breaks, placedKey{b.Kind, b.Addr, b.Len})
	return nil
}

func (f *fake) Libraries() []api.Library          { return nil }
func (f *fake) Siginfo(int) ([]byte, error)       { return make([]byte, 128), nil }
func (f *fake) OpenFile(string) (api.File, error) { return nil, os.ErrNotExist }
func (f *fake) Readlink(string) (string, error)   { return "", os.ErrNotExist }
func (f *fake) Rewind() error                     { f.pos = 0; return nil }
func (f *fake) Detached()                         {}
func (f *fake) Monitor(_ context.Context, line string, out io.Writer) error {
	f.check()
	if line == "seek begin" {
		f.pos = 0
	}
	fmt.Fprintln(out, line)
	return nil
}

// fakeSymbols knows the program: line n is instructions 2n and 2n+1.
type fakeSymbols struct{ f *fake }

func (s fakeSymbols) Stack(int, int) []api.Frame {
	return []api.Frame{
		{Function: "line", File: "/src/fake.c", Line: s.f.pos / 2, PC: s.f.rip(), CFA: 0x7008},
		{Function: "inlined into", File: "/src/fake.c", Line: 1, PC: 0x1000, CFA: 0x7100},
	}
}

func (s fakeSymbols) Lines(_ string, line int) []api.Place {
	if line < 0 || line > 49 {
		return nil
	}
	return []api.Place{{Addr: fakeCode + 8*uint64(line), File: "/src/fake.c", Line: line}}
}

func (s fakeSymbols) Functions(name string) []api.Place {
	if name != "line" {
		return nil
	}
	return []api.Place{{Addr: fakeCode + 80, File: "/src/fake.c", Line: 10}}
}

func (s fakeSymbols) Line(pc uint64) (api.Line, bool) {
	if pc < fakeCode || pc > fakeCode+4*fakeEnd {
		return api.Line{}, false
	}
	start := pc &^ 7
	return api.Line{File: "/src/fake.c", Line: int(pc-fakeCode) / 8, Start: start, End: start + 8, IsStart: pc == start}, true
}

func (s fakeSymbols) Extent(pc uint64) (uint64, uint64, bool) {
	return fakeCode, fakeCode + 400, pc >= fakeCode && pc < fakeCode+400
}

func (s fakeSymbols) Body(entry uint64) uint64 { return entry + 4 }

func (s fakeSymbols) Scopes(*api.Frame) []api.Scope {
	return []api.Scope{{Name: "Locals", Variables: func() []api.Value { v, _ := s.Eval(nil, "n"); return []api.Value{v, v} }}}
}

func (s fakeSymbols) Eval(_ *api.Frame, expr string) (api.Value, error) {
	n := s.f.pos / 2
	switch expr {
	case "n":
		return api.Value{
			Name: "n", Expr: "n", Text: strconv.Itoa(n), Type: "int", Addr: fakeData, Size: 8, Bits: uint64(n), IsNumber: true, Named: 1,
			Children: func(int, int) []api.Value { return []api.Value{{Name: "child", Text: "{}"}} },
		}, nil
	case "n == 5":
		return api.Value{Text: "?", Bits: map[bool]uint64{true: 1}[n == 5], IsNumber: true}, nil
	}
	return api.Value{}, fmt.Errorf("there is no {%s}", expr)
}

func (s fakeSymbols) EvalCalling(f *api.Frame, expr string, run api.Runner) (api.Value, error) {
	if expr == "line(3)" {
		rax, _, err := run.Call(fakeCode, []uint64{3}, nil)
		return api.Value{Text: strconv.FormatUint(rax, 10)}, err
	}
	return s.Eval(f, expr)
}

func (s fakeSymbols) Assign(_ *api.Frame, _ *api.Value, expr string, _ api.Runner) (api.Patch, error) {
	n, err := strconv.ParseUint(expr, 10, 8)
	return api.Patch{Register: api.InMemory, Addr: fakeData, Bytes: []byte{byte(n)}}, err
}

func (s fakeSymbols) Modules() []api.Module { return []api.Module{{Path: "/bin/fake", HasLines: true}} }
func (s fakeSymbols) Sources(int) []string  { return []string{"/src/fake.c"} }

func (s fakeSymbols) Condition(_ uint64, expr string) (func(api.Machine) bool, []byte) {
	return func(api.Machine) bool {
		v, err := s.Eval(nil, expr)
		return err != nil || v.Bits != 0
	}, nil
}

func (s fakeSymbols) Disassemble([]byte, uint64) (string, int) { return "nop", 4 }
func (s fakeSymbols) Symbol(uint64) string                     { return "line" }
