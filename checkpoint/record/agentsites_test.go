//go:build linux && amd64

package record

import (
	"encoding/binary"
	"math/rand"
	"testing"
)

// TestJumps finds jumps into a range in code of random bytes, of which many are parts of jumps, as a look
// at each byte as an instruction of its own does.
func TestJumps(t *testing.T) {
	const start = 0x401000
	leadsTo := func(code []byte, i int, size int, opcodes int) (uint64, bool) {
		if i+opcodes+size > len(code) {
			return 0, false
		}
		at := start + uint64(i+opcodes+size)
		if size == 1 {
			return at + uint64(int64(int8(code[i+1]))), true
		}
		return at + uint64(int64(int32(binary.LittleEndian.Uint32(code[i+opcodes:])))), true
	}
	rnd := rand.New(rand.NewSource(1))
	far, short := 0, 0
	for range 200_000 {
		code := make([]byte, 8+rnd.Intn(300))
		_, _ = rnd.Read(code)
		from := start + uint64(rnd.Intn(len(code)))
		to := from + 4
		// One jump of each kind that leads near the range.
		put := func(size int, opcode ...byte) {
			i := rnd.Intn(len(code))
			insn := binary.LittleEndian.AppendUint32(opcode, uint32(from)-uint32(start+i+len(opcode)+size)+uint32(rnd.Intn(10))-3)
			copy(code[i:], insn[:len(opcode)+size])
		}
		put(4, byte(0xe8+rnd.Intn(3)))
		put(4, 0x0f, byte(0x7e+rnd.Intn(20)))
		put(4, 0x8d, byte(rnd.Intn(8)<<3|rnd.Intn(2)<<2|5))
		put(1, byte(0x70+rnd.Intn(128)))
		wantFar, wantShort := false, false
		for i, b := range code {
			hits := func(size, opcodes int) bool {
				at, whole := leadsTo(code, i, size, opcodes)
				return whole && at >= from && at < to
			}
			wantFar = wantFar || (b == 0xe8 || b == 0xe9) && hits(4, 1) || (b == 0x0f && i+1 < len(code) && code[i+1]&0xf0 == 0x80 || b == 0x8d && i+1 < len(code) && code[i+1]&0xc7 == 5) && hits(4, 2)
			wantShort = wantShort || (b&0xf0 == 0x70 || b == 0xeb || b >= 0xe0 && b <= 0xe3) && hits(1, 1)
		}
		if got := hasFarJump(code, start, from, to); got != wantFar {
			t.Fatalf("far jumps of %x into [%#x,%#x): %v", code, from, to, got)
		}
		if got := hasShortJump(code, start, from, to); got != wantShort {
			t.Fatalf("short jumps of %x into [%#x,%#x): %v", code, from, to, got)
		}
		if wantFar {
			far++
		}
		if wantShort {
			short++
		}
	}
	if far < 1000 || short < 1000 {
		t.Errorf("%d and %d cases had one, which is too few", far, short)
	}
}
