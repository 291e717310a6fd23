//go:build linux && amd64

package record

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// TestPlanVDSO changes a copy of this process's own vdso: each change stays inside, begins with what is
// there, and each function's jump leads to its own code. A vdso whose last bytes are in use is
// refused; one that has the code already, as an attach leaves it, is not.
func TestPlanVDSO(t *testing.T) {
	list, err := readMaps(os.Getpid(), &objectTable{})
	if err != nil {
		t.Fatal(err)
	}
	var image []byte
	for _, m := range list {
		if m.Name != vdsoName {
			continue
		}
		mem, mm, err := ptraceSource{}.open(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		defer mem.close()
		defer mm.close()
		image = make([]byte, m.End-m.Start)
		if n, err := mem.readAt(image, m.Start); n != len(image) {
			t.Fatal(n, err)
		}
	}
	const start = 0x7fff00000000
	plan, err := planVDSO(image, start)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan) < 2 {
		t.Fatalf("%d changes", len(plan))
	}
	after := bytes.Clone(image)
	for i, p := range plan {
		at := p.addr - start
		if !bytes.Equal(image[at:][:len(p.old)], p.old) || len(p.old) != len(p.now) {
			t.Errorf("change %d at %#x replaces % x", i, at, p.old)
		}
		copy(after[at:], p.now)
		if i == 0 {
			continue
		}
		to := p.addr + entryJump + uint64(int64(int32(le32(p.now[1:]))))
		if off := to - plan[0].addr; p.now[0] != 0xe9 || off%vdsoStubSize != 0 || off >= uint64(len(plan[0].now)) {
			t.Errorf("change %d: % x leads to %#x", i, p.now, to)
		}
	}
	left := bytes.Clone(image)
	copy(left[plan[0].addr-start:], plan[0].now)
	if _, err := planVDSO(left, start); err != nil {
		t.Errorf("with the code of an earlier attach: %v", err)
	}
	full := bytes.Clone(image)
	full[len(full)-1] = 1
	var r *refusal
	if _, err := planVDSO(full, start); !errors.As(err, &r) {
		t.Errorf("without room: %v", err)
	}
}
