//go:build linux && amd64

package record

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	recorder "vplay/checkpoint/record"
)

// TestHandle has the process that records take snapshots: while the program runs, before it runs, when it
// cannot be started, and after its end.
func TestHandle(t *testing.T) {
	handle, dir := &recorder.Handle{}, t.TempDir()
	early := filepath.Join(dir, "early.vplay")
	asked := make(chan error, 1)
	go func() { asked <- handle.Snapshot(early) }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	while := filepath.Join(dir, "while.vplay")
	opt := recorder.Options{Path: filepath.Join(dir, "crash.vplay"), Handle: handle, Args: []string{"/bin/cat"}}
	opt.Files = []*os.File{r, os.Stdout, os.Stderr}
	results := make(chan error, 2)
	opt.Started = func(int) {
		go func() {
			results <- <-asked
			results <- handle.Snapshot(while)
			w.Close()
		}()
	}
	res, err := recorder.Run(context.Background(), opt)
	if err != nil || res.ExitCode != 0 || res.Recorded {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := <-results; err != nil && !errors.Is(err, recorder.ErrNothingYet) {
		t.Errorf("asked before: %v", err)
	}
	if err := <-results; err != nil {
		t.Errorf("asked while it runs: %v", err)
	}
	t.Log(verify(t, while))
	late := filepath.Join(dir, "late.vplay")
	if err := handle.Snapshot(late); !errors.Is(err, recorder.ErrOver) {
		t.Errorf("after the end: %v", err)
	}
	var start *recorder.StartError
	opt.Args = []string{filepath.Join(dir, "none")}
	if _, err := recorder.Run(context.Background(), opt); !errors.As(err, &start) {
		t.Errorf("a program that is not there: %v", err)
	}
	if err := handle.Snapshot(late); !errors.Is(err, recorder.ErrOver) {
		t.Errorf("of a program that is not there: %v", err)
	}
	if _, err := os.Stat(late); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
}

// TestSnapshotOwnPath: a snapshot may not go to the file that the recording replaces at the end.
func TestSnapshotOwnPath(t *testing.T) {
	p := startAlive(t, compile(t, "attachcrash"))
	a := attach(t, p.pid(), attachOptions{UntilCrash: true})
	if err := recorder.Snapshot(p.pid(), filepath.Join(filepath.Dir(a.path), ".", filepath.Base(a.path))); err == nil {
		t.Error("it was written")
	}
	p.finish("crash")
	if r := a.result(); !r.Recorded {
		t.Fatalf("the end: %+v", r)
	}
	t.Log(verify(t, a.path))
}
