//go:build linux && amd64

package differential

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"vplay/replay/x86"
)

// exitPage is the harness's own page near the code, read-only (EXIT in native/harness.c).
const exitPage = 0x38000000

// TestHarnessIsOutOfReach: below 4 GiB, where a sequence can come to store
// anywhere, the harness has mapped what the emulator's side has, and a page that
// cannot be written.
func TestHarnessIsOutOfReach(t *testing.T) {
	c := startCPU(t)
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var from, to uint64
		var allowed string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &allowed); err != nil {
			t.Fatal(err)
		}
		isCase := pageIndex(from) >= 0 || from == CodeBase || from == exitPage && strings.HasPrefix(allowed, "r--")
		if from < 1<<32 && !isCase {
			t.Errorf("a case can reach %s", line)
		}
	}
}

// TestStoresOutside stores to pages without memory all over the first 4 GiB, and
// most densely where programs are linked by default: the CPU must raise #PF each
// time, and the harness must be what it was.
func TestStoresOutside(t *testing.T) {
	c := startCPU(t)
	var cases []*Case
	add := func(a uint64) {
		if pageIndex(a) >= 0 || a >= CodeBase && a < CodeBase+CodeSize || a == exitPage {
			return
		}
		k, _, err := ParseLine(fmt.Sprintf("48 89 58 40 ; rax=%x rbx=5c5c5c5c5c5c5c5c", a-0x40))
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, k)
	}
	for a := uint64(0x400000); a < 0x800000; a += pageSize / 2 {
		add(a)
	}
	for a := uint64(pageSize); a < 1<<32; a += 1 << 20 {
		add(a)
	}
	out, err := c.Run(cases)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		want := Trap{Taken: true, Vector: trapPF, Addr: cases[i].In.R[x86.RAX] + 0x40, Write: true}
		if o.Trap != want {
			t.Errorf("%s: %+v", cases[i], o.Trap)
		}
	}
	k, want, err := ParseLine("48 8b 04 25 00 10 00 20 ; [20001000]=0102030405060708 => rax=807060504030201 rip=30000008")
	if err != nil {
		t.Fatal(err)
	}
	if out, err = c.Run([]*Case{k}); err != nil {
		t.Fatal(err)
	}
	if d := Diff(k, want, &out[0]); d != "" {
		t.Error(d)
	}
}
