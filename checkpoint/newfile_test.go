package checkpoint

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"vplay/tests/need"
)

// fileSystems are the kinds of systems that newFile knows: one that has no
// files without a name, one that has them and cannot link them, and this one.
var fileSystems = map[string]unnamedFiles{
	"hidden": {
		open: func(string) (*os.File, error) { return nil, errors.ErrUnsupported },
	},
	"copied": {
		open: func(dir string) (*os.File, error) {
			f, err := os.CreateTemp(dir, "unnamed")
			if err == nil && runtime.GOOS != "windows" {
				err = os.Remove(f.Name())
			}
			return f, err
		},
		link: func(*os.File, string) error { return errors.ErrUnsupported },
	},
	"system": systemFiles,
}

// onEach runs f on each kind of system, in an empty folder.
func onEach(t *testing.T, f func(t *testing.T, path string, sys unnamedFiles)) {
	for name, sys := range fileSystems {
		t.Run(name, func(t *testing.T) {
			if name == "copied" {
				needRemovesOpen(t)
			}
			f(t, filepath.Join(t.TempDir(), "x"), sys)
		})
	}
}

// needRemovesOpen wants a system on which a file can be removed while it is open.
func needRemovesOpen(t *testing.T) {
	t.Helper()
	need.Machine(t, "a system that removes open files", runtime.GOOS != "windows")
}

// names lists a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	var list []string
	for _, e := range must(os.ReadDir(dir)) {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

// put creates a file at path with some text, up to publish.
func put(t *testing.T, path, text string, overwrite bool, sys unnamedFiles) *newFile {
	t.Helper()
	n, err := createFile(path, overwrite, sys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return n
}

// wantFile wants the folder of path to hold it alone, with this text and
// nobody else's to read.
func wantFile(t *testing.T, path, text string) {
	t.Helper()
	if got := string(must(os.ReadFile(path))); got != text {
		t.Errorf("the file holds %q, want %q", got, text)
	}
	if got := names(t, filepath.Dir(path)); got != filepath.Base(path) {
		t.Errorf("the folder holds %q", got)
	}
	if mode := must(os.Stat(path)).Mode(); runtime.GOOS != "windows" && mode.Perm() != 0o600 {
		t.Errorf("mode %v", mode)
	}
}

func TestPublish(t *testing.T) {
	onEach(t, func(t *testing.T, path string, sys unnamedFiles) {
		for _, text := range []string{"first", "second"} {
			if err := put(t, path, text, true, sys).publish(); err != nil {
				t.Fatal(err)
			}
			wantFile(t, path, text)
		}
	})
}

func TestPublishReplacesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, path string, sys unnamedFiles) {
		needRemovesOpen(t) // the other writer's
		n := put(t, path, "late", false, sys)
		if err := put(t, path, "early", true, systemFiles).publish(); err != nil {
			t.Fatal(err)
		}
		if err := n.publish(); !errors.Is(err, fs.ErrExist) {
			t.Errorf("publish: %v", err)
		}
		if err := n.discard(); err != nil {
			t.Error(err)
		}
		wantFile(t, path, "early")
		if _, err := createFile(path, false, sys); !errors.Is(err, fs.ErrExist) {
			t.Errorf("create: %v", err)
		}
	})
}

// TestPublishInTheWay: a device is never replaced. A link to a folder is replaced as any link is: record refuses neither before the
// program runs, and a recording must not be lost at its end.
func TestPublishInTheWay(t *testing.T) {
	if _, err := createFile(os.DevNull, true, systemFiles); err == nil {
		t.Errorf("%s may be replaced", os.DevNull)
	}
	onEach(t, func(t *testing.T, path string, sys unnamedFiles) {
		need.Machine(t, "symbolic links", os.Symlink(t.TempDir(), path) == nil)
		if err := put(t, path, "first", true, sys).publish(); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path, "first")
	})
}

func TestDiscardLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, path string, sys unnamedFiles) {
		if err := put(t, path, "text", true, sys).discard(); err != nil {
			t.Fatal(err)
		}
		if got := names(t, filepath.Dir(path)); got != "" {
			t.Errorf("left behind: %s", got)
		}
	})
}

// TestLeftover: what a killed writer left at the hidden name is in nobody's way.
func TestLeftover(t *testing.T) {
	onEach(t, func(t *testing.T, path string, sys unnamedFiles) {
		for _, text := range []string{"first", "second"} { // the second replaces the first
			n := put(t, path, text, true, sys)
			if n.hidden == nil {
				if err := os.WriteFile(n.tmp, []byte("left"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := n.publish(); err != nil {
				t.Fatal(err)
			}
			if err := removed(n.tmp); err != nil {
				t.Fatal(err)
			}
			wantFile(t, path, text)
		}
	})
}

// TestLinkReplacesNothing: not even a file that appears after the last look.
func TestLinkReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	n := put(t, path, "late", false, systemFiles)
	defer func() { _ = n.discard() }()
	need.Machine(t, "a file system with files without a name", n.hidden == nil)
	if err := put(t, path, "early", false, systemFiles).publish(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.link(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("link: %v", err)
	}
	wantFile(t, path, "early")
}

// TestTwoWriters: the later one takes the hidden name over; the earlier one must
// notice, and must not take it away.
func TestTwoWriters(t *testing.T) {
	needRemovesOpen(t)
	sys := fileSystems["hidden"]
	path := filepath.Join(t.TempDir(), "x")
	a := put(t, path, "a", true, sys)
	b := put(t, path, "b", true, sys)
	if err := a.publish(); err == nil || !strings.Contains(err.Error(), "another writer") {
		t.Errorf("got %v", err)
	}
	if err := a.discard(); err != nil {
		t.Error(err)
	}
	if err := b.publish(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "b")
}

// killedWriter is the variable that makes the test binary write a recording
// to the path it holds, until it is killed.
const killedWriter = "VPLAY_TEST_KILLED_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(killedWriter); path != "" {
		writeForEver(path)
	}
	os.Exit(m.Run())
}

func writeForEver(path string) {
	w := must(Create(path, WriterOptions{}))
	var page [PageSize]byte
	for i := 0; ; i++ {
		binary.LittleEndian.PutUint64(page[:], uint64(i+1))
		must(w.AddPage(page[:]))
		if i == 10000 { // some blocks are in the file
			must(os.Stdout.WriteString("writing\n"))
		}
	}
}

// TestKilledWriter kills a writer in the middle, by a signal that it cannot
// catch: nothing is left.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	f, err := systemFiles.open(dir)
	need.Machine(t, "a file system with files without a name", err == nil)
	f.Close()
	cmd := exec.Command(must(os.Executable()))
	cmd.Env = append(os.Environ(), killedWriter+"="+filepath.Join(dir, "x.vplay"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if got := names(t, dir); got != "" {
		t.Errorf("left behind: %s", got)
	}
}
