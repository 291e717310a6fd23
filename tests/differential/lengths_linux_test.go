//go:build linux && amd64

package differential

import (
	"bufio"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vplay/replay/x86"
	"vplay/tests/need"
)

// lengthPrograms are programs of a Debian system whose .text is decoded. They
// are data here: nothing is started by these paths.
var lengthPrograms = []string{
	"/usr/bin/bash", "/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
}

// lengthTally counts what became of the instructions of one program.
type lengthTally struct {
	all      int            // objdump's instructions
	emulated int            // of those, with the same length and emulated
	refused  map[string]int // with the same length and refused by name, by CPUID feature
	judged   map[string]int // the two differ, and what the CPU says
	wrong    []string       // the two differ
}

// TestLengths: the decoder knows every instruction that objdump finds in .text, at
// the same length. Where the two differ the CPU decides, and the decoder must
// be right. (libcrypto has tables in .text, which objdump takes for code.)
func TestLengths(t *testing.T) {
	objdump := need.Program(t, "objdump")
	s := newSession(t)
	programs := lengthPrograms
	if testing.Short() {
		programs = programs[:1]
	}
	sum := newLengthTally()
	for _, p := range programs {
		path, err := filepath.EvalSymlinks(need.File(t, p))
		if err != nil {
			t.Fatal(err)
		}
		l := newLengthTally()
		l.decodeText(t, s, objdump, path)
		t.Logf("%s: %s", filepath.Base(p), l)
		for _, w := range l.wrong[:min(len(l.wrong), 20)] {
			t.Errorf("%s: %s", filepath.Base(p), w)
		}
		sum.add(l)
	}
	t.Logf("all: %s", sum)
}

func newLengthTally() *lengthTally {
	return &lengthTally{refused: map[string]int{}, judged: map[string]int{}}
}

func (l *lengthTally) add(o *lengthTally) {
	l.all += o.all
	l.emulated += o.emulated
	for _, m := range []struct{ to, from map[string]int }{{l.refused, o.refused}, {l.judged, o.judged}} {
		for k, n := range m.from {
			m.to[k] += n
		}
	}
	l.wrong = append(l.wrong, o.wrong...)
}

// String is the counts for people.
func (l *lengthTally) String() string {
	list := func(m map[string]int) string {
		var b strings.Builder
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, " %s %d,", k, m[k])
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	return fmt.Sprintf("%d instructions: %d emulated; refused by name:%s; objdump differs, the CPU says:%s; wrong: %d",
		l.all, l.emulated, list(l.refused), list(l.judged), len(l.wrong))
}

// decodeText runs objdump over .text and decodes at each address it names.
func (l *lengthTally) decodeText(t *testing.T, s *Session, objdump, path string) {
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sec := f.Section(".text")
	if sec == nil {
		t.Fatalf("%s: no .text", path)
	}
	text, err := sec.Data()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(objdump, "-d", "-w", "--section=.text", "--no-show-raw-insn", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last, name := uint64(0), ""
	next := func(a uint64, n string) {
		if name != "" {
			l.instruction(t, s, text[last-sec.Addr:], int(a-last), name)
		}
		last, name = a, n
	}
	for sc := bufio.NewScanner(out); sc.Scan(); {
		a, n, ok := strings.Cut(sc.Text(), ":\t")
		if !ok {
			continue
		}
		if at, err := strconv.ParseUint(strings.TrimSpace(a), 16, 64); err == nil {
			next(at, n)
		}
	}
	next(sec.Addr+sec.Size, "")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// instruction compares the instruction at the start of b, which objdump says
// has n bytes and is called name.
func (l *lengthTally) instruction(t *testing.T, s *Session, b []byte, n int, name string) {
	b = b[:min(len(b), 16)]
	if b[0] == 0x9b && n > 1 { // objdump takes FWAIT and the next instruction for one.
		b, n = b[1:], n-1
	}
	d, err := x86.Decode(b)
	l.all++
	switch {
	case strings.Contains(name, "(bad)"):
		l.all--
		if err == nil && x86.Rows()[d.Row].Handler != "intUD" {
			l.judge(t, s, b, n, name, d, err)
		}
	case err == nil && d.Len == n && x86.Rows()[d.Row].Attr("refuse"):
		l.refused[x86.Rows()[d.Row].CPUID]++
	case err == nil && d.Len == n:
		l.emulated++
	default:
		l.judge(t, s, b, n, name, d, err)
	}
}

// judge asks the CPU about bytes on which decoder and objdump differ. What the
// machine may not execute is wrong.
func (l *lengthTally) judge(t *testing.T, s *Session, b []byte, n int, name string, d x86.Decoded, err error) {
	what, isUD, isRefused := fmt.Sprintf("decoder: %s, length %d", d.Mnemonic, d.Len), err != nil, false
	if err != nil {
		what = err.Error()
	} else {
		r := &x86.Rows()[d.Row]
		has, _ := s.Emulator.ID().Has(r.CPUID)
		isUD = r.Handler == "intUD" || !has
		isRefused = has && r.Attr("refuse")
	}
	if harmless(b) && (err != nil || isUD || isRefused || mayRun(&x86.Rows()[d.Row], d.Imm) || d.Mnemonic == "POPF") {
		length, trap := cpuLength(t, s.CPU, b)
		cpuUD := trap.Taken && trap.Vector == trapUD
		kind := ""
		switch {
		case isUD && cpuUD:
			kind = "no instruction"
		case isRefused && cpuUD:
			kind = "no instruction, but refused as one"
		case !isUD && !cpuUD && length == d.Len && strings.Contains(name, "(bad)"):
			kind = "an instruction"
		case !isUD && !cpuUD && length == d.Len:
			kind = "longer"
			if d.Len < n {
				kind = "shorter"
			}
		}
		if kind == "" && s.Emulator.ID().Vendor == x86.VendorAMD {
			kind = "neither (AMD's undefined bytes are not measured)"
		}
		if kind != "" {
			l.judged[kind]++
			return
		}
		what += fmt.Sprintf("; CPU: length %d, %v", length, trap)
	}
	l.wrong = append(l.wrong, fmt.Sprintf("%s  objdump: %s, length %d; %s", hexBytes(b), name, n, what))
}

// cpuLength returns the length of the instruction at the start of b, and what
// it raises. The CPU is given more and more of it at the end of the last page:
// until it is whole, fetching raises a page fault behind the page.
func cpuLength(t *testing.T, c *CPU, b []byte) (int, Trap) {
	var cases []*Case
	for n := 1; n <= min(len(b), 15); n++ {
		k := &Case{Row: -1, Code: b[:n], Offset: uint32(CodeSize - n), Steps: 1, In: DefaultRegs()}
		for i := range k.In.R {
			k.In.R[i] = DataBase + pageSize
		}
		k.In.RIP = CodeBase + uint64(k.Offset)
		cases = append(cases, k)
	}
	out, err := c.Run(cases)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range cases {
		if o := &out[i]; !o.Trap.Fetch || o.Trap.Addr != CodeBase+CodeSize || o.Out.RIP != k.In.RIP {
			return i + 1, o.Trap
		}
	}
	return 0, Trap{}
}
