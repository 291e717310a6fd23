//go:build linux && amd64

package record

import (
	"path/filepath"
	"testing"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	recorder "vplay/checkpoint/record"
)

// TestLacking: a program that was built for another CPU dies of an instruction that this one lacks, and is replayed up to there; where the
// CPU has it, it is executed. No CPU has all of them.
func TestLacking(t *testing.T) {
	prog := compile(t, "lacking")
	died := 0
	for _, name := range []string{"sse4a", "sha", "vaes", "avx512f", "serialize", "movdiri"} {
		r := run{args: []string{prog, name}}
		r.opt.Keep = recorder.KeepAlways
		want := r.native(t)
		if want.sig == int(abi.SIGILL) {
			died++
		}
		got, res := r.recorded(t)
		same(t, got, want)
		t.Logf("%s: signal %d; %s", name, want.sig, verify(t, res.Path))
	}
	if died == 0 {
		t.Error("this CPU has all of them")
	}
}

// TestHidden: where the answers to CPUID lack what the CPU executes, as those of some hypervisors do, the log tells, and the program is
// replayed all the same. What the C library asks for is in the log, or in the table of answers, as it was.
func TestHidden(t *testing.T) {
	r := run{args: []string{compile(t, "lacking"), "popcnt"}}
	_, res := r.recorded(t)
	rec, err := checkpoint.Open(res.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	hidden := 0
	path := filepath.Join(t.TempDir(), "hidden.vplay")
	err = checkpoint.Rewrite(rec, path, checkpoint.RewriteOptions{Manifest: func(m *checkpoint.Manifest) {
		m.CPU.CPUIDReal = nil
		for _, l := range m.CPU.CPUID {
			switch l.Leaf {
			case 1:
				l.ECX &= 1 << 27 // OSXSAVE alone
			case 7, 0x80000001:
				l.EBX, l.ECX, l.EDX = 0, 0, 0
			default:
				continue
			}
			m.CPU.CPUIDReal = append(m.CPU.CPUIDReal, l) // which is asked first; CPUID answers as it did
			hidden++
		}
	}})
	if err != nil || hidden < 2 {
		t.Fatalf("%d leaves hidden, %v", hidden, err)
	}
	t.Log(verify(t, path))
}
