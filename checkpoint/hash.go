package checkpoint

import "math/bits"

// The two hashes by which replay is compared with the recording: one of a thread's
// registers and one of memory. They are part of the format (FORMAT.md), so what they
// return must not change. The content address of a page is another hash, in store.go.

// HashRegs folds the registers that every sync point compares: the 16 general
// registers, rip, rflags and the fs and gs base. RF and reserved bits of
// rflags do not take part.
func HashRegs(r *Regs) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, v := range r.R {
		h = mix(h, v)
	}
	h = mix(h, r.RIP)
	h = mix(h, r.RFLAGS&FlagsMask)
	h = mix(h, r.FSBase)
	return mix(h, r.GSBase)
}

// FlagsMask is the part of rflags that takes part in comparisons: CF PF AF ZF SF DF OF NT AC ID: what user mode can read and
// set. TF and RF belong to the tracer, IF and IOPL to the kernel.
const FlagsMask = 1<<0 | 1<<2 | 1<<4 | 1<<6 | 1<<7 | 1<<10 | 1<<11 | 1<<14 | 1<<18 | 1<<21

func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v, 0xd6e8feb86659fd93)
	return bits.RotateLeft64(hi^lo, 29) + v
}

// HashWord is the additive hash's share of one aligned 8-byte word: f(a, v)
// with f(a, 0) = 0, so that absent and zero memory weigh nothing. The hash of
// a memory is the sum over all its words, modulo 2^64.
func HashWord(addr, v uint64) uint64 {
	if v == 0 {
		return 0
	}
	hi, lo := bits.Mul64(v^0x9e3779b97f4a7c15, addr|1)
	hi2, lo2 := bits.Mul64(lo^addr, 0xd6e8feb86659fd93)
	return (hi ^ hi2 ^ lo2) * (v | 1)
}

// HashPage is the sum of HashWord over a page at addr. page has PageSize bytes.
func HashPage(addr uint64, page []byte) uint64 {
	var sum uint64
	const line = 64 // bytes looked at together: most of memory is zeros
	for ; len(page) >= line; addr, page = addr+line, page[line:] {
		p := page[:line:line]
		if le64(p)|le64(p[8:])|le64(p[16:])|le64(p[24:])|le64(p[32:])|le64(p[40:])|le64(p[48:])|le64(p[56:]) == 0 {
			continue
		}
		for i := uint64(0); i < line; i += 8 {
			sum += HashWord(addr+i, le64(p[i:]))
		}
	}
	return sum
}

// HashPages is the sum of HashPage over n pages from addr on that have the same content.
func HashPages(addr, n uint64, page []byte) uint64 {
	if n == 1 {
		return HashPage(addr, page)
	}
	var at, words [PageSize / 8]uint64 // those that are not zero
	k := 0
	for i := 0; i < PageSize; i += 8 {
		if v := le64(page[i:]); v != 0 {
			at[k], words[k] = uint64(i), v
			k++
		}
	}
	var sum uint64
	for ; n > 0; n-- {
		for i, v := range words[:k] {
			sum += HashWord(addr+at[i], v)
		}
		addr += PageSize
	}
	return sum
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
