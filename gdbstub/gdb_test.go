package gdbstub

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"vplay/tests/gdb"
	"vplay/tests/need"
)

// serveFake serves f on a loopback port for the length of the test.
func serveFake(t *testing.T, f *fakeTarget, opt Options) string {
	t.Helper()
	v := New(f, opt)
	l, err := v.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, v, f, l)
}

func serveOn(t *testing.T, v *Server, f *fakeTarget, l net.Listener) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.ServeListener(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ServeListener: %v", err)
		}
		if f.overlap.Load() {
			t.Error("calls to the target overlapped")
		}
	})
	return l.Addr().String()
}

func TestGDB(t *testing.T) {
	need.Program(t, "gdb")
	for _, c := range gdbCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr := serveFake(t, newFake(), Options{})
			out := gdb.Batch(t, append([]string{"target remote " + addr}, c.commands...)...)
			gdb.Expect(t, out, c.want...)
		})
	}
}

func TestGDBSessionsEndAndServerStays(t *testing.T) {
	f := newFake()
	f.attached = true
	addr := serveFake(t, f, Options{})
	steps := []struct {
		name     string
		commands []string
		want     []string
	}{
		{"detach", []string{"target remote " + addr, "break bump", "reverse-continue", "detach"}, []string{`Breakpoint 1`, `Inferior 1 .*detached`}},
		{"reconnect keeps the position", []string{"target remote " + addr, "p $pc", "stepi", "kill"}, []string{`= .*0x401024`, `Inferior 1 .*killed`}},
		{"after kill", []string{"target remote " + addr, "p $pc", "disconnect"}, []string{`= .*0x40102b`}},
		{"twice in one gdb", []string{"target remote " + addr, "p $pc", "detach", "target remote " + addr, "p $pc"}, []string{`= .*0x40102b`, `= .*0x40102b`}},
		{
			"extended: attach, run",
			[]string{"target extended-remote " + addr, "attach 4660", "p $pc", "set remote exec-file /replay/prog", "starti", "p $pc", "kill", "attach 4660", "stepi", "p $pc", "detach"},
			[]string{`= .*0x40102b`, `= .*0x401000`, `killed`, `= .*0x401005`},
		},
	}
	for i, s := range steps {
		gdb.Expect(t, gdb.Batch(t, s.commands...), s.want...)
		waitDetached(t, f, int64(i+1))
		if len(f.breaks) != 0 {
			t.Fatalf("%s: breakpoints left: %v", s.name, f.breaks)
		}
	}
}

// TestMain serves the fake target on standard input and output when a test's gdb
// starts this program again.
func TestMain(m *testing.M) {
	if os.Getenv("VPLAY_TEST_STDIO") != "" {
		if err := New(newFake(), Options{}).Serve(context.Background(), Stdio()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestGDBPipe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := gdb.Batch(t, "target remote | VPLAY_TEST_STDIO=1 "+self, "p $pc", "reverse-stepi", "p $pc", "detach")
	gdb.Expect(t, out, `= .*0x401010`, `= .*0x40100e`, `detached`)
}

func TestGDBUnixSocket(t *testing.T) {
	f := newFake()
	v := New(f, Options{})
	path := t.TempDir() + "/sock"
	l, err := v.Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatalf("socket: %v %v", fi.Mode(), err)
	}
	if _, err := v.Listen("unix:" + path); err == nil {
		t.Fatal("the socket was taken from its server")
	}
	serveOn(t, v, f, l)
	gdb.Expect(t, gdb.Batch(t, "target remote "+path, "p $pc"), `= .*0x401010`)
}

// TestGDBInterrupt is Ctrl-C while the target runs, and gdb dying then.
func TestGDBInterrupt(t *testing.T) {
	f := newFake()
	f.hang = true
	addr := serveFake(t, f, Options{})
	m := gdb.StartMI(t)
	m.Say("-gdb-set mi-async on", `\^done`)
	m.Say("-target-select remote "+addr, `\*stopped`)
	for range 3 {
		m.Say("-exec-continue --reverse", `\*running`)
		start := time.Now()
		m.Say("-exec-interrupt", `\*stopped,reason="signal-received",signal-name="SIGINT"`)
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("the interrupt took %v", d)
		}
	}
	m.Say("-list-target-features", `features=\[.*"reverse"`)
	m.Say("-exec-continue", `\*running`)
	m.Kill()
	waitDetached(t, f, 1)
}

// TestGDBAsVSCodeDrivesIt sends what VS Code's debugger engine sends, for its
// requests launch and attach.
func TestGDBAsVSCodeDrivesIt(t *testing.T) {
	prog := t.TempDir() + "/prog"
	if err := os.WriteFile(prog, fakeELF(), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, attach := range []bool{false, true} {
		f := newFake()
		addr := serveFake(t, f, Options{})
		m := gdb.StartMI(t)
		say := m.Say
		say("-interpreter-exec console \"set pagination off\"", `\^done`)
		say("-gdb-set mi-async on", `\^done`)
		say("-gdb-set auto-solib-add on", `\^done`)
		say("-file-exec-and-symbols "+prog, `\^done`)
		say("show architecture", `i386:x86-64`)
		if attach {
			say("-target-select extended-remote "+addr, `\^connected`)
			say("-target-attach 4660", `\^done|\*stopped`)
		} else {
			say("-break-insert -f bump", `\^done,bkpt=`)
			say("-target-select remote "+addr, `\^connected`)
		}
		say("-thread-info", `\^done,threads=\[.id="1",target-id="Thread 4660.4660"`)
		say("-stack-info-depth", `\^done,depth="1"`)
		if attach {
			say("-break-insert -f bump", `\^done,bkpt=`)
		}
		say("-exec-continue --reverse", `reason="breakpoint-hit".*func="bump"`)
		say("-stack-list-frames 0 1000", `func="bump".*line="2".*func="_start".*line="6"`)
		say("-var-create - * counter", `\^done,name="var1",numchild="0",value="4",type="int"`)
		say("-var-assign var1 7", `\^error`)
		say("-data-read-memory-bytes 0x402000 4", `contents="04000000"`)
		say("-data-disassemble -s $pc -e \"$pc + 7\" -- 2", `incl `)
		say("-data-list-register-values x 16", `number="16",value="0x401024"`)
		say("-break-watch *(int*)(0x402000)", `\^done,wpt=`)
		say("-exec-continue", `reason="watchpoint-trigger".*old="4",new="5"`)
		say("-exec-finish", `reason="function-finished"`)
		say("-exec-next --reverse", `reason="(end-stepping-range|breakpoint-hit|watchpoint-trigger)"`)
		say("-interpreter-exec console \"set exec-direction reverse\"", `\^done`)
		say("-exec-step-instruction", `reason="(end-stepping-range|breakpoint-hit|watchpoint-trigger)"`)
		say("-interpreter-exec console kill", `\^done|thread-group-exited`)
		waitDetached(t, f, 1)
		m.Kill()
	}
}

// waitDetached waits until the target has been let go n times.
func waitDetached(t *testing.T, f *fakeTarget, n int64) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); f.detached.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the target was let go %d times, not %d", f.detached.Load(), n)
		}
	}
}
