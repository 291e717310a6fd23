package differential

import (
	"bytes"
	"fmt"
	"strings"
)

// The comparison of two outcomes of a case, and its text. What is left out of it is
// decided in session_linux.go and approximate.go.

// Diff says in what got differs from want, "" if in nothing. The result is
// for people: name, want, got, separated by "; ".
func Diff(k *Case, want, got *Outcome) string {
	if want.Problem != "" || got.Problem != "" {
		if want.Problem == got.Problem {
			return ""
		}
		return fmt.Sprintf("want %s; got %s", orOutcome(want, k), orOutcome(got, k))
	}
	if want.Out == got.Out && want.Trap == got.Trap && sameRuns(want.Changed, got.Changed) {
		return ""
	}
	var l []string
	for i := range fields {
		f := &fields[i]
		if w, g := f.get(&want.Out), f.get(&got.Out); w != g {
			l = append(l, fmt.Sprintf("%s want %s got %s", f.name, w, g))
		}
	}
	if want.Trap != got.Trap {
		l = append(l, fmt.Sprintf("trap want %v got %v", want.Trap, got.Trap))
	}
	if !sameRuns(want.Changed, got.Changed) {
		l = append(l, fmt.Sprintf("memory want %s got %s", runsText(want.Changed), runsText(got.Changed)))
	}
	return strings.Join(l, "; ")
}

func orOutcome(o *Outcome, k *Case) string {
	if s := o.text(&k.In); s != "" {
		return s
	}
	return "no change"
}

func sameRuns(a, b []Run) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Addr != b[i].Addr || !bytes.Equal(a[i].Bytes, b[i].Bytes) {
			return false
		}
	}
	return true
}

func runsText(l []Run) string {
	var b strings.Builder
	for i, r := range l {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "[%x]=%x", r.Addr, r.Bytes)
	}
	if len(l) == 0 {
		return "unchanged"
	}
	return b.String()
}
