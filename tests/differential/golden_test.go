package differential

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"vplay/replay/x86"
)

// The results of a CPU for floating-point instructions, for machines that cannot
// ask one: replay on any of them must give the same bits. A line of
// testdata/float_*.golden is an instruction's bytes and hashes of what the CPU
// made of goldenCases states each. The states follow from the bytes, by
// what is in this file alone; TestGoldenOnCPU writes the files.

const (
	goldenGroups = 4
	goldenCases  = 32 // for each hash
)

// goldenFile is where the results of a vendor's CPU are.
func goldenFile(v x86.Vendor) string {
	if v == x86.VendorAMD {
		return "testdata/float_amd.golden"
	}
	return "testdata/float_intel.golden"
}

// TestFloatGolden compares the emulator with what the CPU did. Where a line
// differs, TestRowsAgainstCPU on such a CPU shows in what.
func TestFloatGolden(t *testing.T) {
	for _, id := range []*x86.CPUIdentity{intel, zen3} {
		t.Run(goldenFile(id.Vendor), func(t *testing.T) { checkGolden(t, id) })
	}
}

// checkGolden compares the emulator with the file of id's vendor.
func checkGolden(t *testing.T, id *x86.CPUIdentity) {
	e := NewEmulator(id)
	lines := readGolden(t, goldenFile(id.Vendor))
	rows := map[uint16]bool{}
	for _, line := range lines {
		if in, err := x86.DecodeInst(line.code, CodeBase, id); err == nil {
			rows[in.Row] = true
		}
		for g, want := range line.want {
			var l []Outcome
			for _, k := range goldenStates(line.code, g) {
				l = append(l, e.Run(k))
			}
			if got := goldenHash(l); got != want {
				t.Errorf("%x # %s: states %d to %d: got %s, want %s", line.code, line.name, g*goldenCases, (g+1)*goldenCases-1, got, want)
			}
		}
	}
	t.Logf("%d cases, %d instructions of %d rows", len(lines)*goldenGroups*goldenCases, len(lines), len(rows))
}

// goldenLine is a line of the file.
type goldenLine struct {
	code []byte
	name string
	want [goldenGroups]string
}

func readGolden(t *testing.T, file string) (l []goldenLine) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		code, err := hex.DecodeString(f[0])
		if err != nil || len(f) < 3+goldenGroups {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
		g := goldenLine{code: code, name: f[2+goldenGroups]}
		copy(g.want[:], f[1:])
		l = append(l, g)
	}
	return l
}

// goldenHash is over all that is computed: registers, flags, control and
// status words, memory, the exception; not the x87 pointers.
func goldenHash(l []Outcome) string {
	h := fnv.New32a()
	var b []byte
	u := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	for i := range l {
		o := &l[i]
		b = b[:0]
		for i := range o.Out.R {
			u(o.Out.R[i])
			for _, q := range o.Out.V[i] {
				u(q)
			}
		}
		u(o.Out.Flags)
		u(uint64(o.Out.MXCSR))
		f := &o.Out.FPU
		for _, r := range f.R {
			u(r.M)
			u(uint64(r.E))
		}
		u(uint64(f.CW))
		u(uint64(f.Status()))
		u(uint64(f.Tag))
		u(uint64(o.Trap.Vector))
		for _, c := range o.Changed {
			u(c.Addr)
			b = append(b, c.Bytes...)
		}
		_, _ = h.Write(b) // never fails
	}
	return fmt.Sprintf("%08x", h.Sum32())
}

// goldenStates makes the cases of a group.
func goldenStates(code []byte, group int) []*Case {
	h := fnv.New64a()
	_, _ = h.Write(code) // never fails
	r := newRandom(h.Sum64(), uint64(group))
	var l []*Case
	for range goldenCases {
		k := &Case{Row: -1, Code: code, Offset: 0x800, Steps: 1, In: DefaultRegs()}
		k.In.RIP = CodeBase + uint64(k.Offset)
		width := 32 << r.IntN(2)
		for i := range k.In.V {
			k.In.R[i] = goldenInt(r)
			for j := range k.In.V[i] {
				k.In.V[i][j] = goldenLane(r, width)
			}
		}
		k.In.R[x86.RSP] = defaultStack
		k.In.R[x86.RSI] = DataBase + 0x800
		mem := make([]byte, 0, 64)
		for range 8 {
			mem = appendLE(mem, goldenLane(r, width), 8)
		}
		if r.IntN(2) == 0 {
			v := goldenF80(r)
			appendLE(appendLE(mem[:0], v.M, 8), uint64(v.E), 2)
		}
		k.Patches = []Patch{{DataBase + 0x800, mem}}
		k.In.MXCSR = 0x1f80 | r.Uint32()&0xe07f
		k.In.FPU.CW = 0x7f | uint16(r.IntN(16))<<8
		if r.IntN(8) == 0 {
			k.In.MXCSR ^= r.Uint32() & 0x1f80
			k.In.FPU.CW ^= uint16(r.IntN(64))
		}
		for i := range k.In.FPU.R {
			k.In.FPU.R[i] = goldenF80(r)
		}
		k.In.FPU.Tag = 0xff
		if r.IntN(4) == 0 {
			k.In.FPU.Tag = uint8(r.Uint32())
		}
		k.In.FPU.SetStatus(uint16(r.Uint32()) & 0x7f00)
		l = append(l, k)
	}
	return l
}

// goldenLane is two floats, a double, or integers.
func goldenLane(r *random, width int) uint64 {
	switch {
	case r.IntN(8) == 0:
		return goldenInt(r)
	case width == 32:
		return goldenFloat(r, 23, 8) | goldenFloat(r, 23, 8)<<32
	}
	return goldenFloat(r, 52, 11)
}

// goldenInt is an integer of any length and sign.
func goldenInt(r *random) uint64 {
	n := r.IntN(64)
	return uint64(int64(r.Uint64()<<n) >> n)
}

// goldenFloat is a number of a binary format: zeros, denormals, infinities, quiet
// and signalling NaNs, powers of two and their neighbours, integers and halves,
// numbers near one and near the limits, anything.
func goldenFloat(r *random, frac, exp int) uint64 {
	bias := uint64(1)<<(exp-1) - 1
	mask := uint64(1)<<frac - 1
	sign := uint64(r.IntN(2)) << (frac + exp)
	m := r.Uint64() & mask
	switch r.IntN(12) {
	case 0:
		return sign
	case 1:
		return sign | m>>r.IntN(frac) // denormal
	case 2:
		return sign | (2*bias+1)<<frac // infinity
	case 3:
		return sign | (2*bias+1)<<frac | m | 1 // NaN
	case 4:
		return (sign | (bias-8+uint64(r.IntN(40)))<<frac) + uint64(r.IntN(3)) - 1
	case 5: // integers and halves
		v := float64(int32(r.Uint32())>>r.IntN(31)) / 2
		if frac == 52 {
			return math.Float64bits(v)
		}
		return uint64(math.Float32bits(float32(v)))
	case 6:
		return sign | uint64(1+r.IntN(4))<<frac | m // small
	case 7:
		return sign | (2*bias-uint64(r.IntN(4)))<<frac | m // large
	case 8:
		return r.Uint64() & (1<<(frac+exp+1) - 1)
	}
	return sign | (bias-uint64(frac)+uint64(r.IntN(2*frac)))<<frac | m
}

// goldenF80 is an extended number, seldom one that the CPU does not know.
func goldenF80(r *random) x86.F80 {
	v := goldenFloat(r, 52, 11)
	e, m := v>>52&0x7ff, v<<11|r.Uint64()&0x7ff*uint64(r.IntN(2))
	f := x86.F80{M: m | 1<<63, E: uint16(v >> 63 << 15)}
	switch {
	case e == 0x7ff:
		f.E |= 0x7fff
		if v<<12 == 0 {
			f.M = 1 << 63
		}
	case e == 0:
		f.M = v << 12 >> 1
	case r.IntN(4) == 0: // beyond the range of doubles
		f.E |= uint16(1 + r.IntN(0x7ffd))
	default:
		f.E |= uint16(e) + 0x3fff - 0x3ff
	}
	if r.IntN(32) == 0 {
		f.M ^= 1 << 63
	}
	return f
}

// goldenCode returns encodings of the row that goldenStates gives operands:
// registers or [rsi], and both lengths of vectors.
func goldenCode(row *x86.Row, index int, v x86.Vendor) [][]byte {
	if !isFloat(row) || approximate[row.Mnemonic] || WhyNotRun(row) != "" {
		return nil
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(row.Mnemonic + row.Encoding.Text)) // never fails
	e := encoder{newRandom(1, h.Sum64()), v}
	var l [][]byte
	seen := map[string]bool{}
	for range 3000 {
		in := e.encode(row)
		if in.lock || in.seg != 0 || in.addr32 || in.rep != 0 && row.Encoding.Prefix == x86.PrefixAny {
			continue
		}
		if in.mem && (in.ripRelative || in.absolute || in.index >= 0 || in.base != x86.RSI || in.disp != 0) {
			continue
		}
		d, err := x86.DecodeInst(in.bytes, CodeBase, &x86.CPUIdentity{Vendor: v})
		if err != nil || int(d.Row) != index || d.Reg == x86.RSP && len(row.Operands) > 0 && strings.HasPrefix(row.Operands[0], "r") {
			continue
		}
		form := fmt.Sprint(in.mem, d.Flags&x86.InstL, d.Flags&x86.InstW != 0 && row.Encoding.W < 0 && strings.Contains(row.Mnemonic, "SI"))
		if !seen[form] {
			seen[form] = true
			l = append(l, slices.Clone(in.bytes))
		}
	}
	return l
}

// isFloat says whether a row computes with floating-point numbers.
func isFloat(row *x86.Row) bool {
	switch row.File {
	case "x87", "fma":
		return true
	case "sse", "sse2", "sse3", "sse4", "avx":
	default:
		return false
	}
	m := strings.TrimPrefix(row.Mnemonic, "V")
	for _, p := range []string{"ADD", "SUB", "MUL", "DIV", "SQRT", "MIN", "MAX", "CMP", "COMI", "UCOMI", "CVT", "ROUND", "DP", "RCP", "RSQRT", "HADD", "HSUB"} {
		if rest, ok := strings.CutPrefix(m, p); ok && (strings.HasPrefix(p, "C") || strings.HasPrefix(p, "UC") ||
			slices.Contains([]string{"PS", "PD", "SS", "SD", "SUBPS", "SUBPD"}, rest)) {
			return true
		}
	}
	return false
}
