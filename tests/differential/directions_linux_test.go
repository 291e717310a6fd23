//go:build linux && amd64

package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"vplay/replay/x86"
)

// TestDirections changes, in each case of each row, everything that the row is
// not said to read, and compares what the CPU makes of both. With -cases it runs that
// many cases instead of a sample.
func TestDirections(t *testing.T) {
	s := newSession(t)
	all := selectRows(runnable(t), *rowsFlag)
	rows := slices.DeleteFunc(slices.Clone(all), func(r int) bool { return s.Emulator.ID().Lacks(&x86.Rows()[r]) })
	if lacking := len(all) - len(rows); lacking > 0 {
		t.Logf("left out: %d rows, whose instructions this CPU does not have", lacking)
	}
	n, limit := 20*len(rows), 40*time.Second
	if testing.Short() {
		n, limit = 4*len(rows), 10*time.Second
	}
	if *casesFlag > 0 {
		n, limit = *casesFlag, *forFlag
	}
	k := directions{s: s, rows: rows, found: map[int]map[string]int{}, first: map[int]string{}, ran: map[int]int{}}
	start := time.Now()
	g := NewGenerator(*seedFlag, s.Emulator.ID())
	for i := 0; i < n && time.Since(start) < limit; i += batchSize {
		if err := k.batch(g, i, min(batchSize, n-i)); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for c := range maps.Values(k.ran) {
		total += c
	}
	t.Logf("%d of %d rows, %d cases and as many with all undeclared inputs changed, %d rows differ; %.1f s",
		len(k.ran), len(rows), total, len(k.found), time.Since(start).Seconds())
	for _, r := range slices.Sorted(maps.Keys(k.found)) {
		t.Errorf("%s, of %d: %v\n\t%s", rowName(r), k.ran[r], k.found[r], k.first[r])
	}
	for _, r := range rows {
		if k.ran[r] == 0 {
			t.Errorf("row %s was not run", rowName(r))
		}
	}
}

// directions runs cases and what they are disturbed to.
type directions struct {
	s     *Session
	rows  []int
	found map[int]map[string]int // by row, what and how often
	first map[int]string
	ran   map[int]int
}

// batch runs n cases, of the rows from the i-th on.
func (k *directions) batch(g *Generator, i, n int) error {
	var cases []*Case
	var effects []x86.Effects
	for j := range n {
		c := g.Case(k.rows[(i+j)%len(k.rows)])
		in, err := x86.DecodeInst(c.Code, c.In.RIP, k.s.Emulator.ID())
		if err != nil || int(in.Row) != c.Row {
			continue // with a prefix that makes it undefined
		}
		e := in.Effects()
		cases = append(cases, c, g.disturb(c, &in, &e.Read))
		effects = append(effects, e)
	}
	outcomes, err := k.s.CPU.Run(cases)
	if err != nil {
		return err
	}
	for j := range effects {
		if err := k.judge(cases[2*j], cases[2*j+1], &outcomes[2*j], &outcomes[2*j+1], &effects[j]); err != nil {
			return err
		}
	}
	return nil
}

// judge notes what a pair of outcomes shows. What is not seen twice was a
// signal's doing.
func (k *directions) judge(c, p *Case, a, b *Outcome, e *x86.Effects) error {
	if a.Problem != "" || b.Problem != "" || k.s.CPU.owns(a.Trap) || k.s.CPU.owns(b.Trap) {
		return nil
	}
	k.ran[c.Row]++
	what := undeclared(c, p, a, b, e)
	if what == "" {
		return nil
	}
	again, err := k.s.CPU.Run([]*Case{c, p})
	if err != nil || undeclared(c, p, &again[0], &again[1], e) == "" {
		return err
	}
	if k.found[c.Row] == nil {
		k.found[c.Row] = map[string]int{}
		k.first[c.Row] = fmt.Sprintf("%s\n\tchanged: %s", c.Line(a), p.Line(b))
	}
	for _, w := range strings.Split(what, ", ") {
		k.found[c.Row][w]++
	}
	return nil
}

// TestDirectionsAreNeeded changes one thing that a row is said to read at a time:
// in some case it must matter. So a row cannot pass TestDirections by claiming
// everything, and each declaration that is left out is one that TestDirections
// would miss.
func TestDirectionsAreNeeded(t *testing.T) {
	s := newSession(t)
	rows := selectRows(runnable(t), *rowsFlag)
	const each = 6000 // few rows take more than 20: VFPCLASSSS reads MXCSR for denormals alone
	limit := 60 * time.Second
	if testing.Short() {
		limit = 20 * time.Second
	}
	if *casesFlag > 0 {
		limit = *forFlag
	}
	start := time.Now()
	g := NewGenerator(*seedFlag+1, s.Emulator.ID())
	claims, needless, undefined := 0, 0, 0
	for _, r := range rows {
		matters, has := map[string]bool{}, false
		for done := 0; done < each && time.Since(start) < limit; done += 20 {
			executed, err := changeOneByOne(s, g, r, 20, matters)
			if err != nil {
				t.Fatal(err)
			}
			has = has || executed
			if done >= 20 && (!has || !slices.Contains(slices.Collect(maps.Values(matters)), false)) {
				break
			}
		}
		if !has {
			undefined++
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(matters)) {
			claims++
			if !matters[name] && !needNot(&x86.Rows()[r], name) {
				needless++
				t.Errorf("%s: %s is said to be read, and never matters", rowName(r), name)
			}
		}
	}
	t.Logf("%d rows, %d of them #UD on this CPU, %d things read, %d never matter; %.1f s", len(rows), undefined, claims, needless, time.Since(start).Seconds())
}

// changeOneByOne runs n cases of row r, and each again for each thing that is read,
// with that changed. It enters in matters whether that made a difference, and reports
// whether a case was anything but #UD.
func changeOneByOne(s *Session, g *Generator, r, n int, matters map[string]bool) (executed bool, err error) {
	var cases []*Case
	var names []string // of the changed thing, "" for a case itself
	var effects []x86.Effects
	for range n {
		c := g.Case(r)
		in, err := x86.DecodeInst(c.Code, c.In.RIP, s.Emulator.ID())
		if err != nil || int(in.Row) != r {
			continue
		}
		cases, names, effects = append(cases, c), append(names, ""), append(effects, in.Effects())
		for _, o := range readPieces(&in) {
			rest := allBut(o.Uses)
			cases, names, effects = append(cases, g.disturb(c, &in, &rest)), append(names, o.Name), append(effects, in.Effects())
		}
	}
	outcomes, err := s.CPU.Run(cases)
	if err != nil {
		return false, err
	}
	base := 0
	for i, name := range names {
		if name == "" {
			base = i
			trap := outcomes[i].Trap
			executed = executed || !trap.Taken || trap.Vector != trapUD && !trap.Fetch
			continue
		}
		a, b := &outcomes[base], &outcomes[i]
		strict := !a.Trap.Taken && !b.Trap.Taken // else what would be written keeps its value
		matters[name] = matters[name] || a.Problem == "" && b.Problem == "" &&
			compareUses(cases[base], cases[i], a, b, &effects[i], strict) != ""
	}
	return executed, nil
}

// readPieces are what in is said to read, apart from addresses, with each flag by
// itself, and numbered by operand.
func readPieces(in *x86.Inst) []x86.Operand {
	var l []x86.Operand
	for i, o := range in.Operands() {
		if o.Dir&x86.DirRead == 0 || o.Uses == (x86.Uses{}) || o.Uses.Parts&x86.PartSelector != 0 {
			continue // a case cannot load selectors; st(i) is part of st
		}
		if o.Uses.Flags == 0 {
			o.Name = fmt.Sprintf("%d:%s", i, o.Name)
			l = append(l, o)
			continue
		}
		for _, f := range flagBits {
			if o.Uses.Flags&f.bit != 0 {
				l = append(l, x86.Operand{Name: f.name, Uses: x86.Uses{Flags: f.bit}})
			}
		}
	}
	return l
}

// allBut are all places but those of u.
func allBut(u x86.Uses) x86.Uses {
	return x86.Uses{R: ^u.R, V: ^u.V, K: ^u.K, X87: ^u.X87, Flags: ^u.Flags, Parts: ^u.Parts}
}

// needNot reports what is read and cannot be seen to matter: components of XSAVE
// from bit 32 on, which no CPU has.
func needNot(r *x86.Row, name string) bool {
	return r.File == "xsave" && strings.HasSuffix(name, ":rdx")
}
