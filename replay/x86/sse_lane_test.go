package x86

import (
	"crypto/aes"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// loopLanes computes a lane operation one lane at a time, with lanes as signed
// numbers: the definition that the side-by-side arithmetic must equal.
func loopLanes(a, b uint64, width uint, f func(x, y int64) int64) (r uint64) {
	for i := uint(0); i < 64; i += width {
		x := int64(a>>i<<(64-width)) >> (64 - width)
		y := int64(b>>i<<(64-width)) >> (64 - width)
		r |= uint64(f(x, y)) << (64 - width) >> (64 - width) << i
	}
	return r
}

func clamp(v, lo, hi int64) int64 { return max(lo, min(hi, v)) }

func ones(b bool) int64 {
	if b {
		return -1
	}
	return 0
}

// TestLanes compares every operation of sse_lane.go that has a short
// definition with that definition.
func TestLanes(t *testing.T) {
	const u8, u16, u32 = 0xff, 0xffff, 0xffffffff
	ops := []struct {
		name  string
		fast  func(a, b uint64) uint64
		width uint
		slow  func(x, y int64) int64
	}{
		{"paddb", laneAddB, 8, func(x, y int64) int64 { return x + y }},
		{"paddw", laneAddW, 16, func(x, y int64) int64 { return x + y }},
		{"paddd", laneAddD, 32, func(x, y int64) int64 { return x + y }},
		{"psubb", laneSubB, 8, func(x, y int64) int64 { return x - y }},
		{"psubw", laneSubW, 16, func(x, y int64) int64 { return x - y }},
		{"psubd", laneSubD, 32, func(x, y int64) int64 { return x - y }},
		{"pcmpeqb", laneEqB, 8, func(x, y int64) int64 { return ones(x == y) }},
		{"pcmpeqw", laneEqW, 16, func(x, y int64) int64 { return ones(x == y) }},
		{"pcmpeqd", laneEqD, 32, func(x, y int64) int64 { return ones(x == y) }},
		{"pcmpgtb", laneGtB, 8, func(x, y int64) int64 { return ones(x > y) }},
		{"pcmpgtw", laneGtW, 16, func(x, y int64) int64 { return ones(x > y) }},
		{"pcmpgtd", laneGtD, 32, func(x, y int64) int64 { return ones(x > y) }},
		{"pminub", laneMinUB, 8, func(x, y int64) int64 { return min(x&u8, y&u8) }},
		{"pminuw", laneMinUW, 16, func(x, y int64) int64 { return min(x&u16, y&u16) }},
		{"pminud", laneMinUD, 32, func(x, y int64) int64 { return min(x&u32, y&u32) }},
		{"pminsb", laneMinSB, 8, func(x, y int64) int64 { return min(x, y) }},
		{"pminsw", laneMinSW, 16, func(x, y int64) int64 { return min(x, y) }},
		{"pminsd", laneMinSD, 32, func(x, y int64) int64 { return min(x, y) }},
		{"pmaxub", laneMaxUB, 8, func(x, y int64) int64 { return max(x&u8, y&u8) }},
		{"pmaxuw", laneMaxUW, 16, func(x, y int64) int64 { return max(x&u16, y&u16) }},
		{"pmaxud", laneMaxUD, 32, func(x, y int64) int64 { return max(x&u32, y&u32) }},
		{"pmaxsb", laneMaxSB, 8, func(x, y int64) int64 { return max(x, y) }},
		{"pmaxsw", laneMaxSW, 16, func(x, y int64) int64 { return max(x, y) }},
		{"pmaxsd", laneMaxSD, 32, func(x, y int64) int64 { return max(x, y) }},
		{"paddsb", laneAddSB, 8, func(x, y int64) int64 { return clamp(x+y, -128, 127) }},
		{"paddsw", laneAddSW, 16, func(x, y int64) int64 { return clamp(x+y, -32768, 32767) }},
		{"psubsb", laneSubSB, 8, func(x, y int64) int64 { return clamp(x-y, -128, 127) }},
		{"psubsw", laneSubSW, 16, func(x, y int64) int64 { return clamp(x-y, -32768, 32767) }},
		{"paddusb", laneAddUSB, 8, func(x, y int64) int64 { return min(x&u8+y&u8, u8) }},
		{"paddusw", laneAddUSW, 16, func(x, y int64) int64 { return min(x&u16+y&u16, u16) }},
		{"psubusb", laneSubUSB, 8, func(x, y int64) int64 { return max(x&u8-y&u8, 0) }},
		{"psubusw", laneSubUSW, 16, func(x, y int64) int64 { return max(x&u16-y&u16, 0) }},
		{"pavgb", laneAvgB, 8, func(x, y int64) int64 { return (x&u8 + y&u8 + 1) >> 1 }},
		{"pavgw", laneAvgW, 16, func(x, y int64) int64 { return (x&u16 + y&u16 + 1) >> 1 }},
		{"pmullw", laneMulLW, 16, func(x, y int64) int64 { return x * y }},
		{"pmulhw", laneMulHW, 16, func(x, y int64) int64 { return x * y >> 16 }},
		{"pmulhuw", laneMulHUW, 16, func(x, y int64) int64 { return x & u16 * (y & u16) >> 16 }},
		{"pmulld", laneMulLD, 32, func(x, y int64) int64 { return x * y }},
		{"psignb", laneSignB, 8, func(x, y int64) int64 { return x * clamp(y, -1, 1) }},
		{"psignw", laneSignW, 16, func(x, y int64) int64 { return x * clamp(y, -1, 1) }},
		{"psignd", laneSignD, 32, func(x, y int64) int64 { return x * clamp(y, -1, 1) }},
		{"pabsb", func(_, b uint64) uint64 { return laneAbsB(b) }, 8, func(_, y int64) int64 { return max(y, -y) }},
		{"pabsw", func(_, b uint64) uint64 { return laneAbsW(b) }, 16, func(_, y int64) int64 { return max(y, -y) }},
		{"pabsd", func(_, b uint64) uint64 { return laneAbsD(b) }, 32, func(_, y int64) int64 { return max(y, -y) }},
	}
	r := rand.New(rand.NewPCG(7, 8))
	edge := []uint64{0, ^uint64(0), topB, ^uint64(topB), topW, topD, 0x0101010101010101, 0x80007fff80007fff}
	for range 3000 {
		a, b := r.Uint64(), r.Uint64()
		if r.IntN(3) == 0 {
			a = edge[r.IntN(len(edge))]
		}
		if r.IntN(3) == 0 {
			b = edge[r.IntN(len(edge))]
		}
		for _, o := range ops {
			if got, want := o.fast(a, b), loopLanes(a, b, o.width, o.slow); got != want {
				t.Fatalf("%s(%016x, %016x) = %016x, want %016x", o.name, a, b, got, want)
			}
		}
	}
}

// TestAES encrypts and decrypts blocks with the round functions, the key
// schedule being made by pairAeskeygenassist, and compares with crypto/aes.
func TestAES(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		var key, text, want [16]byte
		for i := range key {
			key[i], text[i] = byte(r.Uint32()), byte(r.Uint32())
		}
		ref, err := aes.NewCipher(key[:])
		if err != nil {
			t.Fatal(err)
		}
		ref.Encrypt(want[:], text[:])
		keys := aesSchedule(key)
		s := xor128(loadPair(text), keys[0])
		for _, k := range keys[1:10] {
			s = pairAesenc(s, k, 0)
		}
		if s = pairAesenclast(s, keys[10], 0); s != loadPair(want) {
			t.Fatalf("encrypt: got %x, want %x", s, want)
		}
		s = xor128(s, keys[10])
		for i := 9; i > 0; i-- {
			s = pairAesdec(s, pairAesimc(pair{}, keys[i], 0), 0)
		}
		if s = pairAesdeclast(s, keys[0], 0); s != loadPair(text) {
			t.Fatalf("decrypt: got %x, want %x", s, text)
		}
	}
}

func loadPair(b [16]byte) pair {
	lo, hi := getVec(&b)
	return pair{lo, hi}
}

func aesSchedule(key [16]byte) (keys [11]pair) {
	k := loadPair(key)
	keys[0] = k
	rcon := uint64(1)
	for i := 1; i < 11; i++ {
		g := dword(pairAeskeygenassist(pair{}, k, rcon), 3)
		q := toQuad(k)
		q[0] ^= uint32(g)
		q[1] ^= q[0]
		q[2] ^= q[1]
		q[3] ^= q[2]
		k = q.vec()
		keys[i] = k
		rcon = uint64(gfDouble(uint8(rcon)))
	}
	return keys
}

// TestSHA256 hashes one block with the instructions.
func TestSHA256(t *testing.T) {
	var msg [64]byte
	copy(msg[:], "abc")
	msg[3], msg[63] = 0x80, 24
	c := New(nil, &CPUIdentity{Vendor: VendorAMD})
	exec := func(h Handler, reg, rm uint8) {
		if e := h(c, &Inst{Reg: reg, RM: rm, Base: NoReg, Index: NoReg, Seg: NoSeg}); e != ExitNone {
			t.Fatal(e)
		}
	}
	set := func(n int, q quad) { v := q.vec(); c.V[n] = Vec{v[0], v[1]} }
	get := func(n int) quad { return toQuad(pair{c.V[n][0], c.V[n][1]}) }
	h := [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
	set(1, quad{h[7], h[6], h[3], h[2]}) // CDGH, H lowest
	set(2, quad{h[5], h[4], h[1], h[0]}) // ABEF
	var w [16]quad
	for i := range 4 {
		for k := range 4 {
			w[i][k] = binary.BigEndian.Uint32(msg[16*i+4*k:])
		}
	}
	for i := 4; i < 16; i++ {
		set(3, w[i-4])
		set(4, w[i-3])
		exec(sha256msg1, 3, 4)
		q := get(3)
		for k := range 4 { // W[t-7], as PALIGNR would take it
			q[k] += [8]uint32{w[i-2][0], w[i-2][1], w[i-2][2], w[i-2][3], w[i-1][0], w[i-1][1], w[i-1][2], w[i-1][3]}[k+1]
		}
		set(3, q)
		set(4, w[i-1])
		exec(sha256msg2, 3, 4)
		w[i] = get(3)
	}
	for i := range 16 {
		for half := range 2 {
			j := 4*i + 2*half
			set(0, quad{w[i][2*half] + sha256K[j], w[i][2*half+1] + sha256K[j+1]})
			exec(sha256rnds2, 1, 2)
			c.V[1], c.V[2] = c.V[2], c.V[1]
		}
	}
	x, y := get(2), get(1)
	got := [8]uint32{x[3] + h[0], x[2] + h[1], y[3] + h[2], y[2] + h[3], x[1] + h[4], x[0] + h[5], y[1] + h[6], y[0] + h[7]}
	want := sha256.Sum256([]byte("abc"))
	for i, v := range got {
		if v != binary.BigEndian.Uint32(want[4*i:]) {
			t.Fatalf("word %d: got %08x, want %x", i, v, want[4*i:4*i+4])
		}
	}
}

// sha256K are the round constants of FIPS 180-4, 4.2.2.
var sha256K = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

// TestFMA checks the fast path of the fused multiply-add against the integer
// one, and a case in which two roundings would differ from one.
func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	const m = mxcsr(0x1fa0)
	for range 200000 {
		a, b, c := randomDouble(r), randomDouble(r), randomDouble(r)
		s := fmaSigns{r.IntN(2) == 0, r.IntN(2) == 0}
		rf, ff := fma64(a, b, c, s, m)
		rs, fs := fpDouble.fma(a, b, c, s, m)
		if rf != rs || ff|mxPE != fs|mxPE {
			t.Fatalf("fma(%x, %x, %x) %v: fast %x flags %x, slow %x flags %x", a, b, c, s, rf, ff, rs, fs)
		}
	}
	const x = 0x3ff0000000000001 // 1 + 2^-52; its square is 1 + 2^-51 + 2^-104
	got, fl := fpDouble.fma(x, x, 0x3ff0000000000002, fmaSigns{addend: true}, 0x1f80)
	if got != 0x3970000000000000 || fl != 0 {
		t.Errorf("x*x - (1 + 2^-51): got %x flags %x, want 2^-104 exact", got, fl)
	}
}
