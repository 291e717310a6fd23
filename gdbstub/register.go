package gdbstub

import (
	"embed"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"strings"
	"sync"

	"vplay/dwarf/agentexpr"
	"vplay/replay/debug/api"
)

// The registers as the target description lists them: their numbers, sizes and order,
// and where package api's Registers has them (gdb manual, appendix "Target
// Descriptions"; the files in features are gdb's). Agent expressions ask for registers
// here, too. The packets are in regs.go and write.go.

// Indexes of Registers.GPR that the stub names.
const (
	gprRSP = 4
	gprRBP = 5
)

// regDesc is one register of the target description.
type regDesc struct {
	name  string
	num   int // number in p, P, T and agent expressions
	size  int // bytes
	group api.Features
	index int // within its array
	kind  regKind
}

// regKind selects the field of Registers.
type regKind uint8

const (
	kindGPR regKind = iota
	kindRIP
	kindFlags
	kindSeg
	kindST
	kindX87
	kindXMM
	kindMXCSR
	kindOrigRAX
	kindBase
	kindYMMH
	kindMask
	kindZMMH
)

//go:embed features/*.xml
var featureFiles embed.FS

// featureTable lists the parts of a description in gdbserver's order.
var featureTable = []struct {
	file  string
	group api.Features // 0: always served
}{
	{"64bit-core.xml", 0},
	{"64bit-sse.xml", api.FeatureSSE},
	{"64bit-linux.xml", api.FeatureOrigRAX},
	{"64bit-segments.xml", api.FeatureFSGS},
	{"64bit-avx.xml", api.FeatureAVX},
	{"64bit-avx512.xml", api.FeatureAVX512},
}

// description is what a set of features amounts to: the target.xml and the
// registers in the order of the g packet. It is immutable.
type description struct {
	xml   []byte
	files []string // the feature files that xml is made of
	regs  []regDesc
	byNum map[int]*regDesc
}

// allFeatures are the register groups that the stub knows.
const allFeatures = api.FeatureX87 | api.FeatureSSE | api.FeatureAVX | api.FeatureAVX512 | api.FeatureOrigRAX | api.FeatureFSGS

// descriptions caches one *description per Features.
var descriptions sync.Map

// describe returns the description for a set of features. SSE is always part
// of it: gdb takes no x86-64 description without.
func describe(f api.Features) *description {
	f |= api.FeatureSSE
	f &= allFeatures
	if d, ok := descriptions.Load(f); ok {
		return d.(*description)
	}
	d, err := buildDescription(f)
	if err != nil { // the files are part of the program
		panic("gdbstub: broken feature file: " + err.Error())
	}
	descriptions.Store(f, d)
	return d
}

// buildDescription joins the feature files that f asks for.
func buildDescription(f api.Features) (*description, error) {
	d := &description{byNum: map[int]*regDesc{}}
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n" +
		"<target>\n<architecture>i386:x86-64</architecture>\n<osabi>GNU/Linux</osabi>\n")
	for _, part := range featureTable {
		if part.group != 0 && f&part.group == 0 {
			continue
		}
		text, err := featureFiles.ReadFile("features/" + part.file)
		if err != nil {
			return nil, err
		}
		b.Write(text)
		d.files = append(d.files, part.file)
		if err := d.addFile(part.file, text, part.group); err != nil {
			return nil, err
		}
	}
	b.WriteString("</target>\n")
	d.xml = []byte(b.String())
	for i := range d.regs {
		d.byNum[d.regs[i].num] = &d.regs[i]
	}
	return d, nil
}

// addFile reads the registers of one feature file.
func (d *description) addFile(name string, text []byte, group api.Features) error {
	var feature struct {
		Regs []struct {
			Name    string `xml:"name,attr"`
			Bitsize int    `xml:"bitsize,attr"`
			Regnum  int    `xml:"regnum,attr"`
		} `xml:"reg"`
	}
	if err := xml.Unmarshal(text, &feature); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, r := range feature.Regs {
		desc := regDesc{name: r.Name, num: r.Regnum, size: r.Bitsize / 8, group: group}
		if !desc.locate() {
			return fmt.Errorf("%s: no register %s", name, r.Name)
		}
		d.regs = append(d.regs, desc)
	}
	return nil
}

// Registers by name, in the order of the arrays of Registers.
var (
	gprNames = []string{
		"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
		"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
	}
	segNames    = []string{"es", "cs", "ss", "ds", "fs", "gs"}
	x87Names    = []string{"fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"}
	baseNames   = []string{"fs_base", "gs_base"}
	singleNames = map[string]regKind{"rip": kindRIP, "eflags": kindFlags, "mxcsr": kindMXCSR, "orig_rax": kindOrigRAX}
)

// locate finds the field of Registers by the register's name.
func (r *regDesc) locate() bool {
	for _, l := range []struct {
		names []string
		kind  regKind
	}{{gprNames, kindGPR}, {segNames, kindSeg}, {x87Names, kindX87}, {baseNames, kindBase}} {
		for i, n := range l.names {
			if n == r.name {
				r.kind, r.index = l.kind, i
				if l.kind == kindX87 {
					r.group = api.FeatureX87
				}
				return true
			}
		}
	}
	if k, ok := singleNames[r.name]; ok {
		r.kind = k
		return true
	}
	return r.locateNumbered()
}

// locateNumbered finds st0…7, xmm0…31, ymm0h…31h, zmm0h…31h and k0…7.
func (r *regDesc) locateNumbered() bool {
	for _, l := range []struct {
		format string
		count  int
		kind   regKind
	}{{"st%d", 8, kindST}, {"xmm%d", 32, kindXMM}, {"ymm%dh", 32, kindYMMH}, {"zmm%dh", 32, kindZMMH}, {"k%d", 8, kindMask}} {
		for i := range l.count {
			if fmt.Sprintf(l.format, i) == r.name {
				r.kind, r.index = l.kind, i
				if l.kind == kindST {
					r.group = api.FeatureX87
				}
				return true
			}
		}
	}
	return false
}

// appendValue appends the register's bytes, little-endian, r.size of them.
func (r *regDesc) appendValue(dst []byte, v *api.Registers) []byte {
	le := binary.LittleEndian
	switch r.kind {
	case kindST:
		return append(dst, v.ST[r.index][:]...)
	case kindXMM, kindYMMH, kindZMMH:
		for _, q := range r.vector(v) {
			dst = le.AppendUint64(dst, *q)
		}
		return dst
	default:
		x := r.integer(v)
		if r.size == 4 {
			return le.AppendUint32(dst, uint32(x))
		}
		return le.AppendUint64(dst, x)
	}
}

// vector returns the quadwords of a part of a vector register.
func (r *regDesc) vector(v *api.Registers) []*uint64 {
	first, count := map[regKind]int{kindXMM: 0, kindYMMH: 2, kindZMMH: 4}[r.kind], r.size/8
	var l []*uint64
	for i := first; i < first+count; i++ {
		switch {
		case r.index >= 16:
			l = append(l, &v.More[r.index-16][i])
		case i < 4:
			l = append(l, &v.YMM[r.index][i])
		default:
			l = append(l, &v.High[r.index][i-4])
		}
	}
	return l
}

// integer returns the value of a register of at most 64 bits.
func (r *regDesc) integer(v *api.Registers) uint64 {
	switch r.kind {
	case kindGPR:
		return v.GPR[r.index]
	case kindRIP:
		return v.RIP
	case kindFlags:
		return v.EFLAGS
	case kindSeg:
		return uint64(v.Seg[r.index])
	case kindX87:
		return x87Control(v, r.index)
	case kindMXCSR:
		return uint64(v.MXCSR)
	case kindOrigRAX:
		return v.OrigRAX
	case kindBase:
		return [2]uint64{v.FSBase, v.GSBase}[r.index]
	case kindMask:
		return v.K[r.index]
	case kindXMM, kindYMMH, kindZMMH:
		return *r.vector(v)[0]
	default: // kindST: the mantissa
		return binary.LittleEndian.Uint64(v.ST[r.index][:8])
	}
}

// x87Control returns the control registers in the order of x87Names. FIP and FDP
// split into offset and selector as gdb shows a 32-bit FXSAVE.
func x87Control(v *api.Registers, i int) uint64 {
	return [8]uint64{
		uint64(v.FCW), uint64(v.FSW), uint64(v.FTW),
		v.FIP >> 32 & 0xffff, v.FIP & 0xffffffff,
		v.FDP >> 32 & 0xffff, v.FDP & 0xffffffff,
		uint64(v.FOP),
	}[i]
}

// known reports whether the register's value is in v.
func (r *regDesc) known(v *api.Registers) bool { return v.Missing&r.group == 0 }

// appendHex appends the register in hex, or x digits if it is not known.
func (r *regDesc) appendHex(dst []byte, v *api.Registers) []byte {
	if !r.known(v) {
		for range 2 * r.size {
			dst = append(dst, 'x')
		}
		return dst
	}
	var buf [32]byte
	return appendHexBytes(dst, r.appendValue(buf[:0], v))
}

// allRegisters describes every register the stub can show.
var allRegisters = sync.OnceValue(func() *description {
	return describe(allFeatures)
})

// registerValue returns register num of the target description, as agent expressions
// ask for it; for registers above 64 bits the low ones. It reports false for a
// number that is not described or whose value is missing.
func registerValue(v *api.Registers, num int) (uint64, bool) {
	r := allRegisters().byNum[num]
	if r == nil || !r.known(v) {
		return 0, false
	}
	return r.integer(v), true
}

// agentRegister returns a register, other than a general one, of the machine that an agent expression is evaluated for.
func agentRegister(m agentexpr.Machine, num int) (uint64, bool) {
	return registerValue(m.(api.Machine).Registers(), num)
}
