//go:build linux && amd64

package record

import (
	"bytes"
	"testing"
)

// TestSegvFits: the handler, which ends with rt_sigreturn(2) and an INT 3, fits in the room in front of its actions.
func TestSegvFits(t *testing.T) {
	const at = 0x7fff00000e00
	b := segvImage(at)
	end := []byte{0xb8, 15, 0, 0, 0, 0x0f, 0x05, 0xcd, 3} // MOV EAX, 15; SYSCALL; INT 3
	if i := bytes.Index(b[:segvCode], end); len(b) != segvSize || i < 0 {
		t.Errorf("its end is at %d of %d bytes", i, len(b))
	}
	if le64(b[segvAction:]) != at || !bytes.Equal(b[segvDefault:], make([]byte, 32)) {
		t.Errorf("actions: %x", b[segvAction:])
	}
}
