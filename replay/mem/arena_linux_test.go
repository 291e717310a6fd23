package mem

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// TestSmallPages: the host's pages behind the arena are small ones: there are no large pages behind chunks that are in
// use, and none are asked for.
func TestSmallPages(t *testing.T) {
	p := NewPool()
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	var at uint64
	for range 2 * chunkPages {
		page := p.page(p.alloc(anonymous))
		page[0] = 1
		at = uint64(uintptr(unsafe.Pointer(page)))
	}
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	var inside, found bool
	for line := range strings.Lines(string(text)) {
		var start, end uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &start, &end); n == 2 {
			inside = start <= at && at < end
			found = found || inside
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if inside && (name == "AnonHugePages" && value != "0 kB" || name == "VmFlags" && strings.Contains(" "+value+" ", " hg ")) {
			t.Errorf("%s: %s", name, value)
		}
	}
	if !found {
		t.Errorf("the page at %#x is in no mapping", at)
	}
}

// TestTouchedAhead: the host is asked for pages of the arena by the sixteen, as far as its kernel can do that.
func TestTouchedAhead(t *testing.T) {
	p := NewPool()
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range touchedAhead { // those of the first page number, 0, are never handed out
		p.page(p.alloc(anonymous))[0] = 1
	}
	b := p.chunks[0].bytes[touchedAhead*PageSize:][:2*touchedAhead*PageSize]
	var there [2 * touchedAhead]byte
	if _, _, e := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&there[0]))); e != 0 {
		t.Fatal(e)
	}
	want := 1
	if syscall.Madvise(b[:PageSize], madvPopulateWrite) == nil {
		want = touchedAhead
	}
	n := 0
	for _, x := range there {
		n += int(x & 1)
	}
	if n != want {
		t.Errorf("%d pages are there, want %d", n, want)
	}
}
