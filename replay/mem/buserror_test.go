package mem

import "testing"

// TestBusError: accesses to the page that SetBusError names fail, at whatever address they begin and whatever the caches hold, in this
// space and in those that are opened from its snapshots, until another page is named or none.
func TestBusError(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x10000, End: 0x13000, Prot: ProtRead | ProtWrite | ProtExec, Fresh: true})
	s.Map(Region{Start: 0x20000, End: 0x22000, Prot: ProtRead | ProtWrite, Shared: true, Fresh: true, Object: 5, Zero: true})
	s.Map(Region{Start: 0x30000, End: 0x32000, Prot: ProtRead | ProtWrite, Shared: true, Fresh: true, Object: 5, Zero: true})
	var flushed []uint64
	s.OnFlush = func(a, _ uint64) { flushed = append(flushed, a) }
	fails := func(s *Space, a uint64, n int, at uint64) {
		t.Helper()
		want := Fault{}
		for _, k := range []Access{Load, Store} {
			if at != 0 {
				want = Fault{FaultBeyondEOF, k, at}
			}
			if f := s.Probe(a, n, k); f != want {
				t.Errorf("%d bytes at %#x: %+v, want %+v", n, a, f, want)
			}
			if page, _ := s.Translate(a&^(PageSize-1), k); (page == nil) != (at == a) {
				t.Errorf("page of %#x is handed out: %v", a, page != nil)
			}
		}
	}
	fails(s, 0x11008, 8, 0)
	s.SetBusError(0x11123)
	if len(flushed) == 0 || flushed[len(flushed)-1] != 0x11000 {
		t.Errorf("flushed %#x", flushed)
	}
	fails(s, 0x11008, 8, 0x11008)
	fails(s, 0x10ffc, 8, 0x11000)
	fails(s, 0x12000, 8, 0)
	if s.CodeID(0x11000) != 0 {
		t.Error("code can be executed there")
	}
	if f := s.Write(0x10ffe, []byte{1, 2, 3, 4}); f != (Fault{FaultBeyondEOF, Store, 0x11000}) {
		t.Errorf("a store across: %+v", f)
	}
	if f := s.Inject(0x11008, []byte{7}); f.Kind != FaultNone { // the log's own
		t.Errorf("the log cannot write there: %+v", f)
	}
	then := s.Snapshot()
	s.SetBusError(0x20008)
	fails(s, 0x11008, 8, 0)
	fails(s, 0x20008, 8, 0x20008)
	fails(s, 0x30008, 8, 0) // of an alias the log would say so
	o := then.Open()
	fails(o, 0x11008, 8, 0x11008)
	o.ClearBusError()
	fails(o, 0x11008, 8, 0)
	o.Close()
	s.Restore(then)
	fails(s, 0x11008, 8, 0x11008)
	fails(s, 0x20008, 8, 0)
	then.Release()
}
