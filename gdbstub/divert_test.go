package gdbstub

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"math/rand"
	"strings"
	"testing"

	"vplay/replay/debug/api"
)

// fakeDiverter is a fakeTarget that can be changed: copied is the copy.
type fakeDiverter struct {
	*fakeTarget
	copied *fakeTarget
	made   int
	output func(b []byte)
	exits  bool  // the copy exits when it runs
	fails  error // or cannot go on
}

func (f *fakeDiverter) Divert(output func(b []byte)) error {
	c := newFake()
	c.mem = maps.Clone(f.mem)
	c.regs, c.pos, c.breaks = []api.Registers{f.regs[f.pos]}, 0, f.breaks
	f.copied, f.output = c, output
	f.made++
	return nil
}

func (f *fakeDiverter) Undivert() { f.copied = nil }

func (f *fakeDiverter) now() *fakeTarget {
	if f.copied != nil {
		return f.copied
	}
	return f.fakeTarget
}

func (f *fakeDiverter) Registers(tid int) (*api.Registers, error) { return f.now().Registers(tid) }

func (f *fakeDiverter) ReadMemory(addr uint64, b []byte) (int, error) {
	return f.now().ReadMemory(addr, b)
}

func (f *fakeDiverter) WriteRegisters(_ int, r *api.Registers) error {
	f.copied.regs[0] = *r
	return nil
}

func (f *fakeDiverter) WriteMemory(addr uint64, b []byte) error {
	if _, err := f.copied.read(addr, make([]byte, len(b))); err != nil {
		return err
	}
	f.copied.put(addr, b)
	return nil
}

func (f *fakeDiverter) ResumeDiverted(ctx context.Context, r api.Resume, skip bool) (api.Stop, error) {
	switch {
	case f.exits:
		return api.Stop{Kind: api.StopExited, Code: 3}, nil
	case f.fails != nil:
		return api.Stop{}, f.fails
	}
	f.output([]byte("said\n"))
	c := f.copied
	c.breaks = f.breaks
	for range 10_000 {
		if st := c.breakAt(c.regs[0].RIP); !skip && st.Kind != api.StopNone {
			st.TID = fakePID
			return st, nil
		}
		c.execute(&c.regs[0])
		skip = false
		if r.Kind == api.Step {
			return api.Stop{Kind: api.StopStep, TID: fakePID}, nil
		}
	}
	<-ctx.Done()
	return api.Stop{Kind: api.StopInterrupted, TID: fakePID}, nil
}

func (f *fakeDiverter) AllocateMemory(size uint64, _ int) (uint64, error) {
	if size > 4096 {
		return 0, errors.New("no room")
	}
	for i := range size {
		f.copied.mem[0x500000+i] = 0
	}
	return 0x500000, nil
}

func (f *fakeDiverter) FreeMemory(addr uint64) error {
	if addr != 0x500000 {
		return errors.New("nothing there")
	}
	return nil
}

// until sends a packet and returns the console output and the reply behind it.
func (c *client) until(payload string) (console, reply string) {
	c.t.Helper()
	var text []byte
	r := c.ask(payload)
	for ; strings.HasPrefix(r, "O") && r != "OK"; r = c.receive() {
		b, err := hex.DecodeString(r[1:])
		if err != nil {
			c.t.Fatal(err)
		}
		text = append(text, b...)
	}
	return string(text), r
}

func word(v uint64) string {
	var b [8]byte
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return hex.EncodeToString(b[:])
}

const (
	fakeTop    = fakeStack - 64  // the stack pointer
	fakeReturn = fakeStack - 200 // where calls return to
)

// call makes the packets of a call of bump up to its resume.
func (c *client) call() {
	c.t.Helper()
	c.want("X7ffeff38,1:\xcc", "OK") // fakeReturn
	c.want("P7="+word(fakeTop-0x200), "OK")
	c.want("M7ffefdc0,8:"+word(fakeReturn), "OK")
	c.want("P10="+word(fakeBump), "OK")
	c.want("Z0,7ffeff38,1", "OK")
}

// TestDiversionCall makes calls as gdb does and looks at what is left of them.
func TestDiversionCall(t *testing.T) {
	f := &fakeDiverter{fakeTarget: newFake()}
	c := dial(t, f)
	defer func() { _ = c.hangUp() }()
	if r := c.ask("qSupported:swbreak+"); !strings.Contains(r, "qXfer:siginfo:write+") {
		t.Fatal(r)
	}
	f.noSiginfo = true
	for range 3 {
		before := c.ask("g")
		info := c.ask("qXfer:siginfo:read::0,80")
		if len(info) != 129 {
			t.Fatalf("siginfo of %d bytes", len(info))
		}
		c.call()
		console, stop := c.until("vCont;c")
		if console != "said\n" || !strings.HasPrefix(stop, "T05") || !strings.Contains(stop, "swbreak") {
			t.Fatalf("%q, %q", console, stop)
		}
		c.want("z0,7ffeff38,1", "OK")
		c.want("qXfer:siginfo:write::0:"+info[1:], "80")
		c.want("G"+before, "OK")
		if r := c.ask("g"); r != before {
			t.Fatalf("%s, was %s", r, before)
		}
	}
	if f.made != 1 {
		t.Errorf("%d copies were made of one moment", f.made)
	}
	c.want("m402000,1", "08") // bumped three times
	console, _ := c.until("bs")
	if console != "" || f.copied != nil {
		t.Errorf("%q; the copy stays: %v", console, f.copied != nil)
	}
	c.want("m402000,1", "05")
	if f.overlap.Load() {
		t.Error("calls to the target overlapped")
	}
}

// TestDiversionDropped changes things as a user does: the next movement is the
// recording's.
func TestDiversionDropped(t *testing.T) {
	for name, change := range map[string]func(c *client){
		"set var":           func(c *client) { c.want("X402000,1:a", "OK"); c.want("m402000,1", "61") },
		"set register":      func(c *client) { c.want("P0="+word(7), "OK"); c.want("p0", word(7)) },
		"print siginfo too": func(c *client) { c.ask("qXfer:siginfo:read::0,80"); c.want("X402000,1:a", "OK") },
		"jump":              func(c *client) { c.want("P10="+word(fakeBump), "OK") },
		"return": func(c *client) {
			c.want("P7="+word(fakeTop+16), "OK")
			c.want("P10="+word(fakeLoop), "OK")
		},
		"finish from a function's beginning": func(c *client) {
			c.want("M7ffeffc0,8:"+word(fakeReturn), "OK")
			c.want("Z0,7ffeff38,1", "OK")
		},
		"a call that is left": func(c *client) {
			c.ask("qXfer:siginfo:read::0,80")
			c.call()
			c.want("Z0,401024,1", "OK")
			c.until("vCont;c")
			c.until("vCont;s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeDiverter{fakeTarget: newFake()}
			c := dial(t, f)
			defer func() { _ = c.hangUp() }()
			before := c.ask("g")
			change(c)
			if f.copied == nil {
				t.Fatal("no copy")
			}
			console, _ := c.until("bs")
			if !strings.Contains(console, "is dropped") || f.copied != nil {
				t.Errorf("console: %q", console)
			}
			c.want("m402000,1", "05")
			c.until("vCont;s")
			if r := c.ask("g"); r != before {
				t.Errorf("registers %s, were %s", r, before)
			}
		})
	}
}

// TestDiversionNone writes what is there already: no copy is made.
func TestDiversionNone(t *testing.T) {
	f := &fakeDiverter{fakeTarget: newFake()}
	c := dial(t, f)
	defer func() { _ = c.hangUp() }()
	c.want("G"+c.ask("g"), "OK")
	c.want("P10="+c.ask("p10"), "OK")
	c.want("M402000,4:"+c.ask("m402000,4"), "OK")
	c.want("X0,0:", "OK")
	if f.made != 0 {
		t.Error("a copy was made")
	}
	c.want("X1,1:a", "E.0x1 was not captured")
	c.want("P10=00", "E01")
	c.want("G00", "E01")
	c.want("qXfer:siginfo:write::zz:a", "E01")
}

// TestDiversionEnds: calls that exit, or cannot go on.
func TestDiversionEnds(t *testing.T) {
	f := &fakeDiverter{fakeTarget: newFake(), exits: true}
	c := dial(t, f)
	before := c.ask("g")
	c.call()
	console, stop := c.until("vCont;c")
	if !strings.Contains(console, "exit(3)") || !strings.HasPrefix(stop, "T05") || f.copied != nil {
		t.Errorf("%q, %q", console, stop)
	}
	c.want("g", before)
	f.exits, f.fails = false, errors.New("no such byte")
	c.call()
	if console, _ = c.until("vCont;c"); !strings.Contains(console, "no such byte") || f.copied == nil {
		t.Errorf("%q", console)
	}
	if console, _ = c.until("vCont;c"); !strings.Contains(console, "dropped") || f.copied != nil {
		t.Errorf("%q", console)
	}
	c.want("X402000,1:a", "OK")
	_ = c.hangUp()
	if f.copied != nil {
		t.Error("the copy outlives its session")
	}
}

// TestDiversionOfLLDB brackets with lldb's packets.
func TestDiversionOfLLDB(t *testing.T) {
	f := &fakeDiverter{fakeTarget: newFake()}
	c := dial(t, f)
	defer func() { _ = c.hangUp() }()
	c.want("_M10,rwx", "500000")
	c.want("m500000,2", "0000")
	before := c.ask("g")
	c.want("QSaveRegisterState;thread:1234;", "1")
	c.call()
	c.until("vCont;c")
	c.want("QRestoreRegisterState:1;thread:1234;", "OK")
	c.want("g", before)
	c.want("QRestoreRegisterState:1", "E01")
	c.want("_m500000", "OK")
	c.want("_m500001", "E01")
	c.want("_M100000,rw", "E01")
	if console, _ := c.until("bs"); console != "" {
		t.Errorf("console: %q", console)
	}
}

// TestRegisterBytes: a register's bytes are what was set, and no other register
// changes.
func TestRegisterBytes(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	d := allRegisters()
	for range 200 {
		var v api.Registers
		want := map[string]string{}
		for i := range d.regs {
			r := &d.regs[i]
			b := make([]byte, r.size)
			rng.Read(b)
			switch { // gdb shows 16-bit registers in four bytes
			case r.kind == kindSeg, r.kind == kindX87 && r.name != "fioff" && r.name != "fooff":
				b[2], b[3] = 0, 0
			}
			r.setValue(&v, b)
			want[r.name] = string(b)
		}
		for i := range d.regs {
			r := &d.regs[i]
			if got := r.appendValue(nil, &v); string(got) != want[r.name] {
				t.Fatalf("%s: %x, want %x", r.name, got, want[r.name])
			}
		}
	}
}
