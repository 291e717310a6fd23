//go:build linux && amd64

package record

import (
	"reflect"
	"slices"
	"testing"
)

// TestIdentity: each process is told of the CPU that it sees: where CPUID faults the edited
// leaves, elsewhere those of the CPU, whoever asked before.
func TestIdentity(t *testing.T) {
	_, th := newFake(t, Options{})
	plain := &process{session: th.session}
	edited := &process{session: th.session, trap: trapState{cpuid: true}}
	real := plain.identity()
	own := slices.Clone(real.CPUID)
	if len(real.CPUID) == 0 || len(real.CPUIDReal) != 0 || real.Faulting || plain.trap.answers != nil {
		t.Fatalf("%d leaves, %d of them edited, %d answers", len(real.CPUID), len(real.CPUIDReal), len(plain.trap.answers))
	}
	seen := edited.identity()
	if !seen.Faulting || !reflect.DeepEqual(seen.CPUID, edited.trap.answers) || len(seen.CPUIDReal) == 0 {
		t.Errorf("faulting %t, %d leaves, %d answers, %d edited", seen.Faulting, len(seen.CPUID), len(edited.trap.answers), len(seen.CPUIDReal))
	}
	for _, l := range edited.trap.answers {
		if l.Leaf == 1 && l.ECX&(1<<30) != 0 {
			t.Error("RDRAND is shown")
		}
	}
	if again := plain.identity(); !reflect.DeepEqual(again, real) || !slices.Equal(again.CPUID, own) {
		t.Error("the CPU's own leaves have changed")
	}
}
