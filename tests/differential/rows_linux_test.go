//go:build linux && amd64

package differential

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vplay/replay/x86"
	"vplay/tests/need"
)

var (
	casesFlag      = flag.Int("cases", 0, "cases for TestSoak")
	forFlag        = flag.Duration("for", 24*time.Hour, "time after which TestSoak stops")
	rowsFlag       = flag.String("rows", "", "mnemonics or isa files for TestSoak, comma-separated")
	translatedFlag = flag.Bool("translated", false, "run each case by generated code, three times: from the second on translations of pages are at hand")
	findingsFlag   = flag.String("findings", "", "file for the failures of TestSoak, by row")
)

const batchSize = 256

// hostIdentity is the CPU the tests run on, as the emulator knows it.
func hostIdentity(t testing.TB) *x86.CPUIdentity {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	id := &x86.CPUIdentity{Vendor: x86.VendorIntel}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "vendor_id":
			if value == "AuthenticAMD" {
				id.Vendor = x86.VendorAMD
			}
		case "cpu family":
			id.Family = number(t, value)
		case "model":
			id.Model = number(t, value)
		case "":
			return id
		}
	}
	return id
}

func newSession(t testing.TB) *Session {
	id := hostIdentity(t)
	c := startCPU(t)
	k, _, err := ParseLine("0f 01 d0 ;") // xgetbv, ecx = 0
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.Run([]*Case{k})
	needs(t, err)
	id.XCR0 = o[0].Out.R[x86.RAX] | o[0].Out.R[x86.RDX]<<32
	id.Leaves = hostLeaves(t, c)
	id.Layout = x86.LayoutFromCPUID(id.Vendor, id.XCR0, id.CPUID)
	id.Learnt = new(x86.Learnt)
	s := &Session{CPU: c, Emulator: NewEmulator(id)}
	learnt, err := s.Learn()
	needs(t, err)
	for _, r := range learnt {
		t.Logf("CPUID does not show %s, and the CPU executes %s", x86.Rows()[r].CPUID, rowName(r))
	}
	if *translatedFlag {
		s.Times = 3
		s.Emulator.SetEngine(translated(t, s.Emulator))
	}
	return s
}

// hostLeaves asks the CPU which instructions it has.
func hostLeaves(t testing.TB, c *CPU) []x86.CPUIDLeaf {
	t.Helper()
	var l []x86.CPUIDLeaf
	var cases []*Case
	asked := []x86.CPUIDLeaf{{Leaf: 0}, {Leaf: 1}, {Leaf: 7}, {Leaf: 7, Subleaf: 1}, {Leaf: 0x14}, {Leaf: 0x80000001}, {Leaf: 0x80000008}}
	for i := range uint32(63) {
		asked = append(asked, x86.CPUIDLeaf{Leaf: 0xd, Subleaf: i})
	}
	for _, q := range asked {
		k, _, err := ParseLine(fmt.Sprintf("0f a2 ; rax=%x rcx=%x", q.Leaf, q.Subleaf))
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, k)
		l = append(l, q)
	}
	o, err := c.Run(cases)
	needs(t, err)
	top := uint32(o[0].Out.R[x86.RAX])
	for i := range l {
		if l[i].Leaf < 0x80000000 && l[i].Leaf > top {
			continue // Not there: all zero.
		}
		r := &o[i].Out.R
		l[i].EAX, l[i].EBX, l[i].ECX, l[i].EDX = uint32(r[x86.RAX]), uint32(r[x86.RBX]), uint32(r[x86.RCX]), uint32(r[x86.RDX])
	}
	return l
}

// tally collects failures by row: how many, and the first.
type tally struct {
	first map[int]Failure
	count map[int]int
	kinds map[int]map[string]int
}

func newTally() *tally {
	return &tally{map[int]Failure{}, map[int]int{}, map[int]map[string]int{}}
}

// kind is the shape of a difference: the names, without values.
func kind(diff string) string {
	var l []string
	for _, p := range strings.Split(diff, "; ") {
		name, _, _ := strings.Cut(p, " ")
		l = append(l, strings.TrimRight(name, "0123456789"))
	}
	return strings.Join(slices.Compact(l), "+")
}

func (y *tally) add(l []Failure) {
	for _, f := range l {
		r := f.Case.Row
		if _, ok := y.first[r]; !ok {
			y.first[r] = f
			y.kinds[r] = map[string]int{}
		}
		y.count[r]++
		y.kinds[r][kind(f.Diff)]++
	}
}

// report is one paragraph for each failing row, shrunk.
func (y *tally) report(t *testing.T, s *Session, ran map[int]int) string {
	var b strings.Builder
	rows := make([]int, 0, len(y.first))
	for r := range y.first {
		rows = append(rows, r)
	}
	slices.Sort(rows)
	for _, r := range rows {
		f, err := s.Shrink(y.first[r])
		if err != nil {
			t.Fatal(err)
		}
		name := "sequences"
		if r > 0 {
			name = fmt.Sprintf("%s, of %d", rowName(r), ran[r])
		}
		fmt.Fprintf(&b, "%s: %d differ %v\n\t%s\n\t%s\n", name, y.count[r], y.kinds[r], f.Case.Line(&f.Want), f.Diff)
	}
	return b.String()
}

// runnable lists the rows that are compared with the CPU.
func runnable(t testing.TB) []int {
	var l []int
	for i := range x86.Rows() {
		if i > 0 && WhyNotRun(&x86.Rows()[i]) == "" {
			l = append(l, i)
		}
	}
	if len(l) == 0 {
		t.Fatal("no rows")
	}
	return l
}

// TestRowsAgainstCPU runs a sample that hits every row.
func TestRowsAgainstCPU(t *testing.T) {
	s := newSession(t)
	rows := runnable(t)
	each, limit := 100, 40*time.Second
	if testing.Short() {
		each, limit = 10, 10*time.Second
	}
	start := time.Now()
	k := compare(t, rows, each*len(rows), 20261120, limit, 0)
	y, ran := k.tally, k.ran
	total := 0
	for _, r := range rows {
		total += ran[r]
		if ran[r] == 0 {
			t.Errorf("row %s was not run", rowName(r))
		}
	}
	took := time.Since(start)
	lacking := 0
	for _, r := range rows {
		if s.Emulator.ID().Lacks(&x86.Rows()[r]) {
			lacking++
		}
	}
	if lacking > 0 {
		t.Logf("left out but for their #UD: %d rows, whose instructions this CPU does not have", lacking)
	}
	t.Logf("%d of %d rows, %d cases, %v; %.1f s, %.0f cases/s", len(ran), len(rows), total, k.left, took.Seconds(), float64(total)/took.Seconds())
	if len(y.first) > 0 {
		t.Errorf("%d rows differ from the CPU\n%s", len(y.first), y.report(t, s, ran))
	}
}

// TestSequencesAgainstCPU runs sequences that end in a reader of flags.
func TestSequencesAgainstCPU(t *testing.T) {
	s := newSession(t)
	n, limit := 60000, 20*time.Second
	if testing.Short() {
		n, limit = 6000, 5*time.Second
	}
	y := sequences(t, s, max(n, *casesFlag), *seedFlag, limit+time.Duration(*casesFlag)*time.Millisecond)
	if len(y.first) > 0 {
		t.Errorf("sequences differ from the CPU\n%s", y.report(t, s, map[int]int{}))
	}
}

// sequences runs n of them; the failures are tallied by kind of difference,
// as negative row numbers.
func sequences(t *testing.T, s *Session, n int, seed uint64, limit time.Duration) *tally {
	g := NewGenerator(seed, s.Emulator.ID())
	body, readers := SequenceRows()
	y := newTally()
	names := map[string]int{}
	start := time.Now()
	done := 0
	for done < n && time.Since(start) < limit {
		var batch []*Case
		for ; len(batch) < batchSize && done < n; done++ {
			batch = append(batch, g.Sequence(body, readers))
		}
		l, err := s.Check(batch)
		if err != nil {
			t.Fatalf("after %d sequences of seed %d: %v", done, seed, err)
		}
		for i := range l {
			c := *l[i].Case
			k := kind(l[i].Diff)
			if _, ok := names[k]; !ok {
				names[k] = -1 - len(names)
			}
			c.Row = names[k]
			l[i].Case = &c
		}
		y.add(l)
	}
	t.Logf("%d sequences, %.0f/s", done, float64(done)/time.Since(start).Seconds())
	return y
}

// selectRows keeps the rows whose mnemonic or isa file the list names.
func selectRows(rows []int, list string) []int {
	if list == "" {
		return rows
	}
	want := strings.Split(list, ",")
	return slices.DeleteFunc(rows, func(i int) bool {
		r := &x86.Rows()[i]
		return !slices.Contains(want, r.Mnemonic) && !slices.Contains(want, r.File)
	})
}

// TestRegressOnCPU checks the file of cases itself, on the CPU it is from.
func TestRegressOnCPU(t *testing.T) {
	s := newSession(t)
	i := slices.IndexFunc(references, func(r reference) bool { return r.isLike(s.Emulator.ID()) })
	need.Machine(t, "a CPU of the generation of a file in testdata", i >= 0)
	r := &references[i]
	for n, line := range r.lines(t) {
		k, want, err := ParseLine(line)
		if err != nil {
			t.Fatal(n, err)
		}
		got, err := s.CPU.Run([]*Case{k})
		if err != nil {
			t.Fatal(err)
		}
		if d := Diff(k, want, &got[0]); d != "" {
			t.Errorf("%s: %s\n\t%s", n, line, d)
		}
	}
}

// number reads a decimal of /proc/cpuinfo.
func number(t testing.TB, s string) uint32 {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.Fatalf("/proc/cpuinfo: %v", err)
	}
	return uint32(n)
}
