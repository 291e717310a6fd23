package gdbstub

import (
	"slices"
	"testing"
)

// TestReadSize holds how many bytes reads of a file are answered with: a few
// where a read begins anew, more and more where it goes on, and never more than
// were asked for or fit a packet.
func TestReadSize(t *testing.T) {
	const most = MaxPacket - 32
	f := &openFile{}
	off, sizes := int64(0), []int(nil)
	for range 6 {
		n := f.readSize(most, off)
		off += int64(n)
		f.next = off
		sizes = append(sizes, n)
	}
	if want := []int{firstRead, 2 * firstRead, 4 * firstRead, min(8*firstRead, most), most, most}; !slices.Equal(sizes, want) {
		t.Errorf("in a row: %d, want %d", sizes, want)
	}
	if n := f.readSize(most, 64); n != firstRead {
		t.Errorf("elsewhere: %d", n)
	}
	if n := f.readSize(10, f.next); n != 10 {
		t.Errorf("of 10 bytes: %d", n)
	}
	if n := f.readSize(1<<63, 5); n != firstRead {
		t.Errorf("of too many: %d", n)
	}
}
