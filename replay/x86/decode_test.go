package x86

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"
)

// FuzzDecode: no bytes make the decoder panic, and what it accepts has 1 to 15
// bytes and decodes the same from exactly these. Executing them, once by itself
// and once as a block, from a state made of the bytes, does not panic either, and
// comes to the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"90", "f30f1efa", "4801d8", "c4e2f8f2c0", "660f3a16c001", "64488b042528000000", "f0480fb10f", "62f17c48",
		"62f17c481000", "8fe8788500c010", "f3a4", "c8000110", "0fae20", "0fc731", "d9f0", "c4e2699004d1", "cf", "67660f38f600",
	} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	buses := [2]*testBus{}
	cpus := map[Vendor][2]*CPU{VendorAMD: {}, VendorIntel: {}}
	for i := range buses {
		b := newTestBus()
		b.add(fuzzText, pageSize, "rx")
		b.add(fuzzData, 2*pageSize, "rw")
		b.add(fuzzData+2*pageSize, pageSize, "r")
		buses[i] = b
		for v, c := range cpus {
			c[i] = New(b, &CPUIdentity{Vendor: v, Family: 6, XCR0: 7})
			cpus[v] = c
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzDisplay(t, b)
		for v, c := range cpus {
			in, err := DecodeInst(b, fuzzText, &CPUIdentity{Vendor: v})
			if err == nil && (in.Len < 1 || in.Len > maxInst || int(in.Len) > len(b)) {
				t.Fatalf("%v: % x: length %d", v, b, in.Len)
			}
			if err != nil && !errors.Is(err, ErrShort) && !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrUndefined) {
				t.Fatalf("%v: % x: %v", v, b, err)
			}
			alone, block := fuzzStep(buses[0], c[0], b, false), fuzzStep(buses[1], c[1], b, true)
			if alone != block {
				t.Fatalf("%v: % x: alone\n%+v\nin a block\n%+v", v, b, alone, block)
			}
		}
	})
}

// Where the fuzzed instruction and its data are.
const (
	fuzzText = 0x400000
	fuzzData = 0x10000000
)

// fuzzDisplay decodes for display.
func fuzzDisplay(t *testing.T, b []byte) {
	d, err := Decode(b)
	if err != nil {
		return
	}
	if d.Len < 1 || d.Len > maxInst || d.Len > len(b) {
		t.Fatalf("% x: length %d", b, d.Len)
	}
	if e, err := Decode(b[:d.Len]); err != nil || e != d {
		t.Fatalf("% x: %+v alone is %+v, %v", b, d, e, err)
	}
}

// fuzzEnd is what an instruction came to.
type fuzzEnd struct {
	exit    Exit
	fault   Fault
	rip     uint64
	r       [16]uint64
	flags   uint64
	v       [16]Vec
	retired uint64
}

// fuzzStep executes the instruction at the end of a page. Registers and memory
// follow from its bytes: most point into the data.
func fuzzStep(bus *testBus, c *CPU, b []byte, block bool) fuzzEnd {
	b = b[:min(len(b), 2*maxInst)]
	at := uint64(fuzzText + pageSize - len(b))
	for i := range bus.pages[fuzzData].b {
		bus.pages[fuzzData].b[i] = byte(i * 7)
	}
	bus.pages[fuzzData+pageSize].b = bus.pages[fuzzData].b
	bus.put(at, b)
	bus.codeID++
	var seed [8]byte
	copy(seed[:], b)
	x := binary.LittleEndian.Uint64(seed[:])
	c.State = State{}
	c.FPU.Reset()
	c.MXCSR = 0x1f80
	for i := range c.R {
		x = x*0x5851f42d4c957f2d + 0x14057b7ef767814f
		c.R[i] = fuzzData + pageSize + x>>52
		c.V[i] = Vec{x, x >> 7, ^x, x << 9}
	}
	c.R[RCX] = x >> 58
	c.SetFlags(x>>32&flagsArith | 2)
	c.RIP = at
	c.FlushCode()
	var e Exit
	if block {
		e = c.Run(1)
	} else {
		for e = c.Step(); e == ExitNone && c.RepIter > 0; {
			e = c.Step()
		}
	}
	end := fuzzEnd{exit: e, rip: c.RIP, r: c.R, flags: c.Flags(), v: c.V, retired: c.Retired}
	if e == ExitFault {
		end.fault = c.Fault
	}
	if e == ExitLimit {
		end.exit = ExitNone
	}
	return end
}
