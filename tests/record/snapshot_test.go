//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	recorder "vplay/checkpoint/record"
)

// TestSnapshot has a recorder write what it holds while the program runs on, several times, whatever
// the program does: each file replays exactly, and so does what is recorded at the end.
func TestSnapshot(t *testing.T) {
	for _, c := range []struct {
		name string
		args func(t *testing.T) []string
		line string // that ends the program
	}{
		{"threads that compute", func(t *testing.T) []string { return []string{compile(t, "attachlocks")} }, "go"},
		{"threads that wait", func(t *testing.T) []string { return []string{compile(t, "attachwaits")} }, "go"},
		{"one thread that waits", func(t *testing.T) []string { return []string{compile(t, "attachalarm"), "restart"} }, "x"},
		{"a thread without calls, a crash", func(t *testing.T) []string { return []string{compile(t, "attachcrash")} }, "crash"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := c.args(t)
			want := startAlive(t, args...).finish(c.line)
			p := startAlive(t, args...)
			a := attach(t, p.pid(), attachOptions{})
			var paths []string
			for i := range 3 {
				path := filepath.Join(t.TempDir(), fmt.Sprint(i, ".vplay"))
				of := p.pid()
				if i == 1 {
					of = a.cmd.Process.Pid
				}
				if err := recorder.Snapshot(of, path); err != nil {
					t.Fatal(err)
				}
				paths = append(paths, path)
			}
			if c.line == "crash" {
				same(t, p.finish(c.line), want)
				if r := a.result(); !r.Recorded || r.Signal != int(syscall.SIGSEGV) {
					t.Fatalf("the end: %+v", r)
				}
			} else {
				a.end()
				same(t, p.finish(c.line), want)
			}
			for _, path := range append(paths, a.path) {
				t.Log(verify(t, path))
			}
		})
	}
}

// TestSnapshotOfLoop takes snapshots of a program that makes no call.
func TestSnapshotOfLoop(t *testing.T) {
	p := startAlive(t, compile(t, "attachcrash"))
	if _, err := p.stdin.Write([]byte("no crash\n")); err != nil {
		t.Fatal(err)
	}
	inState(t, p.pid(), "R")
	a := attach(t, p.pid(), attachOptions{UntilCrash: true})
	for i := range 3 {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i, ".vplay"))
		if err := recorder.Snapshot(p.pid(), path); err != nil {
			t.Fatal(err)
		}
		t.Log(verify(t, path))
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if o := p.finish(""); o.sig != int(syscall.SIGTERM) {
		t.Errorf("it ends with %+v", o)
	}
	if r := a.result(); !r.Recorded || r.Signal != int(syscall.SIGTERM) {
		t.Fatalf("the end: %+v", r)
	}
	t.Log(verify(t, a.path))
}

// TestSnapshotRefused: without a recorder, or of one that keeps everything, there is none, and no
// file is left.
func TestSnapshotRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.vplay")
	p := startAlive(t, compile(t, "attachlocks"))
	var none *recorder.NoRecorderError
	if err := recorder.Snapshot(p.pid(), path); !errors.As(err, &none) {
		t.Errorf("without a recorder: %v", err)
	}
	a := attach(t, p.pid(), attachOptions{Keep: recorder.KeepAlways})
	if err := recorder.Snapshot(p.pid(), path); err == nil || errors.As(err, &none) {
		t.Errorf("of one that keeps everything: %v", err)
	}
	if err := recorder.Snapshot(p.pid(), "/"); err == nil {
		t.Error("a folder was written")
	}
	a.end()
	if err := recorder.Snapshot(p.pid(), path); !errors.As(err, &none) {
		t.Errorf("after its end: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	if o := p.finish("go"); o.code != 5 {
		t.Errorf("it ends with %+v", o)
	}
}
