//go:build linux && amd64

package record

import "path/filepath"

// How the program that uses this package asks its own recorder for snapshots. Other processes
// do it by a socket (control.go).

// Handle asks the recording whose Options.Handle it is for snapshots. The zero value is ready. It may be used
// from any goroutine, and for one recording after another, not for two at a time.
type Handle struct{ asks asks }

// Snapshot has what is recorded by now written to the file at path, and waits until that is done.
// The program runs on. Before the recording begins it waits for that. The errors are ErrOver, ErrBusy,
// ErrNothingYet, and those of writing.
func (h *Handle) Snapshot(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	return h.asks.snapshot(path)
}

// queue returns what a session takes requests from.
func (h *Handle) queue() *asks {
	if h == nil {
		return &asks{}
	}
	h.asks.begin()
	return &h.asks
}
