package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// row is one parsed line.
type row struct {
	mnemonic, encText, cpuid, handler, file string
	operands                                []string
	dirs                                    []string // Go expressions, one for each operand
	implied                                 []struct{ what, dir string }
	enc                                     encoding
	reads, writes, undef                    uint64
	attrs                                   []string
	flags                                   []string // InstFlags names
}

// encoding mirrors x86.Encoding.
type encoding struct {
	opmap, opcode int
	plusR, modrm  bool
	prefix        string
	w, digit, l   int
	mod           string
	second        int
	plusI         bool
	imm           string
	vex, vvvv     bool
	evex, xop     bool
}

var flagBits = map[rune]uint64{'O': 0x800, 'S': 0x80, 'Z': 0x40, 'A': 0x10, 'P': 4, 'C': 1}

var immKinds = map[string]string{
	"ib": "ImmB", "cb": "ImmB", "iw": "ImmW", "id": "ImmD", "cd": "ImmD", "iz": "ImmZ", "cz": "ImmZ",
	"iv": "ImmV", "io": "ImmV", "iwib": "ImmWB", "moffs": "ImmMoffs", "is4": "ImmIs4",
}

var prefixes = map[string]string{"NP": "PrefixNP", "66": "Prefix66", "F3": "PrefixF3", "F2": "PrefixF2"}

// parseRow parses a line of the table.
func parseRow(line string) (*row, error) {
	f := strings.Split(line, "|")
	if len(f) != 8 {
		return nil, fmt.Errorf("%d fields, want 8", len(f))
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	r := &row{mnemonic: f[0], encText: strings.Join(strings.Fields(f[1]), " "), cpuid: f[5], handler: f[6]}
	if r.cpuid == "-" {
		r.cpuid = ""
	}
	for _, o := range strings.Split(f[2], ",") {
		if o = strings.TrimSpace(o); o != "" && o != "-" {
			r.operands = append(r.operands, o)
		}
	}
	if err := r.parseEncoding(f[1]); err != nil {
		return nil, err
	}
	if err := r.parseAttrs(f[7]); err != nil {
		return nil, err
	}
	if r.enc.evex && slices.Contains(r.attrs, "refuse") {
		r.enc.vvvv = true // whatever the form
	}
	return r, r.parseDirections(f[3], f[4])
}

// directions are the Go expressions of the directions.
var directions = map[string]string{"-": "0", "r": "DirRead", "w": "DirWrite", "rw": "DirRead | DirWrite", "a": "DirAddress"}

// impliedNames are what an instruction may use without naming it.
var impliedNames = strings.Fields("rax rcx rdx rbx rsp rbp rsi rdi r11 xmm0 vec st x87 mxcsr flags df nt mem seg fsbase gsbase")

// parseDirections parses the directions of operands and the implied ones.
func (r *row) parseDirections(dirs, implied string) error {
	for _, d := range strings.Split(dirs, ",") {
		if d = strings.TrimSpace(d); d == "" {
			continue
		}
		if directions[d] == "" {
			return fmt.Errorf("direction %q", d)
		}
		r.dirs = append(r.dirs, directions[d])
	}
	if refused := slices.Contains(r.attrs, "refuse"); !refused && len(r.dirs) != len(r.operands) || refused && len(r.dirs) > 0 {
		return fmt.Errorf("%d directions of %d operands", len(r.dirs), len(r.operands))
	}
	for _, f := range strings.Fields(implied) {
		what, d, _ := strings.Cut(f, "=")
		if !slices.Contains(impliedNames, what) || d == "a" || d == "-" || directions[d] == "" {
			return fmt.Errorf("implied %q", f)
		}
		r.implied = append(r.implied, struct{ what, dir string }{what, directions[d]})
	}
	return nil
}

func (r *row) parseAttrs(s string) error {
	for _, a := range strings.Fields(s) {
		if len(a) > 2 && a[1] == '=' {
			var v uint64
			for _, c := range a[2:] {
				b, ok := flagBits[c]
				if !ok {
					return fmt.Errorf("attribute %q", a)
				}
				v |= b
			}
			switch a[0] {
			case 'r':
				r.reads = v
			case 'w':
				r.writes = v
			case 'u':
				r.undef = v
			default:
				return fmt.Errorf("attribute %q", a)
			}
			continue
		}
		r.attrs = append(r.attrs, a)
		switch a {
		case "lock":
			r.flags = append(r.flags, "instLockable")
		case "d64":
			r.flags = append(r.flags, "instDefault64")
		case "f64":
			r.flags = append(r.flags, "instForce64")
		case "modreg":
			r.flags = append(r.flags, "instModReg")
		case "amd16":
			r.flags = append(r.flags, "instAMD16")
		case "amdimm":
			r.flags = append(r.flags, "instAMDImm")
		case "intelmodrm":
			r.flags = append(r.flags, "instIntelModRM")
		case "vsib":
			r.flags = append(r.flags, "instVSIB")
		case "end":
			r.flags = append(r.flags, "InstEnd")
		case "stop":
			r.flags = append(r.flags, "instStop")
		}
	}
	return nil
}

// parseEncoding parses the encoding field.
func (r *row) parseEncoding(s string) error {
	e := &r.enc
	e.w, e.digit, e.l, e.second = -1, -1, -1, -1
	e.prefix, e.mod, e.imm = "PrefixAny", "ModAny", "ImmNone"
	var opc []int
	for i, t := range strings.Fields(s) {
		switch {
		case i == 0 && prefixes[t] != "":
			e.prefix = prefixes[t]
		case strings.HasPrefix(t, "VEX."):
			e.vex = true
			if err := e.parseVEX(t[4:]); err != nil {
				return err
			}
		case strings.HasPrefix(t, "EVEX."):
			e.evex = true
			if err := e.parseVEX(t[5:]); err != nil {
				return err
			}
		case strings.HasPrefix(t, "XOP."):
			e.xop = true
			if err := e.parseVEX(t[4:]); err != nil {
				return err
			}
		case t == "REX.W":
			e.w = 1
		case t == "W0":
			e.w = 0
		case t == "/r":
			e.modrm = true
		case len(t) == 2 && t[0] == '/' && t[1] >= '0' && t[1] <= '7':
			e.modrm, e.digit = true, int(t[1]-'0')
		case t == "m":
			e.mod = "ModMem"
		case t == "r":
			e.mod = "ModReg"
		case t == "+r":
			e.plusR = true
		case immKinds[t] != "":
			e.imm = immKinds[t]
		default:
			v, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSuffix(t, "+i"), "+r"), 16, 8)
			if err != nil {
				return fmt.Errorf("encoding token %q", t)
			}
			e.plusI = e.plusI || strings.HasSuffix(t, "+i")
			e.plusR = e.plusR || strings.HasSuffix(t, "+r")
			opc = append(opc, int(v))
		}
	}
	return e.setOpcode(opc)
}

// setOpcode sorts the opcode bytes into map, opcode and fixed second byte.
func (e *encoding) setOpcode(opc []int) error {
	if e.opmap == 0 && len(opc) > 1 && opc[0] == 0x0f {
		e.opmap = 1
		opc = opc[1:]
		if len(opc) > 1 && (opc[0] == 0x38 || opc[0] == 0x3a) {
			e.opmap = 2 + (opc[0]-0x38)/2
			opc = opc[1:]
		}
	}
	switch len(opc) {
	case 2:
		e.second, e.modrm = opc[1], true
		fallthrough
	case 1:
		e.opcode = opc[0]
		return nil
	}
	return fmt.Errorf("%d opcode bytes", len(opc))
}

// parseVEX parses what follows "VEX.", "EVEX." or "XOP.".
func (e *encoding) parseVEX(s string) error {
	e.prefix = "PrefixNP"
	for _, t := range strings.Split(s, ".") {
		switch t {
		case "128", "LZ", "L0":
			e.l = 0
		case "256", "L1":
			e.l = 1
		case "LIG", "WIG":
		case "W0":
			e.w = 0
		case "W1":
			e.w = 1
		case "NDS", "NDD", "DDS":
			e.vvvv = true
		case "0F":
			e.opmap = 1
		case "0F38":
			e.opmap = 2
		case "0F3A":
			e.opmap = 3
		case "MAP5", "MAP6":
			e.opmap = int(t[3] - '0')
		case "MAP8", "MAP9", "MAPA":
			e.opmap = strings.IndexByte("89A", t[3])
		default:
			if prefixes[t] == "" {
				return fmt.Errorf("VEX field %q", t)
			}
			e.prefix = prefixes[t]
		}
	}
	return nil
}

// opSize returns the size of an operand in bytes, 0 for "by prefix", -1 for none.
func opSize(o string) int {
	switch o {
	case "rm8", "r8", "m8", "al", "moffs8":
		return 1
	case "rm16", "r16", "m16", "ax", "sreg":
		return 2
	case "rm32", "r32", "m32", "eax":
		return 4
	case "rm64", "r64", "m64", "rax":
		return 8
	case "rmv", "rv", "mv", "rax_v", "moffs", "immv":
		return 0
	case "rmy", "ry", "my":
		return 0
	}
	return -1
}

func (r *row) size() int {
	for _, o := range r.operands {
		if s := opSize(o); s >= 0 {
			return s
		}
	}
	return 0
}

// form returns the name of the operand shape.
func (r *row) form() string {
	kind := func(i int) byte {
		if i >= len(r.operands) {
			return '-'
		}
		o := r.operands[i]
		switch {
		case strings.HasPrefix(o, "rm") || strings.HasPrefix(o, "m") && !strings.HasPrefix(o, "mm"):
			return 'm'
		case o == "al" || o == "eax" || o == "rax_v":
			return 'm'
		case strings.HasPrefix(o, "imm"):
			return 'i'
		case len(o) > 1 && o[0] == 'r' && !strings.HasPrefix(o, "rel"):
			return 'r'
		}
		return '-'
	}
	switch string([]byte{kind(0), kind(1)}) {
	case "mr":
		return "formRMReg"
	case "rm":
		return "formRegRM"
	case "mi":
		return "formRMImm"
	case "m-":
		return "formRM"
	case "r-", "ri":
		return "formReg"
	}
	return "formNone"
}

// write prints the row as a Go literal.
func (r *row) write(w *bytes.Buffer) {
	e := &r.enc
	fmt.Fprintf(w, "{Mnemonic: %q, Encoding: Encoding{Text: %q, Map: %d, Opcode: 0x%02x, W: %d, Digit: %d, Second: %d, L: %d",
		r.mnemonic, r.encText, e.opmap, e.opcode, e.w, e.digit, e.second, e.l)
	for _, f := range []struct {
		name string
		on   bool
	}{{"PlusR", e.plusR}, {"ModRM", e.modrm}, {"PlusI", e.plusI}, {"VEX", e.vex}, {"EVEX", e.evex}, {"XOP", e.xop}, {"VVVV", e.vvvv}} {
		if f.on {
			fmt.Fprintf(w, ", %s: true", f.name)
		}
	}
	fmt.Fprintf(w, ", Prefix: %s, Mod: %s, Imm: %s}", e.prefix, e.mod, e.imm)
	if len(r.operands) > 0 {
		fmt.Fprintf(w, ", Operands: %#v", r.operands)
	}
	if len(r.dirs) > 0 {
		fmt.Fprintf(w, ", Dirs: []Dir{%s}", strings.Join(r.dirs, ", "))
	}
	if len(r.implied) > 0 {
		fmt.Fprint(w, ", Implied: []Implied{")
		for _, i := range r.implied {
			fmt.Fprintf(w, "{%q, %s},", i.what, i.dir)
		}
		fmt.Fprint(w, "}")
	}
	fmt.Fprintf(w, ", CPUID: %q, Handler: %q, File: %q", r.cpuid, r.handler, r.file)
	if r.reads|r.writes|r.undef != 0 {
		fmt.Fprintf(w, ", Reads: %#x, Writes: %#x, Undef: %#x", r.reads, r.writes, r.undef)
	}
	if len(r.attrs) > 0 {
		fmt.Fprintf(w, ", Attrs: %#v", r.attrs)
	}
	for _, o := range r.operands {
		if o == "rmy" || o == "ry" || o == "my" {
			r.flags = append(r.flags, "instNo66")
			break
		}
	}
	flags := "0"
	if len(r.flags) > 0 {
		flags = strings.Join(r.flags, "|")
	}
	fmt.Fprintf(w, ", fn: %s, size: %d, flags: %s, form: %s},\n", r.handler, r.size(), flags, r.form())
}
