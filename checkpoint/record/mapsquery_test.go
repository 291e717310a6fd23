//go:build linux && amd64

package record

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMapsQuery: the kernel says the same of a mapping that is asked for as in its list of all.
func TestMapsQuery(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a \\ name\nof two lines")
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, flags := range []int{unix.MAP_SHARED, unix.MAP_PRIVATE} {
		b, err := unix.Mmap(int(f.Fd()), 4096, 4096, unix.PROT_READ|unix.PROT_WRITE, flags)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Munmap(b)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	var objects objectTable
	list, err := readMaps(os.Getpid(), &objects)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for _, want := range list {
		got, err := readMapsAt(os.Getpid(), want.Start, &objects)
		if errors.Is(err, unix.ENOTTY) {
			return // the list is read then
		}
		if errors.Is(err, unix.ENOENT) && want.Name == "[vsyscall]" {
			continue // it is in the list alone
		}
		if err != nil || got.Start == want.Start && got.End == want.End && !reflect.DeepEqual(got, want) {
			t.Errorf("asked for: %+v, %v; in the list: %+v", got, err, want)
		}
		if reflect.DeepEqual(got, want) {
			same++
		}
	}
	if same < len(list)/2 { // some of Go's own have changed meanwhile
		t.Errorf("%d of %d are the same", same, len(list))
	}
	if _, err := readMapsAt(os.Getpid(), 4096, &objects); !errors.Is(err, unix.ENOENT) {
		t.Errorf("where nothing is mapped: %v", err)
	}
}
