package damage

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vplay/checkpoint/abi"
	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// What a forged file may cost, whatever it asks for.
const (
	mostMemory = 1 << 30         // bytes resident
	mostCPU    = 5 * time.Second // of processor time, and what the pages cost; more on a slow machine (need.Slowness)
	mostAfter  = time.Second     // likewise, behind Ctrl-C
	mostWait   = 2 * time.Minute // a process of low priority waits long on a busy machine
)

// forgeCommand returns the command that runs a forge.
func forgeCommand(name, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), forgeVariable+"="+name)
	return cmd
}

// forged runs a forge in a process of its own and returns the file.
func forged(t *testing.T, f *forge) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forged.vplay")
	if out, err := forgeCommand(f.name, path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// heapScript is the script heap as a file: by its name it refuses a recording in which nothing runs, as most forged ones are.
const heapScript = "../../replay/analysis/script/library/heap.star"

// verbs open a recording. FILE stands for it. Of the scripts, strace reads what dump and heap read.
var verbs = [][]string{
	{"info", "FILE"}, {"processes", "FILE"}, {"verify", "FILE"}, {"dump", "FILE"}, {"slim", "FILE"},
	{"serve", "--listen", "127.0.0.1:0", "FILE"}, {"run", heapScript, "FILE"},
}

// TestForged opens files made to do harm with every verb that reads one, by the
// limits that vplayd has by default.
func TestForged(t *testing.T) {
	openAll(t, forges, verbs)
}

// openAll opens each forge with each verb, and once more with SIGINT where that comes before the end.
func openAll(t *testing.T, forges []forge, verbs [][]string) {
	t.Helper()
	vplayd, err := tool.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range forges {
		f := &forges[i]
		t.Run(f.name, func(t *testing.T) {
			path := forged(t, f)
			for _, verb := range verbs {
				name := strings.TrimSuffix(verb[0]+" "+filepath.Base(verb[1]), " FILE")
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					if took := open(t, vplayd, path, verb, false, f.codes()...); took > untilStop || verb[0] == "serve" {
						open(t, vplayd, path, verb, true, f.codes()...)
					}
				})
			}
		})
	}
}

// elfVerbs are those that read the program's own files.
var elfVerbs = [][]string{
	{"info", "FILE"}, {"export-elf", "FILE"}, {"serve", "--listen", "127.0.0.1:0", "FILE"}, {"serve", "--dap", "--listen", "127.0.0.1:0", "FILE"},
	{"run", heapScript, "FILE"}, {"report", "FILE"},
}

// TestForgedELF opens recordings whose program's file is made to do harm with every
// verb that reads it.
func TestForgedELF(t *testing.T) {
	openAll(t, elfForges, elfVerbs)
}

// TestLarge opens recordings that are large for good reasons: all is read, and
// replayed, by the limits that vplayd has by default.
func TestLarge(t *testing.T) {
	vplayd, err := tool.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range larges {
		f := &larges[i]
		t.Run(f.name, func(t *testing.T) {
			path := forged(t, f)
			for _, args := range [][]string{{"info", path}, {"verify", path}, {"dump", "--strings", path}} {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, vplayd, args...)
				out := new(tail)
				cmd.Stdout, cmd.Stderr = out, out
				err := cmd.Run()
				st := cmd.ProcessState
				t.Logf("%s: %d MiB, %v of CPU", args[0], st.SysUsage().(*syscall.Rusage).Maxrss>>10, st.UserTime()+st.SystemTime())
				if err != nil {
					t.Errorf("%s: %v\n%s", args[0], err, out)
				}
			}
		})
	}
}

// TestManyEvents: intervals that fit one by one are verified one by one.
func TestManyEvents(t *testing.T) {
	vplayd, err := tool.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(vplayd, "verify", "-j", "4", forged(t, &manyEvents[0]))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// untilStop is when a verb is sent SIGINT.
const untilStop = 300 * time.Millisecond

// open runs one verb on a copy of a file and judges what it cost and said. With
// stop, it is sent SIGINT after untilStop.
// The exit code must be one of codes. It returns how long it took.
func open(t *testing.T, vplayd, path string, verb []string, stop bool, codes ...int) time.Duration {
	t.Helper()
	file := filepath.Join(t.TempDir(), "forged.vplay")
	if err := os.Link(path, file); err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(verb)
	args[slices.Index(args, "FILE")] = file
	if i := slices.Index(args, heapScript); i >= 0 {
		script, err := filepath.Abs(heapScript)
		if err != nil {
			t.Fatal(err)
		}
		args[i] = script
	}
	if dir := symbolFolder(path); isFolder(dir) {
		args = append(args, "--symbols", dir)
	}
	ctx, cancel := context.WithTimeout(context.Background(), mostWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, vplayd, args...)
	cmd.Dir = filepath.Dir(file) // export-elf writes there
	said := new(tail)
	cmd.Stdout = said
	errors, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var atSignal atomic.Int64
	interrupt := func() {
		atSignal.Store(max(1, int64(cpuOf(cmd.Process.Pid))))
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
	}
	start := time.Now()
	if stop {
		defer time.AfterFunc(untilStop, interrupt).Stop()
	}
	client := ask
	if slices.Contains(verb, "--dap") {
		client = askDAP
	}
	if verb[0] != "serve" || stop {
		client = nil
	}
	text := listen(errors, client, interrupt)
	_ = cmd.Wait() // the state tells
	took := time.Since(start)
	before := time.Duration(atSignal.Load())
	st := cmd.ProcessState
	used := st.SysUsage().(*syscall.Rusage)
	cpu, pages := st.UserTime()+st.SystemTime(), time.Duration(used.Minflt)*need.PageTime()
	what := fmt.Sprintf("%s, stopped %v: exit code %d, %d MiB, %v of CPU, %v behind the signal, %v in all", verb[0], stop, st.ExitCode(), used.Maxrss>>10,
		cpu.Round(time.Millisecond), (cpu - before).Round(time.Millisecond), took.Round(time.Millisecond))
	t.Log(what, "\n", text)
	tooLong := func(slowness float64) bool {
		isMore := func(d, most time.Duration) bool { return float64(d) > float64(most)*slowness }
		return isMore(cpu-pages, mostCPU) && !stop || before > 0 && isMore(cpu-pages-before, mostAfter)
	}
	if used.Maxrss<<10 > mostMemory || tooLong(1) && tooLong(need.Slowness()) || ctx.Err() != nil {
		t.Errorf("too much: %s", what)
	}
	if before > 0 {
		codes = append(codes, 0, 130)
		if st.Sys().(syscall.WaitStatus).Signal() == syscall.SIGINT { // it came before vplayd was up
			codes = append(codes, -1)
		}
	}
	if !slices.Contains(codes, st.ExitCode()) || strings.Contains(text, "goroutine ") {
		t.Errorf("%s, want a code of %v and no trace:\n%s", what, codes, text)
	}
	// verify tells of intervals on standard output.
	isSaid := strings.Contains(said.String(), "limit of") || strings.Contains(said.String(), "could not be read") || st.ExitCode() == 3 && strings.Contains(said.String(), "diverged")
	if st.ExitCode() != 0 && before == 0 && strings.Count(text, "vplayd: error: ") != 1 && !isSaid {
		t.Errorf("%s: no line with an error:\n%s%s", what, said, text)
	}
	return took
}

func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = append(t.b[:0], t.b[max(0, len(t.b)-1<<12):]...)
	return len(p), nil
}

func (t *tail) String() string { return string(t.b) }

// cpuOf returns the processor time that a process has used (man 5 proc_pid_stat).
func cpuOf(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	s, _ := abi.ParseProcStat(b)
	return s.CPU()
}

// listen returns what a command says. Of a server that has come up, a client asks
// something, when there is one, and then it is stopped.
func listen(r io.Reader, client func(addr string) string, stop func()) string {
	var all strings.Builder
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if _, at, ok := strings.Cut(lines.Text(), "serving on "); ok && client != nil {
			fmt.Fprintf(&all, "(client: %s)\n", client(at))
			stop()
		}
	}
	return all.String()
}

// askDAP is an editor that connects, sets breakpoints and looks at the stack, and
// says how it went.
func askDAP(addr string) string {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = c.Close() }() // nothing is written any more
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	r := bufio.NewReader(c)
	for i, q := range [][2]string{
		{"initialize", `{"adapterID":"t"}`}, {"attach", `{}`}, {"setFunctionBreakpoints", `{"breakpoints":[{"name":"ns::fun"}]}`},
		{"setBreakpoints", `{"source":{"path":"/d/f"},"breakpoints":[{"line":7}]}`}, {"configurationDone", `{}`},
		{"stackTrace", `{"threadId":1}`}, {"evaluate", `{"expression":"nothing"}`},
	} {
		body := fmt.Sprintf(`{"seq":%d,"type":"request","command":%q,"arguments":%s}`, i+1, q[0], q[1])
		if _, err := fmt.Fprintf(c, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			return err.Error()
		}
		for answered := false; !answered; {
			head, err := r.ReadString('\n')
			if err != nil {
				return fmt.Sprintf("%s: %v", q[0], err)
			}
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "Content-Length:")))
			if err != nil {
				return err.Error()
			}
			b := make([]byte, n+2)
			if _, err := io.ReadFull(r, b); err != nil {
				return fmt.Sprintf("%s: %v", q[0], err)
			}
			answered = bytes.Contains(b, fmt.Appendf(nil, `"request_seq":%d,`, i+1))
		}
	}
	return "all answered"
}

// ask is a debugger that connects, and says how it went.
func ask(addr string) string {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = c.Close() }() // nothing is written any more
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	r := bufio.NewReader(c)
	answers := 0
	for _, q := range []string{
		"qSupported:xmlRegisters=i386;qXfer:libraries-svr4:read+", "qXfer:features:read:target.xml:0,fff", "?", "g",
		"qXfer:libraries-svr4:read::0,fff", "qXfer:auxv:read::0,fff", "m100000000,40",
	} {
		sum := byte(0)
		for i := range len(q) {
			sum += q[i]
		}
		if _, err := fmt.Fprintf(c, "$%s#%02x", q, sum); err != nil {
			return err.Error()
		}
		if _, err := r.ReadString('#'); err != nil {
			return fmt.Sprintf("%s: %v", q, err)
		}
		if _, err := io.CopyN(c, strings.NewReader("+"), 1); err != nil {
			return err.Error()
		}
		answers++
	}
	return fmt.Sprintf("%d answers", answers)
}
