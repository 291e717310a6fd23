// Package tool is what the tests of the whole have in common: the command
// built from this tree, and a recording replayed without it.
//
// Every test package builds its own copy of the command into a folder that it
// removes itself: the go command's cache makes that cheap, and no test can find a
// command that is older than its sources. The packages beside the repository's
// tests (gdbstub, checkpoint, replay/x86) cannot import it and do not: they test
// themselves without the command.
package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"vplay/checkpoint"
	"vplay/replay"
)

// Build builds vplayd into the folder dir and returns its path: without cgo, as
// it is shipped, or with the race detector in a test that runs with it. The error
// holds what the go command printed.
func Build(dir string) (path string, err error) { return build(dir, raceFlags, raceEnv) }

// Main runs the tests of a package with vplayd, which is built into a folder of its own, and ends
// the process.
func Main(m interface{ Run() int }, vplayd *string) { os.Exit(run(m, vplayd)) }

func run(m interface{ Run() int }, vplayd *string) int {
	dir, err := os.MkdirTemp("", "vplay-tests")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the folder for temporary files
	if *vplayd, err = Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// BuildShipped is Build as vplayd is shipped, whatever the test runs with: for tests of what
// vplayd itself takes.
func BuildShipped(dir string) (path string, err error) { return build(dir, nil, shippedEnv) }

// shippedEnv is the environment in which vplayd is built to be shipped.
var shippedEnv = []string{"CGO_ENABLED=0"}

func build(dir string, flags, env []string) (path string, err error) {
	path = filepath.Join(dir, "vplayd")
	args := append([]string{"build", "-o", path}, flags...)
	cmd := exec.Command("go", append(args, "vplay/cmd/vplayd")...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// Verify replays every interval of a recording from its own start and returns
// a result per interval, in order; a result's Err is nil when it is exact. The
// error is about the recording as a whole, or ctx's.
func Verify(ctx context.Context, rec *checkpoint.Recording, o replay.VerifyOptions) (results []replay.Result, err error) {
	s, err := replay.NewSession(rec)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var faults []error
	defer func() { err = errors.Join(append(faults, err, s.Close())...) }()
	s.Engine, err = chosen(func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, fmt.Errorf(format, args...))
	})
	if err != nil {
		return nil, err
	}
	return replay.Verify(ctx, s, o)
}
