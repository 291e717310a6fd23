package dataflow

import (
	"math/rand/v2"
	"testing"

	"vplay/replay/x86"
)

// all returns what any flow of k writes, and what any reads, addresses included.
func (k *Instruction) all() (written, read RegSet) {
	read = k.Address
	for i := range k.Flows {
		f := &k.Flows[i]
		written.Add(f.Dst)
		read.Add(f.Src)
		if !f.Copies {
			continue
		}
		switch f.From.Kind {
		case InGeneral:
			read.Add(BytesOf(f.From.Reg, int(f.From.Off), min(int(f.N), 8-int(f.From.Off))))
		case InVector:
			read.Add(LanesOf(f.From.Reg, 0, 8))
		}
	}
	return written, read
}

// TestCompile: of whatever bytes are an instruction, nothing is lost that the table says it
// reads or writes.
func TestCompile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	id := &x86.CPUIdentity{Vendor: x86.VendorAMD, XCR0: 0xe7}
	seen := map[uint16]bool{}
	for range 600_000 {
		var b [15]byte
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if r.IntN(3) == 0 { // VEX
			b[0] = 0xc5 - byte(r.IntN(2))
		}
		in, err := x86.DecodeInst(b[:], 0x1000, id)
		if err != nil {
			continue
		}
		row := &x86.Rows()[in.Row]
		if row.Attr("refuse") {
			continue
		}
		seen[in.Row] = true
		k := Compile(0x1000, &in, false)
		e := in.Effects()
		written, read := k.all()
		if row.Mnemonic == "XCHG" && row.Encoding.PlusR && in.Reg == x86.RAX {
			continue // NOP
		}
		jumps := row.Mnemonic == "JMP" || row.Mnemonic == "CALL" || row.Mnemonic == "RET"
		isZero := len(k.Flows) > 0 && k.Flows[0].Src.IsEmpty() && in.Flags&x86.InstMem == 0
		for n := range uint8(16) {
			reg := BytesOf(n, 0, 8)
			reg.Remove(Ignored)
			if reg.IsEmpty() {
				continue
			}
			if e.Write.R>>n&1 != 0 && reg.And(written) == (RegSet{}) {
				t.Errorf("%s % x: register %d is not written", row.Mnemonic, b, n)
			}
			if e.Read.R>>n&1 != 0 && reg.And(read) == (RegSet{}) && !jumps && !isZero && !k.Repeats {
				t.Errorf("%s % x: register %d is not read", row.Mnemonic, b, n)
			}
		}
		for n := range uint8(32) {
			reg := LanesOf(n, 0, 8)
			if e.Write.V>>n&1 != 0 && reg.And(written) == (RegSet{}) && row.Mnemonic != "VZEROUPPER" && row.Mnemonic != "VZEROALL" {
				t.Errorf("%s % x: vector register %d is not written", row.Mnemonic, b, n)
			}
		}
		if e.Write.Parts&x86.PartMemory != 0 && !k.Stores {
			t.Errorf("%s % x: memory is not written", row.Mnemonic, b)
		}
		if t.Failed() {
			return
		}
	}
	if len(seen) < 1000 {
		t.Errorf("%d rows only", len(seen))
	}
}

// TestNop: 90 is XCHG EAX, EAX by its encoding, but keeps the upper half of RAX. With REX.B it is
// an exchange, and so is 87 C0.
func TestNop(t *testing.T) {
	for _, k := range []struct {
		code   []byte
		writes bool
	}{{[]byte{0x90}, false}, {[]byte{0x48, 0x90}, false}, {[]byte{0x41, 0x90}, true}, {[]byte{0x87, 0xc0}, true}} {
		in, err := x86.DecodeInst(k.code, 0x1000, &x86.CPUIdentity{})
		if err != nil {
			t.Fatal(err)
		}
		if got := Compile(0x1000, &in, false).Touch != 0; got != k.writes {
			t.Errorf("% x writes registers: %v", k.code, got)
		}
	}
}
