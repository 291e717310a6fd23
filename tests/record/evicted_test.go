//go:build linux && amd64

package record

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vplay/tests/need"
)

// evictedPages is how many pages TestEvicted maps.
const evictedPages = 32

// TestEvicted has the kernel take the pages of a mapped file out of the page tables after
// the program has read them, as it does under memory pressure. At the end of the
// interval the tables do not show that they were read.
func TestEvicted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mapped")
	content := bytes.Repeat([]byte("vplay"), evictedPages*os.Getpagesize()/5)
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil { // a dirty page is not taken
		t.Fatal(err)
	}
	ready, resume := filepath.Join(dir, "ready"), filepath.Join(dir, "go")
	evicted := make(chan error, 1)
	r := run{args: []string{compile(t, "evicted"), file, ready, resume}}
	r.opt.Interval = time.Hour
	r.kick = func(pid int) {
		evicted <- evict(pid, ready)
		if err := os.WriteFile(resume, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	got, res := r.recorded(t)
	if err := <-evicted; err != nil {
		need.Machine(t, "a kernel that takes pages of mapped files away when asked: "+err.Error(), false)
	}
	if got.code != 0 || res.Stats.Gaps != 0 {
		t.Errorf("ended with %d, %d gaps", got.code, res.Stats.Gaps)
	}
	verify(t, res.Path)
}

// evict takes the pages that a process has mapped out of its page tables. The process
// writes their address to the file ready.
func evict(pid int, ready string) error {
	var addr uint64
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(ready) // it is not there yet
		if n, _ := fmt.Sscanf(string(b), "0x%x\n", &addr); n == 1 {
			break
		}
		if time.Now().After(end) {
			return os.ErrDeadlineExceeded
		}
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	size := evictedPages * os.Getpagesize()
	iov := [1]struct{ base, len uint64 }{{addr, uint64(size)}} // struct iovec, man 2 process_madvise
	_, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&iov)), 1, unix.MADV_PAGEOUT, 0, 0)
	if errno != 0 {
		return errno
	}
	return gone(pid, addr, evictedPages)
}

// gone fails when one of n pages from addr on is in the page tables of a process
// (Documentation/admin-guide/mm/pagemap.rst).
func gone(pid int, addr uint64, n int) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 8*n)
	if _, err := f.ReadAt(b, int64(addr)/int64(os.Getpagesize())*8); err != nil {
		return err
	}
	for i := 7; i < len(b); i += 8 {
		if b[i]&0x80 != 0 {
			return fmt.Errorf("page %d of %d is still there", i/8, n)
		}
	}
	return nil
}
