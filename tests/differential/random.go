package differential

import "math/bits"

// The random numbers that cases are made from: fast, and the same for the same seed.
// Values that are likely to find mistakes are in values.go.

// random is the source of all cases: SplitMix64 (Steele, Lea, Flood: Fast
// Splittable Pseudorandom Number Generators, 2014). A case takes some 300
// numbers, so it counts that this is a fifth of the time of math/rand/v2's PCG.
type random struct{ state uint64 }

// newRandom returns a source for stream number n of a seed.
func newRandom(seed, n uint64) *random {
	r := &random{seed}
	r.state = r.Uint64() + n*0xd1342543de82ef95
	r.state = r.Uint64()
	return r
}

// Uint64 returns 64 random bits.
func (r *random) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Uint32 returns 32 random bits.
func (r *random) Uint32() uint32 { return uint32(r.Uint64() >> 32) }

// IntN returns a number from 0 to n-1, n > 0; what it favours small numbers by
// is below n in 2^64.
func (r *random) IntN(n int) int {
	hi, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int(hi)
}
