package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vplay/checkpoint"
	"vplay/tests/processes"
)

// The scripts of testdata/script run vplayd as a shell would. Next to
// testscript's own commands they have: fails, exits, only, newer, cut, elf32,
// waitfor, answers, usedport, setuid, fulldisk. $FAMILY is a recording of several
// processes, $ALONE one of one, $CORE a core file.

func TestMain(m *testing.M) {
	if launch(os.Args) {
		return
	}
	testscript.Main(m, map[string]func(){
		"vplayd": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			os.Exit(run(ctx, os.Args[1:]))
		},
		"noptrace": noPtrace,
	})
}

func TestScripts(t *testing.T) {
	family := processes.Write(t, processes.Options{})
	alone := processes.Write(t, processes.Options{Alone: processes.Parent})
	core, err := filepath.Abs(filepath.Join("..", "..", "checkpoint", "corefile", "testdata", "small.core"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Setup: func(e *testscript.Env) error {
			e.Setenv("FAMILY", family)
			e.Setenv("ALONE", alone)
			e.Setenv("CORE", core)
			return nil
		},
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Condition:           condition,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"fails": scriptFails, "exits": scriptExits, "only": scriptOnly, "newer": scriptNewer, "cut": scriptCut,
			"elf32": scriptELF32, "waitfor": scriptWaitFor, "answers": scriptAnswers, "usedport": scriptUsedPort, "setuid": scriptSetuid, "fulldisk": scriptFullDisk,
		},
	})
}

// condition knows [record], whether this system has a recorder, [mount],
// whether a small file system can be mounted, and [unnamed], whether the
// temporary folder can have files without a name.
func condition(cond string) (bool, error) {
	switch cond {
	case "record":
		return canRecord, nil
	case "mount":
		return canMount(), nil
	case "unnamed":
		return hasUnnamed(os.TempDir()), nil
	}
	return false, errors.New("unknown condition")
}

func canMount() bool {
	dir, err := os.MkdirTemp("", "vplay-mount")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	unmount, err := mountSmall(dir, "4k")
	if err != nil {
		return false
	}
	unmount()
	return true
}

// runFor runs a command and returns its exit code, 128+N when signal N killed it.
func runFor(ts *testscript.TestScript, args []string) int {
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && exit.ExitCode() < 0 {
			return 128 + int(ws.Signal())
		}
		return exit.ExitCode()
	}
	ts.Fatalf("%v", err)
	return -1
}

// scriptExits is "exits CODE COMMAND...".
func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := runFor(ts, args[1:]); got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

var oneError = regexp.MustCompile(`\Avplayd: error: .+\nvplayd: hint: .+\n\z`)

// scriptFails is "fails CODE PATTERN COMMAND...": besides the exit code, standard
// error is one line with an error that matches, and one with a hint.
func scriptFails(ts *testscript.TestScript, neg bool, args []string) {
	scriptExits(ts, neg, append(args[:1:1], args[2:]...))
	text := ts.ReadFile("stderr")
	if !oneError.MatchString(text) {
		ts.Fatalf("not one error and one hint:\n%s", text)
	}
	if !regexp.MustCompile(args[1]).MatchString(text) {
		ts.Fatalf("the error does not match %s:\n%s", args[1], text)
	}
}

// scriptOnly is "only NAME...": the current folder holds these, and nothing else
// that is or may become a recording.
func scriptOnly(ts *testscript.TestScript, _ bool, args []string) {
	list, err := os.ReadDir(ts.MkAbs("."))
	ts.Check(err)
	var got []string
	for _, e := range list {
		if strings.Contains(e.Name(), "vplay") && !e.IsDir() {
			got = append(got, e.Name())
		}
	}
	if strings.Join(got, " ") != strings.Join(args, " ") {
		ts.Fatalf("the folder holds %q, want %q", got, args)
	}
}

// scriptNewer is "newer IN OUT": a copy in the next format version.
func scriptNewer(ts *testscript.TestScript, _ bool, args []string) {
	zr, err := zip.OpenReader(ts.MkAbs(args[0]))
	ts.Check(err)
	defer zr.Close()
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	for _, f := range zr.File {
		r, err := f.Open()
		ts.Check(err)
		data, err := io.ReadAll(r)
		ts.Check(err)
		if strings.HasPrefix(f.Name, "manifest") {
			var doc map[string]any
			ts.Check(json.Unmarshal(data, &doc))
			doc["recording"].(map[string]any)["version"] = checkpoint.FormatVersion + 1
			data, err = json.Marshal(doc)
			ts.Check(err)
		}
		w, err := zw.CreateRaw(&zip.FileHeader{
			Name: f.Name, CRC32: crc32.ChecksumIEEE(data), CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data)),
		})
		ts.Check(err)
		_, err = w.Write(data)
		ts.Check(err)
	}
	ts.Check(zw.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out.Bytes(), 0o600))
}

// scriptCut is "cut SIZE IN OUT": the first SIZE bytes.
func scriptCut(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b[:n], 0o600))
}

// scriptELF32 is "elf32 FILE": an executable whose header says 32 bits.
func scriptELF32(ts *testscript.TestScript, _ bool, args []string) {
	b := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 100)...)
	b[16], b[18] = 2, 3
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o755))
}

// scriptUsedPort is "usedport": $USED is an address that something listens on.
func scriptUsedPort(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv("USED", l.Addr().String())
}

// scriptSetuid is "setuid FILE": $SETUID is a program with the bit that belongs to
// someone else: FILE for root, else one of the system's.
func scriptSetuid(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	if os.Getuid() == 0 {
		ts.Check(os.Chown(name, 65534, 65534))
		ts.Check(os.Chmod(name, 0o755|os.ModeSetuid))
		ts.Setenv("SETUID", name)
		return
	}
	for _, p := range []string{"/usr/bin/passwd", "/usr/bin/su", "/bin/su"} {
		if st, err := os.Stat(p); err == nil && st.Mode()&os.ModeSetuid != 0 {
			ts.Setenv("SETUID", p)
			return
		}
	}
	ts.Fatalf("no setuid program found; this test needs root or /usr/bin/passwd")
}

// scriptFullDisk is "fulldisk DIR SIZE": an empty file system of that size.
func scriptFullDisk(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	unmount, err := mountSmall(dir, args[1])
	ts.Check(err)
	ts.Defer(unmount)
}

// scriptWaitFor is "waitfor FILE": until it is there, 20 seconds at most.
func scriptWaitFor(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Lstat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not appear", args[0])
		}
	}
}

// scriptAnswers is "answers SOCKET FILE": what listens there answers what the file
// says, with the line ends of the Debug Adapter Protocol, in 20 seconds at most.
func scriptAnswers(ts *testscript.TestScript, _ bool, args []string) {
	scriptWaitFor(ts, false, args[:1])
	c, err := net.Dial("unix", ts.MkAbs(args[0]))
	ts.Check(err)
	defer c.Close()
	ts.Check(c.SetDeadline(time.Now().Add(20 * time.Second)))
	_, err = c.Write([]byte(strings.ReplaceAll(strings.TrimSpace(ts.ReadFile(args[1])), "\n", "\r\n")))
	ts.Check(err)
	_, err = c.Read(make([]byte, 1))
	ts.Check(err)
}
