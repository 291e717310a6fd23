//go:build linux && amd64

package differential

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vplay/tests/need"

	"vplay/replay/x86"
)

var harness struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// startCPU builds the harness once per test binary and starts one.
func startCPU(t testing.TB) *CPU {
	t.Helper()
	need.Program(t, "gcc")
	harness.once.Do(func() {
		if harness.dir, harness.err = os.MkdirTemp("", "vplay-differential"); harness.err == nil {
			harness.path, harness.err = BuildHarness(harness.dir)
		}
	})
	needs(t, harness.err)
	c, err := StartCPU(harness.path)
	needs(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestMain(m *testing.M) {
	code := m.Run()
	if harness.dir != "" {
		os.RemoveAll(harness.dir)
	}
	os.Exit(code)
}

// TestHarnessKnown runs instructions whose effect is beyond doubt: what the
// harness reports must be that, and nothing else.
func TestHarnessKnown(t *testing.T) {
	lines := map[string]string{
		"add":           "48 01 d8 ; rax=1 rbx=ffffffffffffffff => rax=0 flags=257 rip=30000003",
		"mov store":     "48 89 07 ; rax=1122334455667788 rdi=20001ff8 [20001ff8]=0000000000000000 => [20001ff8]=8877665544332211 rip=30000003",
		"push":          "50 ; rax=ffffffffffffffff [20002ff8]=0000000000000000 => rsp=20002ff8 [20002ff8]=ffffffffffffffff rip=30000001",
		"load guard":    "8b 07 ; rdi=20006000 => trap=e:20006000:r",
		"load edge":     "8b 07 ; rdi=20005ffd => trap=e:20006000:r",
		"store RO":      "88 07 ; rdi=20005010 => trap=e:20005010:wp",
		"non-canonical": "8b 07 ; rdi=8000000000000000 => trap=d",
		"stack fault":   "8b 45 00 ; rbp=8000000000000000 => trap=c",
		"divide":        "f7 f1 ; => trap=0",
		"ud2":           "0f 0b ; => trap=6",
		"hlt":           "f4 ; => trap=d",
		"int3":          "cc ; => trap=3",
		"fetch edge":    "48 01 ; at=1ffe => trap=e:30002000:x",
		"page crossing": "48 01 d8 ; at=fff rax=1 rbx=2 => rax=3 flags=206 rip=30001002",
		"jump":          "eb 10 ; => rip=30000012 trap=3",
		"movaps":        "0f 28 c1 ; v1=1,2,3,4 v0=5,6,7,8 => v0=1,2,7,8 rip=30000003",
		"misaligned":    "0f 28 07 ; rdi=20001001 => trap=d",
		"fs":            "64 8b 04 25 00 00 00 00 ; fs=20001000 [20001000]=78563412 => rax=12345678 rip=30000008",
		"fld1":          "d9 e8 ; => f7=3fff:8000000000000000 top=7 tag=80 rip=30000002",
		"std":           "fd ; => flags=602 rip=30000001",
		"alignment":     "8b 07 ; flags=40202 rdi=20001001 => trap=11",
		"#XM":           "f3 0f 5e c1 ; mxcsr=1d80 v0=3f800000 => mxcsr=1d84 trap=13",
		"#MF":           "9b ; cw=340 sw=8081 => trap=10",
	}
	if hostIdentity(t).Vendor == x86.VendorIntel { // AMD's XSAVE has the pointers of exceptions only
		lines["fld1"] += " fip=30000000"
	}
	c := startCPU(t)
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			k, want, err := ParseLine(line)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Run([]*Case{k})
			if err != nil {
				t.Fatal(err)
			}
			if d := Diff(k, want, &got[0]); d != "" {
				t.Errorf("%s\n%s", k.Line(&got[0]), d)
			}
		})
	}
}

// TestHarnessReportsDifference gives a wrong expectation in each kind of state
// and wants each to be found.
func TestHarnessReportsDifference(t *testing.T) {
	c := startCPU(t)
	for _, wrong := range []string{"rax=5", "flags=257", "v3=1", "f1=1:1", "mxcsr=1fa0", "[20001000]=00", "trap=d", "rip=30000000", "fs=1", "tag=1"} {
		k, want, err := ParseLine("90 ; [20001000]=01 => rip=30000001 " + wrong)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Run([]*Case{k})
		if err != nil {
			t.Fatal(err)
		}
		if Diff(k, want, &got[0]) == "" {
			t.Errorf("expectation %q on a NOP was not reported", wrong)
		}
	}
}

var lineFlag = flag.String("line", "", "a case line for TestLine")

// TestLine prints what the CPU makes of the case given by -line, or of each
// line of a file given by -line @FILE.
func TestLine(t *testing.T) {
	lines := []string{*lineFlag}
	if name, ok := strings.CutPrefix(*lineFlag, "@"); ok {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines = strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	if *lineFlag == "" {
		return
	}
	c := startCPU(t)
	for _, line := range lines {
		k, _, err := ParseLine(line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Run([]*Case{k})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(k.Line(&got[0]))
	}
}

func TestHarnessTimeout(t *testing.T) {
	c := startCPU(t)
	k, _, err := ParseLine("eb fe ;")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Run([]*Case{k})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Problem == "" {
		t.Error("an endless loop was not reported")
	}
}

func TestHarnessSpeed(t *testing.T) {
	c := startCPU(t)
	k, _, err := ParseLine("48 01 07 ; rax=1 rdi=20001000 rbx=2")
	if err != nil {
		t.Fatal(err)
	}
	cases := make([]*Case, 20000)
	for i := range cases {
		cases[i] = k
	}
	start := time.Now()
	if _, err := c.Run(cases); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.0f cases/s", float64(len(cases))/time.Since(start).Seconds())
}

// TestNumber: the limit of the segment in which Linux keeps the number of CPU
// and node is no difference; that of others is compared.
func TestNumber(t *testing.T) {
	s := newSession(t)
	for _, c := range []struct {
		line string
		left int
	}{{"0f 03 c1 ; rcx=7b", 1}, {"0f 03 c1 ; rcx=2b", 0}} {
		k, _, err := ParseLine(c.line)
		if err != nil {
			t.Fatal(err)
		}
		k.Row = slices.IndexFunc(x86.Rows(), func(r x86.Row) bool { return r.Mnemonic == "LSL" })
		s.LeftOut = LeftOut{}
		failed, err := s.Check([]*Case{k})
		if err != nil {
			t.Fatal(err)
		}
		if len(failed) != 0 || s.LeftOut != (LeftOut{Number: c.left}) {
			t.Errorf("%s: %d differ, %s", c.line, len(failed), s.LeftOut)
		}
	}
}
