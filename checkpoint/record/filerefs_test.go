//go:build linux && amd64

package record

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vplay/tests/need"
)

// fileOf returns a file with some content, opened for reading.
func fileOf(t *testing.T, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestLeasedFile: whoever opens a file for writing that the log refers to waits until there is a copy, and the log has what was read.
func TestLeasedFile(t *testing.T) {
	was := bytes.Repeat([]byte("as it was "), 100_000)
	own := fileOf(t, was)
	var l leases
	defer l.close()
	f := l.take(os.Getpid(), int32(own.Fd()))
	need.Machine(t, "a file system with leases", f != nil)
	if again := l.take(os.Getpid(), int32(own.Fd())); again != f {
		t.Fatal("there are two of one file")
	}
	if err := os.WriteFile(own.Name(), []byte("other"), 0o600); err != nil { // it waits
		t.Fatal(err)
	}
	if got, err := f.read(1234, 5000); err != nil || !bytes.Equal(got, was[1234:6234]) {
		t.Errorf("read %q, %v", got[:min(len(got), 10)], err)
	}
	if l.take(os.Getpid(), int32(own.Fd())) != nil {
		t.Error("a file that others change is referred to again")
	}
	f.unuse()
	f.unuse()
	if _, err := f.read(0, 1); err == nil {
		t.Error("it can be read though nobody uses it")
	}
}

// TestLeaseWhileWritten: there is no lease on a file that somebody may be writing to.
func TestLeaseWhileWritten(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var l leases
	defer l.close()
	if l.take(os.Getpid(), int32(f.Fd())) != nil {
		t.Error("there is a lease on a file that is open for writing")
	}
}

// TestLeaseEnds: nobody waits for a recorder that has ended its recording.
func TestLeaseEnds(t *testing.T) {
	own := fileOf(t, make([]byte, 1000))
	var l leases
	need.Machine(t, "a file system with leases", l.take(os.Getpid(), int32(own.Fd())) != nil)
	l.close()
	began := time.Now()
	if err := os.Truncate(own.Name(), 0); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
