package checkpoint

import "testing"

// TestMakeEvents: events are all zeros and may be written, however many there are.
func TestMakeEvents(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 20_000, 100_000} {
		events := makeEvents(n)
		if len(events) != n {
			t.Fatalf("%d events, want %d", len(events), n)
		}
		for i := range events {
			if e := &events[i]; e.Kind != 0 || e.Seq != 0 || e.Note != "" {
				t.Fatalf("event %d of %d is %+v", i, n, *e)
			}
			events[i].Seq = uint64(i)
		}
		for i := range events {
			if events[i].Seq != uint64(i) {
				t.Fatalf("event %d of %d has the number %d", i, n, events[i].Seq)
			}
		}
	}
}
