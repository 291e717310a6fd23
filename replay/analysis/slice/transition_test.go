package slice

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"vplay/replay/analysis/internal/randomcode"
	"vplay/replay/x86"
)

// TestTransitions: what is kept of transitions changes nothing. With room for few only, they are found anew again and again.
func TestTransitions(t *testing.T) {
	tl := openTimeline(t, demo)
	r := rand.New(rand.NewPCG(8, 0))
	instances := uint64(0)
	for range 6 {
		o := randomValue(t, tl, r)
		o.Oldest = o.At.Interval
		want, err := Of(t.Context(), tl, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, o.transitions = range []int{1, 7, 50, 400} {
			got, err := Of(t.Context(), tl, o)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v at %s: %d instances with %d transitions, %d with all; or other edges", o.Want[0], o.At, got.Instances, o.transitions, want.Instances)
			}
		}
		instances += want.Instances
	}
	if instances < 1000 {
		t.Errorf("the slices have %d instances only", instances)
	}
}

// TestFlowsAreFew: the walk has room for so many flows, and takes what one of them stores.
func TestFlowsAreFew(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	id := &x86.CPUIdentity{Vendor: x86.VendorAMD, XCR0: 7}
	tested := map[uint16]bool{}
	for range 60_000 {
		in, err := x86.DecodeInst(randomcode.Bytes(r, 4), randomcode.At, id)
		if err != nil {
			continue
		}
		k := compile(randomcode.At, &in, false)
		stores := 0
		for i := range k.Flows {
			if k.Flows[i].Store >= 0 {
				stores++
			}
		}
		if tested[in.Row] = true; k.plain && (len(k.Flows) > maxFlows || stores > 1) {
			t.Errorf("%v: %d flows, %d store", x86.Rows()[in.Row].Mnemonic, len(k.Flows), stores)
		}
	}
	if len(tested) < 300 {
		t.Errorf("%d rows only", len(tested))
	}
}
