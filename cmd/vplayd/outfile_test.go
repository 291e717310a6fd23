package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vplay/tests/need"
)

// wantText fails when a file does not hold a text.
func wantText(t *testing.T, name, text string) {
	t.Helper()
	if b, err := os.ReadFile(name); err != nil || string(b) != text {
		t.Errorf("%s: %q, %v, want %q", name, b, err, text)
	}
}

func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	for _, text := range []string{"longer", "short"} {
		if err := writeWhole(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wantText(t, name, text)
	}
	if err := writeWhole(dir, nil, 0o600); err == nil {
		t.Error("a folder was written")
	}
	if err := writeWhole(filepath.Join(dir, "none", "x"), nil, 0o600); err == nil {
		t.Error("a file was written in a folder that is not there")
	}
	o, err := createOut(name)
	if err != nil {
		t.Fatal(err)
	}
	o.discard()
	wantText(t, name, "short")
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("files are left: %v, %v", list, err)
	}
}

// TestWriteLink: a symbolic link is followed, as other programs do. It was replaced by a file once, /dev/stdout among them.
func TestWriteLink(t *testing.T) {
	dir := t.TempDir()
	link, name := filepath.Join(dir, "link"), filepath.Join(dir, "out")
	need.Machine(t, "symbolic links", os.Symlink(name, link) == nil)
	for _, text := range []string{"longer", "short"} {
		if err := writeWhole(link, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wantText(t, name, text)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", st.Mode(), err)
	}
}

// TestWriteErrors: an error names the file that was asked for, and not that which is there until all is written. On a full
// disk the advice is to make room.
func TestWriteErrors(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	o, err := createOut(name)
	if err != nil {
		t.Fatal(err)
	}
	_ = o.Close()
	if _, err := o.Write([]byte("x")); err == nil || !strings.HasPrefix(err.Error(), "cannot write "+name+": ") {
		t.Errorf("a closed file: %v", err)
	}
	o.discard()
	var hint hintError
	if err := writeError(name, &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}); !errors.As(err, &hint) || !strings.HasPrefix(hint.hint, "make room") {
		t.Errorf("a full disk: %v, %q", err, hint.hint)
	}
}
