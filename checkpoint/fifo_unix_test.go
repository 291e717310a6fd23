//go:build unix

package checkpoint

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFIFO opens a FIFO that nobody writes to: it is refused, and not waited for.
func TestFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo.vplay")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := Open(path)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, ErrNotRecording) || !strings.Contains(err.Error(), "is a FIFO") {
			t.Errorf("a FIFO gives %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("opening a FIFO does not end")
	}
}
