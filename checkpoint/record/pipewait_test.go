//go:build linux && amd64

package record

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReadableInterrupted: signals to the recorder say nothing of a pipe.
func TestReadableInterrupted(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid, end, ended := unix.Gettid(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG)
			}
		}
	}()
	for range 20_000 {
		if isReadable(r) {
			t.Error("an empty pipe is readable")
			break
		}
	}
	close(end)
	<-ended
	if _, err := w.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if !isReadable(r) {
		t.Error("a pipe that holds a byte is not readable")
	}
}
