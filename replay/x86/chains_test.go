package x86

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// kindSamples returns encodings of instructions by the name of the kind they
// get in a block on their own, without fusion.
var kindSamples = sync.OnceValue(func() map[string][][]byte {
	rng := rand.New(rand.NewPCG(9, 8))
	var rows []*Row
	all := Rows()
	for i := range all {
		if r := &all[i]; r.class != 0 && r.File == "int" {
			rows = append(rows, r)
		}
	}
	samples := map[string][][]byte{}
	id := &CPUIdentity{Vendor: VendorAMD}
	vector := vectorRows()
	for i := range 500_000 {
		var b []byte
		if i%5 == 0 {
			b = vectorInst(rng, vector[rng.IntN(len(vector))])
		} else {
			b = randomInst(rng, rows[rng.IntN(len(rows))])
		}
		var in Inst
		if b == nil || decodeInst(append(bytes.Clone(b), make([]byte, maxInst)...), testText, id, &in) != decodeOK {
			continue
		}
		one := []op{bind(&in)}
		specialise(one)
		if name := kindNames[one[0].kind]; name != "" && len(samples[name]) < 40 {
			samples[name] = append(samples[name], b)
		}
	}
	for _, op := range []byte{0x8b, 0x2b} { // MOV and SUB of a register and FS:disp32
		for range 8 {
			b := []byte{0x64, 0x48 | byte(rng.IntN(2))<<2, op, byte(rng.IntN(8))<<3 | 4, 0x25}
			b = le.AppendUint32(b, testData+uint32(rng.IntN(testTop-testData-128)))
			name := map[byte]string{0x8b: "FLoad8", 0x2b: "FSubRM8"}[op]
			samples[name] = append(samples[name], b)
		}
	}
	return samples
})

var condNames = [16]string{"O", "NO", "B", "AE", "E", "NE", "BE", "A", "S", "NS", "P", "NP", "L", "GE", "LE", "G"}

// sample returns the bytes of an instruction, or fused pair, of a kind, and
// where in it a byte that is a distance ahead stands, or -1.
func sample(rng *rand.Rand, samples map[string][][]byte, kind string) (b []byte, rel int) {
	base := ""
	if strings.HasSuffix(kind, "b") && strings.Contains(kind, "J") && !strings.HasPrefix(kind, "Jmp") {
		kind, base = strings.TrimSuffix(kind, "b"), "b"
	}
	if i := strings.IndexByte(kind, 'J'); i >= 0 && !strings.HasPrefix(kind, "Jmp") {
		if i > 0 {
			b = sampleOf(rng, samples, kind[:i]+base)
		}
		for cc, n := range condNames {
			if n == kind[i+1:] {
				b = append(b, 0x70|byte(cc), 0)
			}
		}
		return b, len(b) - 1
	}
	switch kind {
	case "Jmp":
		return []byte{0xeb, 0}, 1
	case "Call":
		return []byte{0xe8, 0, 0, 0, 0}, 1
	}
	return sampleOf(rng, samples, kind), -1
}

func sampleOf(rng *rand.Rand, samples map[string][][]byte, kind string) []byte {
	s := samples[kind]
	if len(s) == 0 {
		s = samples[strings.TrimSuffix(kind, "n")]
	}
	if len(s) == 0 {
		return nil
	}
	return bytes.Clone(s[rng.IntN(len(s))])
}

// chainProgram makes a program of a chain: what it jumps to is the UD2 at its
// end. With dead the flags it sets may be dropped.
func chainProgram(rng *rand.Rand, samples map[string][][]byte, name string, dead bool) (code []byte, ok bool) {
	var rels []int
	for k := range strings.SplitSeq(name, "_") {
		b, rel := sample(rng, samples, k)
		if len(b) == 0 {
			return nil, false
		}
		if rel >= 0 {
			rels = append(rels, len(code)+rel)
		}
		code = append(code, b...)
	}
	if dead {
		code = append(code, 0x85, 0xc0) // test eax, eax
	}
	for _, r := range rels {
		width := 1
		if r > 0 && code[r-1] == 0xe8 {
			width = 4
		}
		code[r] = byte(len(code) - r - width)
	}
	return append(code, 0x0f, 0x0b), true
}

// TestChains runs every kind and every chain of the run loop against single steps.
func TestChains(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	tested := 0
	for k, name := range kindNames {
		if name == "" || name == "Generic" || name == "End" {
			continue
		}
		tested++
		built := false
		for i := range 8 {
			b := compareWithSteps(t, rng, name, i)
			built = built || b != nil && firstOp(b).kind == uint16(k)
		}
		if !built {
			t.Errorf("%s: never in a block", name)
		}
	}
	if tested == 0 {
		t.Error("no chains")
	}
}

// compareWithSteps runs the i-th program of a chain in blocks and step by step,
// from the same random state, and returns its first block, nil if there is none.
func compareWithSteps(t *testing.T, rng *rand.Rand, name string, i int) *block {
	t.Helper()
	code, ok := chainProgram(rng, kindSamples(), name, i&2 != 0)
	if !ok {
		t.Fatalf("%s: no instruction of one of its kinds", name)
	}
	vendor := Vendor(i & 1)
	seed := rng.Uint64()
	a, abus := machine(seed, code, vendor)
	b, bbus := machine(seed, code, vendor)
	for r := range a.R {
		if rng.IntN(4) == 0 {
			a.R[r] = testText + uint64(len(code)) - 2
			b.R[r] = a.R[r]
		}
	}
	var end [8]byte
	binary.LittleEndian.PutUint64(end[:], testText+uint64(len(code))-2)
	for at := uint64(testData); at < testTop; at += 8 {
		if at>>3*0x9e3779b97f4a7c15>>63 == 0 {
			abus.put(at, end[:])
			bbus.put(at, end[:])
		}
	}
	ae := a.Run(100)
	be := ExitNone
	for be == ExitNone && b.Retired < 100 {
		be = b.Step()
	}
	if x, y := describe(a, ae), describe(b, be); x != y {
		t.Fatalf("%s: % x\nblocks: %s\nsteps:  %s", name, code, x, y)
	}
	sameMemory(t, abus, bbus, "%s: % x", name, code)
	return a.code.hash[codeHash(testText)]
}
