package x86

import (
	"math/rand/v2"
	"testing"
)

// takingTurns is an engine that hands over to another at every call.
type takingTurns struct {
	engines []Engine
	n       int
	pages   map[uint64]int // how often each was invalidated
	breaks  map[uint64]int // how often a breakpoint was set or removed there
	resets  int
}

func (e *takingTurns) Run(c *CPU, limit uint64) Exit {
	e.n++
	return e.engines[e.n%len(e.engines)].Run(c, min(limit, c.Retired+3))
}

func (e *takingTurns) Invalidate(c *CPU, page uint64) {
	if e.pages != nil {
		e.pages[page]++
	}
	e.engines[0].Invalidate(c, page)
}

func (e *takingTurns) Breakpoint(c *CPU, pc uint64) {
	if e.breaks != nil {
		e.breaks[pc]++
	}
	e.engines[0].Breakpoint(c, pc)
}

func (e *takingTurns) Reset(c *CPU) {
	e.resets++
	e.engines[0].Reset(c)
}

// TestEngines runs random programs by each engine, by both in turns of up to three
// instructions, and up to breakpoints: all must come to the same.
func TestEngines(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	rows := blockRows()
	for i := range 1000 {
		code := randomProgram(rng, rows, 1+rng.IntN(30))
		seed, vendor := rng.Uint64(), Vendor(i&1)
		breaks := []uint64{testText + uint64(rng.IntN(len(code))), testText + uint64(rng.IntN(len(code)))}
		if i%3 == 0 {
			breaks = nil
		}
		var want string
		var bus *testBus
		for j, e := range []Engine{BlockEngine{}, StepEngine{}, &TraceEngine{}, &takingTurns{engines: []Engine{BlockEngine{}, StepEngine{}}}} {
			c, b := machine(seed, code, vendor)
			c.SetEngine(e)
			c.SetBreakpoints(breaks)
			got := ""
			for stops := 0; stops < 100; stops++ {
				c.SkipBreak = stops > 0
				x := c.Run(1000)
				got += describe(c, x) + "\n"
				if x != ExitBreak {
					break
				}
			}
			if j == 0 {
				want, bus = got, b
				continue
			}
			if got != want {
				t.Fatalf("program %d, engine %d, breakpoints %#x: % x\nengine: %s\nblocks: %s", i, j, breaks, code, got, want)
			}
			sameMemory(t, bus, b, "program %d, engine %d: % x", i, j, code)
		}
	}
}

// TestEngineIsTold: an engine learns of what may have changed code.
func TestEngineIsTold(t *testing.T) {
	c, _ := machine(1, []byte{0x90, 0x90, 0x0f, 0x0b}, VendorAMD)
	e := &takingTurns{engines: []Engine{BlockEngine{}}, pages: map[uint64]int{}, breaks: map[uint64]int{}}
	c.SetEngine(e)
	if e.resets != 1 {
		t.Errorf("SetEngine: %d resets", e.resets)
	}
	c.Run(2)
	c.FlushTLBPage(testText + 5)
	c.FlushTLB()
	if e.pages[testText] != 1 || e.pages[AllPages] != 1 || len(e.pages) != 2 {
		t.Errorf("invalidated: %v", e.pages)
	}
	c.FlushTLBRange(testText, testText+2*pageSize)
	c.FlushTLBRange(testText, testText+2000*pageSize)
	c.FlushTLBRange(0, 1<<64-1)
	if e.pages[testText] != 2 || e.pages[testText+pageSize] != 1 || e.pages[AllPages] != 3 || len(e.pages) != 3 {
		t.Errorf("invalidated by ranges: %v", e.pages)
	}
	c.SetBreakpoints([]uint64{testText + 1})
	c.SetBreakpoints([]uint64{testText + 1, testText + 2})
	c.SetBreakpoints([]uint64{testText + 2})
	if len(e.breaks) != 2 || e.breaks[testText+1] != 2 || e.breaks[testText+2] != 1 || e.resets != 1 {
		t.Errorf("breakpoints %v, %d resets", e.breaks, e.resets-1)
	}
}
