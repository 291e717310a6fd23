package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
)

// The index of a recording, kept beside it with --index: RECORDING.index, and
// RECORDING.PID.index of another process than the recording is about. It can be
// deleted at any time; one of another recording is written anew.

// learn lets the timeline learn about the recording in the background. With keep,
// it begins with what is known from an earlier session, and what is known is kept when all of it is and at the
// end, which is when the function it returns is called.
func learn(c *cobra.Command, d *debug.Session, path string, keep bool) (end func()) {
	t, path := d.Timeline(), indexPath(d, path)
	if !keep {
		t.StartIndexer(nil)
		return func() {}
	}
	loadIndex(t, path, c.ErrOrStderr())
	save := func() {
		if err := saveIndex(t, path); err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "vplayd: the index is not kept: %v\n", err)
		}
	}
	t.StartIndexer(save)
	return func() {
		t.StopIndexer()
		save()
	}
}

// indexPath returns where the index of the session's process is kept, when the recording
// is at path.
func indexPath(d *debug.Session, path string) string {
	if pid := d.Process().PID; pid != d.Recording().Processes()[0].PID {
		path += fmt.Sprintf(".%d", pid)
	}
	return path + ".index"
}

// loadIndex gives a timeline what the index at path knows, and
// says on out what came of it. A file that cannot be used is no error.
func loadIndex(t *replay.Timeline, path string, out io.Writer) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		var known int
		known, err = t.ReadIndex(f)
		_ = f.Close() // it was read only
		if err == nil {
			fmt.Fprintf(out, "vplayd: %s: %d of %s known\n", path, known, text.Plural(len(t.Intervals()), "interval"))
			return
		}
	}
	fmt.Fprintf(out, "vplayd: %s is not used and will be written anew: %v\n", path, err)
}

// saveIndex writes what a timeline knows, if that is anything, to path: as a whole or
// not at all, and readable by its owner only, as the recording is.
func saveIndex(t *replay.Timeline, path string) error {
	if t.Progress().Intervals == 0 {
		return nil
	}
	var b bytes.Buffer
	if _, err := t.WriteIndex(&b); err != nil {
		return err
	}
	return writeWhole(path, b.Bytes(), 0o600)
}
