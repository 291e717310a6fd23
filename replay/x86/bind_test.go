package x86

import (
	"math/rand/v2"
	"testing"
)

// TestInstsStayAsDecoded executes random programs and every kind of the loop in
// blocks. The instructions of each block must then be what decoding its bytes
// gives: binding, fusion and execution leave them alone.
func TestInstsStayAsDecoded(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	rows := blockRows()
	fused, swapped, compared := 0, 0, 0
	check := func(code []byte, vendor Vendor) {
		c, _ := machine(rng.Uint64(), code, vendor)
		c.Run(200)
		for _, page := range c.code.pages {
			for _, b := range page.blocks {
				pc := b.pc
				for i := range b.insts {
					var want Inst
					if s := decodeInst(code[pc-testText:], pc, c.ID, &want); s != decodeOK {
						t.Fatalf("% x: decoding at %#x: status %d", code, pc, s)
					}
					if got := b.insts[i].Inst; got != want {
						t.Fatalf("% x at %#x:\n%+v\ndecoded:\n%+v", code, pc, got, want)
					}
					pc += uint64(want.Len)
					compared++
				}
				for o := firstOp(b); o.kind != kEnd; o = nextOp(o) {
					if o.flags&opFused != 0 {
						fused++
					}
					if o.reg != b.insts[o.idx].Reg {
						swapped++
					}
				}
			}
		}
	}
	for i := range 300 {
		check(randomProgram(rng, rows, 30), Vendor(i&1))
	}
	for _, name := range kindNames {
		if code, ok := chainProgram(rng, kindSamples(), name, false); ok {
			check(code, VendorIntel)
		}
	}
	if fused == 0 || swapped == 0 || compared < 1000 {
		t.Errorf("%d fused pairs, %d exchanged operands, %d instructions", fused, swapped, compared)
	}
}
