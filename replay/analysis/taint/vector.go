package taint

import "encoding/binary"

// Operands as bits.

// vectorOf returns bytes as bits.
func vectorOf(b []byte) (m vector) {
	var all [64]byte
	copy(all[:], b)
	for i := range m {
		m[i] = binary.LittleEndian.Uint64(all[8*i:])
	}
	return m
}

// bytes returns all 64 bytes.
func (m *vector) bytes() []byte {
	b := make([]byte, 0, 64)
	for _, w := range m {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// low returns the lowest n bytes, and zeroes.
func (m vector) low(n int) vector {
	for i := range m {
		switch left := n - 8*i; {
		case left <= 0:
			m[i] = 0
		case left < 8:
			m[i] &= 1<<(8*left) - 1
		}
	}
	return m
}

// each returns f of each pair of words.
func (m vector) each(o *vector, f func(a, b uint64) uint64) vector {
	for i := range m {
		m[i] = f(m[i], o[i])
	}
	return m
}

func (m *vector) isZero() bool { return *m == vector{} }

// lane returns lane i of n bytes.
func (m *vector) lane(i, n int) uint64 {
	at := i * n
	return m[at/8] >> (8 * (at % 8)) & (^uint64(0) >> (64 - 8*n))
}

// setLane sets lane i of n bytes.
func (m *vector) setLane(i, n int, v uint64) {
	at := i * n
	mask := ^uint64(0) >> (64 - 8*n)
	m[at/8] = m[at/8]&^(mask<<(8*(at%8))) | v&mask<<(8*(at%8))
}
