package differential

import (
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"vplay/checkpoint"
	"vplay/replay/x86"
)

// The text form of a case, one line:
//
//	48 01 d8 ; rax=1 rbx=2 flags=246 v3=1,2 [20001000]=00112233 => rax=3 rip=30000003
//
// Bytes in hexadecimal, then what differs from DefaultRegs, then, behind the
// arrow, what executing it changed. All numbers are hexadecimal. Names:
//
//	at        offset of the code from CodeBase        steps  instructions (default 1)
//	smc       1: the code may write itself
//	rax..r15  general registers                       flags fs gs mxcsr rip
//	v0..v15   vector register, quadwords, lowest first, zeros at the end left out
//	v16..v31  those of AVX-512                        h0..h15  bits 256 to 511 of v0..v15
//	k0..k7    mask registers
//	f0..f7    x87 register by physical number, exponent:significand
//	cw sw top tag fop fip fdp fcs fds                  x87 control
//	es cs ss ds fsel gsel                              selectors (only behind the arrow)
//	[ADDR]    sandbox bytes
//	trap      vector; for page faults vector:address:rwx (with p: protection)

var segNames = [6]string{"es", "cs", "ss", "ds", "fsel", "gsel"}

// field is one nameable part of Regs.
type field struct {
	name string
	get  func(r *Regs) string
	set  func(r *Regs, s string) error
}

func hexField[T uint8 | uint16 | uint32 | uint64](name string, p func(r *Regs) *T) field {
	return field{
		name,
		func(r *Regs) string { return strconv.FormatUint(uint64(*p(r)), 16) },
		func(r *Regs, s string) error {
			v, err := strconv.ParseUint(s, 16, 64)
			if err == nil && uint64(T(v)) != v {
				err = strconv.ErrRange
			}
			*p(r) = T(v)
			return err
		},
	}
}

var fields = makeFields()

func makeFields() []field {
	var l []field
	for i, n := range checkpoint.RegNames {
		l = append(l, hexField(n, func(r *Regs) *uint64 { return &r.R[i] }))
	}
	l = append(l,
		hexField("rip", func(r *Regs) *uint64 { return &r.RIP }),
		hexField("flags", func(r *Regs) *uint64 { return &r.Flags }),
		hexField("fs", func(r *Regs) *uint64 { return &r.FSBase }),
		hexField("gs", func(r *Regs) *uint64 { return &r.GSBase }),
		hexField("mxcsr", func(r *Regs) *uint32 { return &r.MXCSR }),
		hexField("cw", func(r *Regs) *uint16 { return &r.FPU.CW }),
		hexField("sw", func(r *Regs) *uint16 { return &r.FPU.SW }),
		hexField("top", func(r *Regs) *uint8 { return &r.FPU.Top }),
		hexField("tag", func(r *Regs) *uint8 { return &r.FPU.Tag }),
		hexField("fop", func(r *Regs) *uint16 { return &r.FPU.FOP }),
		hexField("fip", func(r *Regs) *uint64 { return &r.FPU.FIP }),
		hexField("fdp", func(r *Regs) *uint64 { return &r.FPU.FDP }),
		hexField("fcs", func(r *Regs) *uint16 { return &r.FPU.FCS }),
		hexField("fds", func(r *Regs) *uint16 { return &r.FPU.FDS }))
	for i, n := range segNames {
		l = append(l, hexField(n, func(r *Regs) *uint16 { return &r.Seg[i] }))
	}
	for i := range 8 {
		l = append(l, field{
			"f" + strconv.Itoa(i),
			func(r *Regs) string { return fmt.Sprintf("%04x:%016x", r.FPU.R[i].E, r.FPU.R[i].M) },
			func(r *Regs, s string) error {
				e, m, _ := strings.Cut(s, ":")
				ev, err := strconv.ParseUint(e, 16, 16)
				if err != nil {
					return err
				}
				mv, err := strconv.ParseUint(m, 16, 64)
				r.FPU.R[i] = x86.F80{M: mv, E: uint16(ev)}
				return err
			},
		})
	}
	l = append(l, wideFields()...)
	for i := range 16 {
		l = append(l, field{
			"v" + strconv.Itoa(i),
			func(r *Regs) string { return formatVec(r.V[i][:]) },
			func(r *Regs, s string) error { return parseVec(s, r.V[i][:]) },
		})
	}
	return l
}

// wideFields are what AVX-512 adds.
func wideFields() (l []field) {
	for i := range 8 {
		l = append(l, hexField("k"+strconv.Itoa(i), func(r *Regs) *uint64 { return &r.Wide.K[i] }))
	}
	for i := range 16 {
		l = append(l,
			quadsField("h"+strconv.Itoa(i), func(r *Regs) []uint64 { return r.Wide.High[i][:] }),
			quadsField("v"+strconv.Itoa(16+i), func(r *Regs) []uint64 { return r.Wide.More[i][:] }))
	}
	return l
}

func quadsField(name string, of func(r *Regs) []uint64) field {
	return field{
		name,
		func(r *Regs) string { return formatVec(of(r)) },
		func(r *Regs, s string) error {
			defer r.Wide.Look()
			return parseVec(s, of(r))
		},
	}
}

func formatVec(v []uint64) string {
	n := len(v)
	for n > 1 && v[n-1] == 0 {
		n--
	}
	w := make([]string, n)
	for i := range w {
		w[i] = fmt.Sprintf("%016x", v[i])
	}
	return strings.Join(w, ",")
}

func parseVec(s string, v []uint64) (err error) {
	w := strings.Split(s, ",")
	if len(w) > len(v) {
		return strconv.ErrRange
	}
	clear(v)
	for i := range w {
		if v[i], err = strconv.ParseUint(w[i], 16, 64); err != nil {
			return err
		}
	}
	return nil
}

// regsDiff lists the fields in which b differs from a, with b's values.
func regsDiff(a, b *Regs) []string {
	var l []string
	for i := range fields {
		if s := fields[i].get(b); s != fields[i].get(a) {
			l = append(l, fields[i].name+"="+s)
		}
	}
	return l
}

// String is the text form of the case without an outcome.
func (k *Case) String() string {
	l := []string{hexBytes(k.Code), ";"}
	if k.Offset != 0 {
		l = append(l, fmt.Sprintf("at=%x", k.Offset))
	}
	if k.Steps != 1 {
		l = append(l, fmt.Sprintf("steps=%x", k.Steps))
	}
	if k.WritableCode {
		l = append(l, "smc=1")
	}
	d := DefaultRegs()
	d.RIP = k.In.RIP
	l = append(l, regsDiff(&d, &k.In)...)
	for _, p := range k.Patches {
		l = append(l, fmt.Sprintf("[%x]=%x", p.Addr, p.Bytes))
	}
	return strings.Join(l, " ")
}

func hexBytes(b []byte) string {
	l := make([]string, len(b))
	for i := range b {
		l[i] = hex.EncodeToString(b[i : i+1])
	}
	return strings.Join(l, " ")
}

// Line is the text form of the case with an outcome behind the arrow.
func (k *Case) Line(o *Outcome) string { return k.String() + " => " + o.text(&k.In) }

// text is the part behind the arrow; in is the state before.
func (o *Outcome) text(in *Regs) string {
	if o.Problem != "" {
		return o.Problem
	}
	l := regsDiff(in, &o.Out)
	for _, r := range o.Changed {
		l = append(l, fmt.Sprintf("[%x]=%x", r.Addr, r.Bytes))
	}
	if o.Trap.Taken {
		l = append(l, "trap="+o.Trap.String())
	}
	return strings.Join(l, " ")
}

// String is the vector in hexadecimal, and for a page fault where and why.
func (t Trap) String() string {
	if !t.Taken {
		return "none"
	}
	if t.Vector != trapPF {
		return strconv.FormatUint(uint64(t.Vector), 16)
	}
	kind := "r"
	if t.Write {
		kind = "w"
	}
	if t.Fetch {
		kind = "x"
	}
	if t.Protection {
		kind += "p"
	}
	return fmt.Sprintf("%x:%x:%s", t.Vector, t.Addr, kind)
}

func parseTrap(s string) (t Trap, err error) {
	p := strings.Split(s, ":")
	v, err := strconv.ParseUint(p[0], 16, 32)
	if err != nil {
		return t, err
	}
	t = Trap{Taken: true, Vector: uint32(v)}
	if len(p) == 3 {
		t.Write, t.Fetch = strings.Contains(p[2], "w"), strings.Contains(p[2], "x")
		t.Protection = strings.Contains(p[2], "p")
		t.Addr, err = strconv.ParseUint(p[1], 16, 64)
	}
	return t, err
}

// ParseLine reads the text form. The outcome is nil when there is no arrow.
func ParseLine(line string) (*Case, *Outcome, error) {
	line, _, _ = strings.Cut(line, "#")
	before, after, hasOutcome := strings.Cut(line, "=>")
	code, state, _ := strings.Cut(before, ";")
	k := &Case{Row: -1, Steps: 1, In: DefaultRegs()}
	var err error
	if k.Code, err = hex.DecodeString(strings.Join(strings.Fields(code), "")); err != nil {
		return nil, nil, fmt.Errorf("differential: code bytes: %w", err)
	}
	if len(k.Code) == 0 || len(k.Code) > maxCode {
		return nil, nil, fmt.Errorf("differential: %d code bytes, want 1 to %d", len(k.Code), maxCode)
	}
	for _, w := range strings.Fields(state) {
		if err := k.parseWord(w); err != nil {
			return nil, nil, err
		}
	}
	k.In.RIP = CodeBase + uint64(k.Offset)
	if !hasOutcome {
		return k, nil, nil
	}
	o := &Outcome{Out: k.In}
	for _, w := range strings.Fields(after) {
		if err := o.parseWord(w); err != nil {
			return nil, nil, err
		}
	}
	return k, o, nil
}

func (k *Case) parseWord(w string) error {
	name, value, _ := strings.Cut(w, "=")
	switch name {
	case "smc":
		k.WritableCode = value == "1"
		return nil
	case "at", "steps":
		v, err := strconv.ParseUint(value, 16, 16)
		if err != nil || v >= CodeSize {
			return fmt.Errorf("differential: bad %q", w)
		}
		if name == "at" {
			k.Offset = uint32(v)
		} else {
			k.Steps = int(v)
		}
		return nil
	}
	if r, ok, err := parseMemory(name, value); ok {
		k.Patches = append(k.Patches, Patch(r))
		return err
	}
	return setField(&k.In, name, value)
}

func (o *Outcome) parseWord(w string) error {
	name, value, _ := strings.Cut(w, "=")
	if name == "trap" {
		t, err := parseTrap(value)
		o.Trap = t
		return err
	}
	if r, ok, err := parseMemory(name, value); ok {
		o.Changed = append(o.Changed, r)
		sort.Slice(o.Changed, func(i, j int) bool { return o.Changed[i].Addr < o.Changed[j].Addr })
		return err
	}
	return setField(&o.Out, name, value)
}

// parseMemory reads [ADDR]=BYTES; ok says whether the word has that form.
func parseMemory(name, value string) (r Run, ok bool, err error) {
	if !strings.HasPrefix(name, "[") {
		return r, false, nil
	}
	if r.Addr, err = strconv.ParseUint(strings.Trim(name, "[]"), 16, 64); err != nil {
		return r, true, fmt.Errorf("differential: bad address %q", name)
	}
	if r.Bytes, err = hex.DecodeString(value); err != nil {
		return r, true, fmt.Errorf("differential: bytes at %s: %w", name, err)
	}
	if i := pageIndex(r.Addr); i < 0 || i == readOnlyIndex || pageIndex(r.Addr+uint64(len(r.Bytes))-1) < 0 {
		return r, true, fmt.Errorf("differential: %s is not in the writable sandbox", name)
	}
	return r, true, nil
}

func setField(r *Regs, name, value string) error {
	for i := range fields {
		if fields[i].name != name {
			continue
		}
		if err := fields[i].set(r, value); err != nil {
			return fmt.Errorf("differential: %s=%s: %w", name, value, err)
		}
		return nil
	}
	return fmt.Errorf("differential: unknown name %q", name)
}
