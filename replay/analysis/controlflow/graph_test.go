package controlflow

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"vplay/replay/x86"
)

// Random functions, whose control dependences are held to the definition, found by looking for ways.

// testBase is where the functions are, one instruction or two at each multiple of testStep.
const (
	testBase = 0x401000
	testStep = 16
)

// program is code, and what follows each instruction; 0 is the end.
type program struct {
	code []byte
	next map[uint64][]uint64
}

func (p *program) jump(at, to uint64) {
	b := p.code[at-testBase:]
	b[0] = 0xe9
	binary.LittleEndian.PutUint32(b[1:], uint32(to-at-5))
	p.next[at] = []uint64{to}
}

// randomProgram makes n places that branch, jump, or return.
func randomProgram(r *rand.Rand, n int) *program {
	p := &program{make([]byte, (n+1)*testStep), map[uint64][]uint64{}}
	place := func() uint64 { return testBase + uint64(r.IntN(n))*testStep }
	for i := range n {
		at := testBase + uint64(i)*testStep
		b := p.code[at-testBase:]
		switch k := r.IntN(8); {
		case k < 5: // JNE, and behind it JMP
			to := place()
			b[0], b[1] = 0x0f, 0x85
			binary.LittleEndian.PutUint32(b[2:], uint32(to-at-6))
			p.next[at] = []uint64{to, at + 6}
			p.jump(at+6, place())
		case k < 7:
			p.jump(at, place())
		default:
			b[0] = 0xc3
			p.next[at] = []uint64{0}
		}
	}
	return p
}

// reaches reports whether a way leads from a to b that does not go through without.
func (p *program) reaches(a, b, without uint64) bool {
	seen := map[uint64]bool{}
	for todo := []uint64{a}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at == without || seen[at] {
			continue
		}
		if at == b {
			return true
		}
		seen[at] = true
		todo = append(todo, p.next[at]...)
	}
	return false
}

// none is no address.
const none = ^uint64(0)

// controls is the definition: b decides about pc when all ways from one of its ends go through pc, and not all from b itself do.
func (p *program) controls(pc uint64) (out []uint64) {
	for b, ends := range p.next {
		if len(ends) < 2 || ends[0] == ends[1] || !p.reaches(testBase, b, none) {
			continue
		}
		inevitable := func(from uint64) bool { return from == pc || !p.reaches(from, 0, pc) }
		isAll := true
		isSome := false
		for _, e := range ends {
			isAll, isSome = isAll && inevitable(e), isSome || inevitable(e)
		}
		if isSome && !isAll {
			out = append(out, b)
		}
	}
	slices.Sort(out)
	return out
}

func TestControls(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	tested, found := 0, 0
	for range 400 {
		p := randomProgram(r, 3+r.IntN(10))
		c := New(Options{ID: &x86.CPUIdentity{Vendor: x86.VendorAMD}, Fetch: func(pc uint64, b []byte) int {
			if pc < testBase || pc >= testBase+uint64(len(p.code)) {
				return 0
			}
			return copy(b, p.code[pc-testBase:])
		}})
		c.AddEntry(testBase)
		reached := []uint64{}
		ends := true
		for pc := range p.next {
			if p.reaches(testBase, pc, none) {
				reached = append(reached, pc)
				ends = ends && p.reaches(pc, 0, none)
			}
		}
		if !ends {
			continue // a loop for ever has no post-dominators
		}
		for _, pc := range reached {
			want := p.controls(pc)
			if got := c.Controls(pc); !slices.Equal(got, want) {
				t.Fatalf("%#x is decided by %#x, want %#x: %#x", pc, got, want, p.next)
			}
			tested++
			found += len(want)
		}
	}
	if tested < 500 || found < 500 {
		t.Errorf("%d instructions with %d branches", tested, found)
	}
}
