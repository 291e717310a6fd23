//go:build !linux

package meter

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Where there is no runner.

var errLinux = errors.New("this measures programs on Linux only")

// Child says that there is no runner here, when it is asked to be one.
func Child() {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		fmt.Fprintln(os.Stderr, errLinux)
		os.Exit(1)
	}
}

func apart(*exec.Cmd) {}

// Process is one of a tree.
type Process struct {
	PID           int
	Name, Program string
}

// Below returns none.
func Below(int) []Process { return nil }

// CPU returns 0.
func (t *Tree) CPU() time.Duration { return 0 }

// PSS fails.
func PSS(int) (int64, error) { return 0, errLinux }

// Oldest returns none.
func (t *Tree) Oldest(string) (Process, bool) { return Process{}, false }
