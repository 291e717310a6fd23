//go:build linux && amd64

package record

import (
	"strings"
	"testing"

	"vplay/checkpoint"
)

// TestEmptyEnvironment: a program that executes another one with an empty
// environment does not free it of the limits that replay needs where CPUID is
// not trapped; /proc/PID/environ stays empty.
func TestEmptyEnvironment(t *testing.T) {
	for _, flags := range [][]string{nil, {"-static"}} {
		r := run{args: []string{compile(t, "reexec", flags...)}}
		want := r.native(t)
		r.opt.NoTrapCPUID = true
		got, res := r.recorded(t)
		if wanted := strings.Replace(want.out, "free", "limited", 1); got.out != wanted || got.code != want.code {
			t.Errorf("recorded %+v, native %+v", got, want)
		}
		if !res.Recorded {
			t.Fatal(res.Reason)
		}
		verify(t, res.Path)
		rec, err := checkpoint.Open(res.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer rec.Close()
		if env := rec.Manifest().Env; len(env) != 0 {
			t.Errorf("the manifest's environment is %q", env)
		}
		infos := rec.Intervals()
		iv, err := rec.Interval(infos[len(infos)-1].ID)
		if err != nil {
			t.Fatal(err)
		}
		listed := false
		for _, a := range iv.Artefact {
			listed = listed || strings.Contains(a.What, "GLIBC_TUNABLES")
		}
		if !listed {
			t.Errorf("not among the artefacts: %+v", iv.Artefact)
		}
	}
}
