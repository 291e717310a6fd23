package gdbstub

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"

	"vplay/replay/debug/api"
)

// fakeTarget plays a recorded trace: the registers before each instruction and
// the bytes each one changed. The trace is that of a small program, "executed"
// once by the closures of fakeProgram, which counts in memory and then crashes:
//
//	_start: mov  $5, %ecx
//	loop:   call bump
//	        dec  %ecx
//	        jne  loop
//	        xor  %eax, %eax
//	        mov  %eax, (%rax)          # SIGSEGV
//	bump:   push %rbp
//	        mov  %rsp, %rbp
//	        incl counter
//	        pop  %rbp
//	        ret
type fakeTarget struct {
	mem    map[uint64]byte // mapped bytes at the present position
	steps  []fakeStep
	pos    int // steps[:pos] have been executed
	regs   []api.Registers
	breaks []api.Breakpoint
	stop   api.Stop

	// What tests turn on.
	hang      bool // Continue goes on until it is interrupted
	panics    bool // every method that can, panics
	resumeErr error
	attached  bool
	threads   []api.Thread
	libraries []api.Library
	noSiginfo bool
	output    string // of "monitor print"

	detached    atomic.Int64
	interrupted atomic.Int64
	resumes     []api.Resume
	monitored   []string
	inCall      atomic.Int32 // the server must not overlap calls
	overlap     atomic.Bool
}

// fakeStep is one instruction's effects.
type fakeStep struct {
	writes []fakeAccess
	reads  []fakeAccess
}

type fakeAccess struct {
	addr     uint64
	old, new []byte
}

const (
	fakeText    = 0x401000
	fakeLoop    = 0x401005
	fakeCrash   = 0x401010
	fakeBump    = 0x401020
	fakeIncl    = 0x401024
	fakeCounter = 0x402000
	fakeStack   = 0x7fff0000
	fakePID     = 0x1234
	fakeExec    = "/replay/prog"
)

var fakeCode = []byte{
	0xb9, 5, 0, 0, 0, // mov $5, %ecx
	0xe8, 0x16, 0, 0, 0, // call bump
	0xff, 0xc9, // dec %ecx
	0x75, 0xf7, // jne loop
	0x31, 0xc0, // xor %eax, %eax
	0x89, 0x00, // mov %eax, (%rax)
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	0x55,             // push %rbp
	0x48, 0x89, 0xe5, // mov %rsp, %rbp
	0xff, 0x04, 0x25, 0x00, 0x20, 0x40, 0x00, // incl counter
	0x5d, // pop %rbp
	0xc3, // ret
}

// newFake records the trace and stands at its end, the crash.
func newFake() *fakeTarget {
	f := &fakeTarget{mem: map[uint64]byte{}, threads: []api.Thread{{PID: fakePID, TID: fakePID, Name: "prog"}}}
	for i, b := range fakeCode {
		f.mem[fakeText+uint64(i)] = b
	}
	for i := range uint64(4096) {
		f.mem[fakeCounter+i] = 0
		f.mem[fakeStack-4096+i] = 0
	}
	r := api.Registers{RIP: fakeText, EFLAGS: 0x202, OrigRAX: ^uint64(0), FCW: 0x37f, FTW: 0xffff, MXCSR: 0x1f80}
	r.Seg = [6]uint16{0, 0x33, 0x2b, 0, 0, 0}
	r.GPR[gprRSP] = fakeStack - 64
	r.GPR[gprRBP] = 0x1111
	r.FSBase, r.GSBase = 0x7000, 0x8000
	r.YMM[1] = [4]uint64{1, 2, 3, 4}
	f.regs = []api.Registers{r}
	for r.RIP != fakeCrash {
		step := f.execute(&r)
		f.steps = append(f.steps, step)
		f.regs = append(f.regs, r)
		f.pos++
	}
	f.stop = api.Stop{Kind: api.StopSignal, Signo: 11, TID: fakePID}
	return f
}

// execute carries out the instruction at r.RIP and applies its writes.
func (f *fakeTarget) execute(r *api.Registers) (s fakeStep) {
	const rcx = 1
	store := func(addr uint64, n int, v uint64) {
		a := fakeAccess{addr: addr}
		a.new = binary.LittleEndian.AppendUint64(nil, v)[:n]
		a.old = f.bytes(addr, n)
		s.writes = append(s.writes, a)
		f.put(addr, a.new)
	}
	load := func(addr uint64, n int) uint64 {
		s.reads = append(s.reads, fakeAccess{addr: addr, old: make([]byte, n), new: make([]byte, n)})
		var b [8]byte
		copy(b[:], f.bytes(addr, n))
		return binary.LittleEndian.Uint64(b[:])
	}
	switch r.RIP {
	case fakeText:
		r.GPR[rcx], r.RIP = 5, fakeLoop
	case fakeLoop:
		r.GPR[gprRSP] -= 8
		store(r.GPR[gprRSP], 8, fakeLoop+5)
		r.RIP = fakeBump
	case 0x40100a:
		r.GPR[rcx]--
		r.EFLAGS = 0x202
		if r.GPR[rcx] == 0 {
			r.EFLAGS = 0x246
		}
		r.RIP = 0x40100c
	case 0x40100c:
		r.RIP = fakeLoop
		if r.EFLAGS&0x40 != 0 {
			r.RIP = 0x40100e
		}
	case 0x40100e:
		r.GPR[0], r.RIP = 0, fakeCrash
	case fakeBump:
		r.GPR[gprRSP] -= 8
		store(r.GPR[gprRSP], 8, r.GPR[gprRBP])
		r.RIP++
	case fakeBump + 1:
		r.GPR[gprRBP] = r.GPR[gprRSP]
		r.RIP += 3
	case fakeIncl:
		store(fakeCounter, 4, load(fakeCounter, 4)+1)
		r.RIP += 7
	case fakeIncl + 7:
		r.GPR[gprRBP] = load(r.GPR[gprRSP], 8)
		r.GPR[gprRSP] += 8
		r.RIP++
	case fakeIncl + 8:
		r.RIP = load(r.GPR[gprRSP], 8)
		r.GPR[gprRSP] += 8
	}
	return s
}

func (f *fakeTarget) bytes(addr uint64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = f.mem[addr+uint64(i)]
	}
	return b
}

func (f *fakeTarget) put(addr uint64, b []byte) {
	for i, c := range b {
		f.mem[addr+uint64(i)] = c
	}
}

// enter notes overlapping calls; use it as defer f.enter()().
func (f *fakeTarget) enter() func() {
	if f.inCall.Add(1) != 1 {
		f.overlap.Store(true)
	}
	return func() { f.inCall.Add(-1) }
}

func (f *fakeTarget) mayPanic() {
	if f.panics {
		panic("the target is broken")
	}
}

func (f *fakeTarget) Process() api.Process {
	return api.Process{
		PID: f.pid(), ParentID: 1, ExecFile: fakeExec, Attached: f.attached, Auxv: fakeAuxv(),
		Features: api.FeatureX87 | api.FeatureSSE | api.FeatureAVX | api.FeatureOrigRAX | api.FeatureFSGS,
	}
}

// fakeAuxv holds AT_PHDR, AT_PHENT, AT_PHNUM, AT_ENTRY, AT_NULL.
func fakeAuxv() []byte {
	var b []byte
	for _, v := range []uint64{3, 0x400040, 4, 56, 5, 0, 9, fakeText, 0, 0} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func (f *fakeTarget) Threads() []api.Thread { return f.threads }

func (f *fakeTarget) Stop() api.Stop { return f.stop }

func (f *fakeTarget) Registers(tid int) (*api.Registers, error) {
	defer f.enter()()
	f.mayPanic()
	for _, t := range f.threads {
		if t.TID == tid {
			r := f.regs[f.pos]
			return &r, nil
		}
	}
	return nil, errors.New("no such thread")
}

func (f *fakeTarget) ReadMemory(addr uint64, b []byte) (int, error) {
	defer f.enter()()
	f.mayPanic()
	return f.read(addr, b)
}

func (f *fakeTarget) read(addr uint64, b []byte) (int, error) {
	for i := range b {
		c, ok := f.mem[addr+uint64(i)]
		if !ok {
			return i, fmt.Errorf("0x%x was not captured", addr+uint64(i))
		}
		b[i] = c
	}
	return len(b), nil
}

// fakeMachine lets conditions see a fakeTarget.
type fakeMachine struct{ f *fakeTarget }

func (m fakeMachine) GPR(n int) uint64          { return m.f.regs[m.f.pos].GPR[n] }
func (m fakeMachine) RIP() uint64               { return m.f.regs[m.f.pos].RIP }
func (m fakeMachine) Registers() *api.Registers { return &m.f.regs[m.f.pos] }

func (m fakeMachine) ReadMemory(addr uint64, b []byte) (int, error) { return m.f.read(addr, b) }

func (f *fakeTarget) Resume(ctx context.Context, r api.Resume) (api.Stop, error) {
	defer f.enter()()
	f.mayPanic()
	f.resumes = append(f.resumes, r)
	if f.resumeErr != nil {
		return api.Stop{}, f.resumeErr
	}
	for {
		if f.hang && r.Kind == api.Continue {
			<-ctx.Done()
		}
		if ctx.Err() != nil {
			f.interrupted.Add(1)
			f.stop = api.Stop{Kind: api.StopInterrupted}
		} else {
			f.stop = f.move(r)
		}
		if f.stop.Kind != api.StopNone {
			f.stop.TID = fakePID
			return f.stop, nil
		}
	}
}

// move executes or takes back one instruction; StopNone means go on.
func (f *fakeTarget) move(r api.Resume) api.Stop {
	var step fakeStep
	if r.Dir == api.Forward {
		if f.pos == len(f.steps) {
			return api.Stop{Kind: api.StopReplayEnd}
		}
		step = f.steps[f.pos]
		f.pos++
		for _, w := range step.writes {
			f.put(w.addr, w.new)
		}
	} else {
		if f.pos == 0 {
			return api.Stop{Kind: api.StopReplayBegin}
		}
		f.pos--
		step = f.steps[f.pos]
		for _, w := range step.writes {
			f.put(w.addr, w.old)
		}
	}
	if st := f.watched(step); st.Kind != api.StopNone {
		return st
	}
	pc := f.regs[f.pos].RIP
	if r.Kind == api.Step || r.Kind == api.RangeStep && (pc < r.Start || pc >= r.End) {
		return api.Stop{Kind: api.StopStep}
	}
	if st := f.breakAt(pc); st.Kind != api.StopNone {
		return st
	}
	if r.Dir == api.Forward && f.pos == len(f.steps) {
		return api.Stop{Kind: api.StopSignal, Signo: 11}
	}
	return api.Stop{}
}

// watched finds the watchpoint a step has hit.
func (f *fakeTarget) watched(s fakeStep) api.Stop {
	hit := func(list []fakeAccess, b api.Breakpoint) bool {
		for _, a := range list {
			if a.addr < b.Addr+b.Len && b.Addr < a.addr+uint64(len(a.new)) {
				return true
			}
		}
		return false
	}
	for _, b := range f.breaks {
		switch {
		case b.Kind == api.WatchWrite && hit(s.writes, b):
			return api.Stop{Kind: api.StopWatchWrite, Addr: b.Addr}
		case b.Kind == api.WatchRead && hit(s.reads, b):
			return api.Stop{Kind: api.StopWatchRead, Addr: b.Addr}
		case b.Kind == api.WatchAccess && (hit(s.writes, b) || hit(s.reads, b)):
			return api.Stop{Kind: api.StopWatchAccess, Addr: b.Addr}
		}
	}
	return api.Stop{}
}

// breakAt finds the breakpoint at pc whose condition holds.
func (f *fakeTarget) breakAt(pc uint64) api.Stop {
	for _, b := range f.breaks {
		if b.Addr != pc || b.Kind > api.BreakHardware {
			continue
		}
		if b.Test == nil || b.Test(fakeMachine{f}) {
			return api.Stop{Kind: api.StopBreakpoint + api.StopKind(b.Kind)}
		}
	}
	return api.Stop{}
}

func sameBreak(a, b api.Breakpoint) bool {
	return a.Kind == b.Kind && a.Addr == b.Addr && a.Len == b.Len
}

func (f *fakeTarget) SetBreakpoint(b api.Breakpoint) error {
	defer f.enter()()
	f.mayPanic()
	for i := range f.breaks {
		if sameBreak(f.breaks[i], b) {
			f.breaks[i] = b
			return nil
		}
	}
	f.breaks = append(f.breaks, b)
	return nil
}

func (f *fakeTarget) ClearBreakpoint(b api.Breakpoint) error {
	defer f.enter()()
	for i := range f.breaks {
		if sameBreak(f.breaks[i], b) {
			f.breaks = append(f.breaks[:i], f.breaks[i+1:]...)
			return nil
		}
	}
	return errors.New("was not set")
}

func (f *fakeTarget) Libraries() []api.Library { return f.libraries }

func (f *fakeTarget) Siginfo(int) ([]byte, error) {
	if f.noSiginfo {
		return nil, errors.New("not stopped by a signal")
	}
	b := make([]byte, 128)
	b[0], b[8] = 11, 1 // SIGSEGV, SEGV_MAPERR
	return b, nil
}

// fakeFile is a file in memory.
type fakeFile struct{ *bytes.Reader }

func (f fakeFile) Size() int64  { return f.Reader.Size() }
func (f fakeFile) Mode() uint32 { return 0o100555 }

func (f *fakeTarget) OpenFile(path string) (api.File, error) {
	defer f.enter()()
	f.mayPanic()
	switch path {
	case fakeExec:
		return fakeFile{bytes.NewReader(fakeELF())}, nil
	case fmt.Sprintf("/proc/%d/maps", fakePID), fmt.Sprintf("/proc/%d/task/%d/maps", fakePID, fakePID):
		return fakeFile{bytes.NewReader([]byte("00401000-00402000 r-xp 00001000 00:00 1 /replay/prog\n" +
			"00402000-00403000 rw-p 00002000 00:00 1 /replay/prog\n7ffef000-7fff0000 rw-p 00000000 00:00 0 [stack]\n"))}, nil
	}
	return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
}

func (f *fakeTarget) Readlink(path string) (string, error) {
	if path == fmt.Sprintf("/proc/%d/exe", fakePID) {
		return fakeExec, nil
	}
	return "", os.ErrNotExist
}

func (f *fakeTarget) Monitor(ctx context.Context, line string, out io.Writer) error {
	defer f.enter()()
	f.mayPanic()
	f.monitored = append(f.monitored, line)
	switch {
	case line == "when":
		fmt.Fprintf(out, "0:%d.0\n", f.pos)
		return nil
	case strings.HasPrefix(line, "seek 0:"):
		to, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(line, "seek 0:"), ".0"))
		if err != nil || to < 0 || to > len(f.steps) {
			return errors.New("no such position")
		}
		for f.pos > to {
			f.move(api.Resume{Dir: api.Backward})
		}
		for f.pos < to {
			f.move(api.Resume{})
		}
		f.stop = api.Stop{Kind: api.StopStep, TID: fakePID}
		return nil
	case line == "print":
		if p, ok := out.(api.Progress); ok {
			p.Progress("50 %")
		}
		_, err := io.WriteString(out, f.output)
		return err
	case line == "exit":
		return api.ErrExit
	case strings.HasPrefix(line, "wait"):
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("no such command: " + line)
}

func (f *fakeTarget) Rewind() error {
	for f.pos > 0 {
		f.move(api.Resume{Dir: api.Backward})
	}
	f.stop = api.Stop{Kind: api.StopReplayBegin, TID: fakePID}
	return nil
}

func (f *fakeTarget) Detached() { f.detached.Add(1) }

// Region describes the fake's three mappings.
func (f *fakeTarget) Region(addr uint64) (api.Region, error) {
	maps := []api.Region{
		{Start: fakeText, Size: 0x1000, Mapped: true, Read: true, Exec: true, Name: fakeExec},
		{Start: fakeCounter, Size: 0x1000, Mapped: true, Read: true, Write: true, Name: fakeExec},
		{Start: fakeStack - 0x1000, Size: 0x1000, Mapped: true, Read: true, Write: true, Name: "[stack]"},
	}
	i := sort.Search(len(maps), func(i int) bool { return addr < maps[i].Start+maps[i].Size })
	if i < len(maps) && addr >= maps[i].Start {
		return maps[i], nil
	}
	hole := api.Region{Size: 1 << 47}
	if i > 0 {
		hole.Start = maps[i-1].Start + maps[i-1].Size
	}
	if i < len(maps) {
		hole.Size = maps[i].Start - hole.Start
	}
	return hole, nil
}

// TLSAddress gives the thread pointer plus the offset.
func (f *fakeTarget) TLSAddress(_ int, offset, _ uint64) (uint64, error) {
	return f.regs[f.pos].FSBase + offset, nil
}
