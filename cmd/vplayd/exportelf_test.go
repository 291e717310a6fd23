package main

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/tests/need"
)

// modulesRecording writes a recording in which n modules of a megabyte are mapped,
// of which the first page and the last were captured. name is the first one's path.
func modulesRecording(t *testing.T, n int, name string) string {
	t.Helper()
	const length = 1 << 20
	rec := filepath.Join(t.TempDir(), "modules.vplay")
	w, err := checkpoint.Create(rec, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := w.AddPage(elfHeader(length))
	if err != nil {
		t.Fatal(err)
	}
	start := checkpoint.Context{TID: 1, OrigRAX: -1, XState: make([]byte, 832)}
	iv := &checkpoint.Interval{PID: 1, Start: []checkpoint.Context{start}, End: checkpoint.End{Kind: checkpoint.EndSync, Contexts: []checkpoint.Context{start}}}
	for i := range n {
		at := uint64(1<<32 + 2*i*length)
		path := name
		if i > 0 {
			path = fmt.Sprintf("/lib/%d.so", i)
		}
		if err := w.AddObject(checkpoint.Object{ID: uint32(i + 1), Kind: checkpoint.ObjectFile, Path: path, Size: length}); err != nil {
			t.Fatal(err)
		}
		iv.Maps = append(iv.Maps, checkpoint.Mapping{Start: at, End: at + length, Prot: 5, Object: uint32(i + 1), Name: path})
		for _, a := range []uint64{at, at + length - checkpoint.PageSize} {
			iv.Pages = append(iv.Pages, checkpoint.PageEntry{Addr: a, Ref: ref})
		}
	}
	if err := w.AddInterval(iv); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(checkpoint.Manifest{PID: 1, Program: name, CPU: checkpoint.Identity{Vendor: "GenuineIntel", XCR0: 7}}); err != nil {
		t.Fatal(err)
	}
	return rec
}

// elfHeader is the first page of a library with one segment.
func elfHeader(length uint64) []byte {
	b := make([]byte, checkpoint.PageSize)
	copy(b, "\x7fELF\x02\x01\x01")
	le := binary.LittleEndian
	for at, v := range map[int]uint16{16: uint16(elf.ET_DYN), 18: uint16(elf.EM_X86_64), 52: 64, 54: 56, 56: 1} {
		le.PutUint16(b[at:], v)
	}
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[32:], 64)
	le.PutUint32(b[64:], uint32(elf.PT_LOAD))
	le.PutUint32(b[68:], 5)
	for i, v := range []uint64{0, 0, 0, length, length, checkpoint.PageSize} {
		le.PutUint64(b[72+8*i:], v)
	}
	return b
}

// written returns the sum of the sizes of the files below dir, all of which must
// be for their owner only.
func written(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err == nil && st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", p, st.Mode())
		}
		sum += st.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestExportMode exports over files that everybody may read: what was in memory is
// for the owner only.
func TestExportMode(t *testing.T) {
	need.LinuxAMD64(t)
	rec, dir := modulesRecording(t, 2, "/bin/app"), t.TempDir()
	for _, name := range []string{"bin/app", "one.elf"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"export-elf", "--no-sandbox", "--all", dir, rec}, {"export-elf", "--no-sandbox", "-o", filepath.Join(dir, "one.elf"), rec}} {
		if out, code := vplaydHere(t, args...); code != 0 {
			t.Errorf("%v: exit code %d\n%s", args, code, out)
		}
	}
	if sum := written(t, dir); sum < 3<<20 {
		t.Errorf("%d bytes", sum)
	}
}

// TestExportSum exports 40 modules of a megabyte with a limit of 32.
func TestExportSum(t *testing.T) {
	need.LinuxAMD64(t)
	rec, dir := modulesRecording(t, 40, "/bin/app"), t.TempDir()
	out, code := vplaydHere(t, "export-elf", "--no-sandbox", "--limit", "32M", "--all", dir, rec)
	if code != exitDamaged || !strings.Contains(out, "limit of 32 MiB") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if sum := written(t, dir); sum > 32<<20 || sum < 16<<20 {
		t.Errorf("%d bytes were written", sum)
	}
}

// vplaydHere runs a command line in this process, and returns what it says on
// standard error, and its exit code. Verbs must be told --no-sandbox: the tests behind
// this one need the rights that it would give up.
func vplaydHere(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	was := os.Stdout
	os.Stdout = null // run closes it
	out = heard(t, func() { code = run(context.Background(), args) })
	os.Stdout = was
	return out, code
}

// TestLaunchVariables has names in a recording that VS Code would replace, or run.
func TestLaunchVariables(t *testing.T) {
	need.Program(t, "gcc")
	dir := t.TempDir()
	src, obj := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.so")
	for folder, mapped := range map[string]bool{
		"/build/${command:workbench.action.terminal.new}": false,
		"/build/${env:HOME}":                              false,
		"/build/\x1b]0;title":                             false,
		"/build/plain":                                    true,
	} {
		if err := os.WriteFile(src, []byte("int f(int a) { return a; }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("gcc", "-g", "-shared", "-fdebug-prefix-map="+dir+"="+folder, "-o", obj, "a.c")
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		image, err := os.ReadFile(obj)
		if err != nil {
			t.Fatal(err)
		}
		if got := sourceMap(image, nil); (got[folder] == workspace) != mapped || len(got) > 1 || !mapped && len(got) > 0 {
			t.Errorf("compiled in %q: %q", folder, got)
		}
	}
	if out, code := vplaydHere(t, "vscode", "--dir", dir, modulesRecording(t, 1, "/bin/${command:x}")); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, ".vscode", "launch.json"))
	if err != nil || !json.Valid(text) {
		t.Fatalf("%v\n%s", err, text)
	}
	if rest := strings.ReplaceAll(string(text), workspace, ""); strings.Contains(rest, "${") {
		t.Errorf("VS Code would replace what a recording says:\n%s", text)
	}
}
