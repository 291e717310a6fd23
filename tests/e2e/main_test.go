package e2e

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	realgdb "vplay/tests/gdb"
	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// vplayd is the path of the command under test.
var vplayd string

func TestMain(m *testing.M) { tool.Main(m, &vplayd) }

// guest is a compiled program of tests/guest.
type guest struct {
	dir    string // a folder of its own
	name   string
	bin    string
	source []string // lines
	args   []string // it is run with
}

// compile compiles tests/guest/NAME.c or NAME.cc, where NAME may have a folder, into a folder of the test's.
func compile(t testing.TB, name string, flags ...string) *guest {
	t.Helper()
	need.Recorder(t)
	compiler := "gcc"
	src := filepath.Join("..", "guest", name+".c")
	if _, err := os.Stat(src); err != nil {
		compiler, src = "g++", src+"c"
	}
	need.Program(t, compiler)
	text, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{name: name, dir: t.TempDir(), source: strings.Split(string(text), "\n")}
	g.bin = filepath.Join(g.dir, filepath.Base(name))
	args := append([]string{"-g", "-w", "-o", g.bin}, flags...)
	if out, err := exec.Command(compiler, append(args, src)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	return g
}

// line returns the number of the only line that bears the mark.
func (g *guest) line(t testing.TB, mark string) int {
	t.Helper()
	found := 0
	for i, l := range g.source {
		if strings.Contains(l, "// "+mark) {
			if found != 0 {
				t.Fatalf("two lines are marked %s", mark)
			}
			found = i + 1
		}
	}
	if found == 0 {
		t.Fatalf("no line is marked %s", mark)
	}
	return found
}

// record records the guest, slims the recording unless the flags say otherwise, and
// moves the guest's file to g.dir/symbols. It returns the recording.
func (g *guest) record(t testing.TB, flags ...string) string {
	t.Helper()
	rec := filepath.Join(g.dir, "rec.vplay")
	args := append([]string{"record", "-q", "--slim", "now", "-o", rec}, flags...)
	args = append(append(args, "--", g.bin), g.args...)
	cmd := exec.CommandContext(limited(t, 5*time.Minute), vplayd, args...)
	cmd.Dir = g.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // it ends as the guest does
	if _, err := os.Stat(rec); err != nil {
		t.Fatalf("nothing was recorded: %v\n%s", err, out.Bytes())
	}
	symbols := filepath.Join(g.dir, "symbols")
	if err := os.MkdirAll(symbols, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(g.bin, filepath.Join(symbols, filepath.Base(g.bin))); err != nil {
		t.Fatal(err)
	}
	return rec
}

// patience is how long a test waits for what takes seconds: only what hangs takes so long, however slow and busy the machine.
const patience = 5 * time.Minute

// limited returns a context that ends after d, and with the test.
func limited(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

var served = regexp.MustCompile(`serving on (\S+)`)

// serve serves a recording for the length of the test and returns the address.
func serve(t testing.TB, rec string, flags ...string) string {
	t.Helper()
	addr, _ := serveProcess(t, rec, flags...)
	return addr
}

// serveProcess is serve, and returns the server's process id.
func serveProcess(t testing.TB, rec string, flags ...string) (addr string, pid int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	// The machine's own libraries would change what gdb prints.
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--no-local-files"}, flags...)
	cmd := exec.CommandContext(ctx, vplayd, append(args, rec)...)
	cmd.Dir = t.TempDir()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = pw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // interrupted
		pr.Close()
		if !cmd.ProcessState.Success() {
			t.Errorf("serve ended with %v", cmd.ProcessState)
		}
	})
	late := time.AfterFunc(30*time.Second, func() { pr.Close() })
	defer late.Stop()
	var text []byte
	b := make([]byte, 4096)
	for {
		n, err := pr.Read(b)
		text = append(text, b[:n]...)
		if m := served.FindSubmatch(text); m != nil {
			go io.Copy(io.Discard, pr)
			return string(m[1]), cmd.Process.Pid
		}
		if err != nil {
			t.Fatalf("serve printed no address: %v\n%s", err, text)
		}
	}
}

// gdb runs gdb in batch mode, connected to addr, and returns its output.
func gdb(t testing.TB, addr string, commands ...string) string {
	t.Helper()
	return realgdb.Batch(t, append([]string{"target remote " + addr}, commands...)...)
}

// expect checks that the patterns occur in the output in this order.
var expect = realgdb.Expect
