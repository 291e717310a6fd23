package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// The recordings that triggers ask for, and those of a service: their names, none of which is given
// twice, and how many of them stay. The folder itself is coreStore's.

// keeper names recordings in a folder, and deletes the oldest. It may be used from any goroutine.
type keeper struct {
	program string
	quiet   bool

	mu    sync.Mutex
	store coreStore
	last  time.Time // of the last name
}

// newKeeper returns the keeper of recordings of a program, in folder dir.
func newKeeper(program, dir string, f *recordFlags) (*keeper, error) {
	use, err := parseSize(f.trigger.maxUse)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil { // who asks by HTTP has another folder
		return nil, err
	}
	return &keeper{program: filepath.Base(program), quiet: f.quiet, store: coreStore{dir: dir, keep: f.trigger.files, maxUse: use}}, nil
}

// path names the next recording.
func (k *keeper) path(pid int) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := time.Now().Truncate(time.Millisecond)
	if !at.After(k.last) {
		at = k.last.Add(time.Millisecond)
	}
	path := k.store.nameOf(k.program, pid, at, fineTime)
	for ; isThere(path); path = k.store.nameOf(k.program, pid, at, fineTime) {
		at = at.Add(time.Millisecond)
	}
	k.last = at
	return path
}

// isThere reports whether something has a name already.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// tidy deletes what is too much, now that the recording at path is there.
func (k *keeper) tidy(path string) {
	k.mu.Lock()
	removed, err := k.store.tidy(path)
	k.mu.Unlock()
	if err != nil {
		printError(withHint(fmt.Errorf("old recordings: %w", err), exitFailed, "delete some of %s by hand", k.store.dir))
	}
	for _, name := range removed {
		if !k.quiet {
			fmt.Fprintf(stderr, "vplayd: %s: deleted, for newer ones (--keep-files, --max-use)\n", filepath.Join(k.store.dir, name))
		}
	}
}
