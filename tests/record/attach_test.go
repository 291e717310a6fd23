//go:build linux && amd64

package record

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// Programs that run already when a recorder attaches to them, and that it lets go again.

// attachVerb makes the test binary a recorder that attaches: OPTIONS, in the form of
// attachOptions. It prints a line when it records, and at the end its result. SIGTERM ends it.
const attachVerb = "__attach"

// attachOptions is what the recorder is told.
type attachOptions struct {
	PID        int
	Path       string
	Keep       recorder.Keep
	Follow     recorder.Follow
	For        time.Duration
	ForceEvery time.Duration
	UntilCrash bool
	Agent      bool
	NoAgent    bool // also where all recordings are made with it
}

// attachResult is what it says at the end.
type attachResult struct {
	Recorded, Detached bool
	Traced             bool // the program, while the recording was written
	ExitCode, Signal   int
	Reason, Error      string
	Hint               string
	MapDrift           string
}

func attachMain(arg string) int {
	var o attachOptions
	if err := json.Unmarshal([]byte(arg), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	began, traced := false, false
	res, err := recorder.Attach(context.Background(), o.PID, recorder.Options{
		Path: o.Path, Keep: o.Keep, Follow: o.Follow, For: o.For, ForceEvery: o.ForceEvery, UntilCrash: o.UntilCrash, Agent: o.Agent, Control: true,
		Started: func(int) { began = true; fmt.Println("records") }, Guardian: guardian(),
		Progress: func(int, int) {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.PID))
			traced = traced || err == nil && !strings.Contains(string(status), "\nTracerPid:\t0\n")
		},
	})
	out := attachResult{
		Recorded: res.Recorded, Detached: res.Detached, Traced: traced, ExitCode: res.ExitCode, Signal: res.Signal, Reason: res.Reason, MapDrift: res.Stats.MapDriftNote,
	}
	var start *recorder.StartError
	if errors.As(err, &start) {
		out.Hint = start.Hint
	}
	if err != nil {
		out.Error = err.Error()
	}
	if !began {
		fmt.Println("refused")
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return 2
	}
	return 0
}

// attaching is a recorder that attaches.
type attaching struct {
	t    *testing.T
	path string
	cmd  *exec.Cmd
	out  *bufio.Reader
}

// attach starts a recorder and waits until it records, or cannot.
func attach(t *testing.T, pid int, o attachOptions) *attaching {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "out.vplay")
	}
	o.PID, o.Agent = pid, o.Agent || *underAgent && !o.NoAgent
	arg, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	a := &attaching{t: t, path: o.Path, cmd: exec.Command(self, attachVerb, string(arg))}
	a.cmd.Stderr = os.Stderr
	pipe, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.cmd.Process.Kill(); _ = a.cmd.Wait() })
	a.out = bufio.NewReader(pipe)
	if _, err := a.out.ReadString('\n'); err != nil {
		t.Fatalf("the recorder: %v", err)
	}
	return a
}

// result waits for the recorder's end.
func (a *attaching) result() (r attachResult) {
	a.t.Helper()
	if err := json.NewDecoder(a.out).Decode(&r); err != nil {
		a.t.Fatalf("the recorder: %v", err)
	}
	if err := a.cmd.Wait(); err != nil {
		a.t.Fatalf("the recorder: %v", err)
	}
	if r.MapDrift != "" {
		a.t.Errorf("the map model drifted: %s", r.MapDrift)
	}
	return r
}

// end asks the recorder to end, and wants a recording, and the program let go.
func (a *attaching) end() {
	a.t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
	if r := a.result(); !r.Recorded || !r.Detached || r.Traced || r.Error != "" {
		a.t.Fatalf("the end: %+v", r)
	}
}

// alive is a program that runs. It prints a line when it is ready.
type alive struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	ready string
}

// startAlive starts a program and waits for its first line.
func startAlive(t *testing.T, args ...string) *alive {
	t.Helper()
	need.Recorder(t)
	p := &alive{t: t, cmd: exec.Command(args[0], args[1:]...)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	pipe, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	p.out = bufio.NewReader(pipe)
	if p.ready, err = p.out.ReadString('\n'); err != nil {
		t.Fatalf("%s: %v", args[0], err)
	}
	return p
}

func (p *alive) pid() int { return p.cmd.Process.Pid }

// finish sends the program a line, and returns what it has printed since it was ready, and how it ended.
func (p *alive) finish(line string) outcome {
	p.t.Helper()
	_, _ = io.WriteString(p.stdin, line+"\n") // it may have ended
	_ = p.stdin.Close()                       // likewise
	rest, err := io.ReadAll(p.out)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // its status says how
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	o := outcome{out: string(rest), code: ws.ExitStatus()}
	if ws.Signaled() {
		o.sig = int(ws.Signal())
		o.code = 128 + o.sig
	}
	return o
}

// settings is what can be seen of a process that an attach must leave as it is.
func settings(t *testing.T, pid int) string {
	t.Helper()
	var b strings.Builder
	dir := fmt.Sprintf("/proc/%d/", pid)
	list, err := os.ReadFile(dir + "maps")
	if err != nil {
		t.Fatal(err)
	}
	b.Write(list)
	fds, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, _ := os.Readlink(dir + "fd/" + fd.Name())
		fmt.Fprintf(&b, "%s %s\n", fd.Name(), to)
	}
	tasks, err := filepath.Glob(dir + "task/*")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(tasks)
	for _, task := range tasks {
		status, err := os.ReadFile(task + "/status")
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			switch name, _, _ := strings.Cut(line, ":"); name {
			case "Name", "Umask", "Tgid", "PPid", "TracerPid", "Uid", "Gid", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt",
				"CapEff", "NoNewPrivs", "Seccomp", "Threads", "Cpus_allowed":
				fmt.Fprintf(&b, "%s %s", filepath.Base(task), line)
			}
		}
	}
	timers, _ := os.ReadFile(dir + "timers") // not every kernel has it
	b.Write(timers)
	return b.String()
}

// stays compares settings.
func stays(t *testing.T, before, after string) {
	t.Helper()
	if before == after {
		return
	}
	b, a := strings.Split(before, "\n"), strings.Split(after, "\n")
	for _, l := range b {
		if !slices.Contains(a, l) {
			t.Errorf("before: %s", l)
		}
	}
	for _, l := range a {
		if !slices.Contains(b, l) {
			t.Errorf("after:  %s", l)
		}
	}
}

// recordsFor is how long programs are recorded. They do what they do in that time: nothing is
// counted on.
const recordsFor = 300 * time.Millisecond

// TestAttach attaches to programs, records them for a while, and lets them go: they end as
// they do by themselves, and what was recorded replays exactly.
func TestAttach(t *testing.T) {
	python := func(t *testing.T) []string { return []string{need.Python(t), "testdata/attachthreads.py"} }
	guest := func(name string, args ...string) func(t *testing.T) []string {
		return func(t *testing.T) []string { return append([]string{compile(t, name)}, args...) }
	}
	for _, c := range []struct {
		name  string
		args  func(t *testing.T) []string
		fixed bool // it maps nothing meanwhile, and no thread ends
		opt   attachOptions
	}{
		{"waits", guest("attachwaits"), false, attachOptions{}},
		{"locks", guest("attachlocks"), true, attachOptions{}},
		{"locks, forced ends", guest("attachlocks"), true, attachOptions{ForceEvery: 5 * time.Millisecond}},
		{"locks, all kept", guest("attachlocks"), true, attachOptions{Keep: recorder.KeepAlways}},
		{"threads that come and go", guest("attachlocks", "churn"), false, attachOptions{}},
		{"python", python, false, attachOptions{}},
		{"waits, by the agent", guest("attachwaits"), false, attachOptions{Agent: true}},
		{"locks, by the agent", guest("attachlocks"), true, attachOptions{Agent: true}},
		{"locks, forced ends, by the agent", guest("attachlocks"), true, attachOptions{Agent: true, ForceEvery: 5 * time.Millisecond}},
		{"threads that come and go, by the agent", guest("attachlocks", "churn"), false, attachOptions{Agent: true}},
		{"python, by the agent", python, false, attachOptions{Agent: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := c.args(t)
			want := startAlive(t, args...).finish("go")
			p := startAlive(t, args...)
			var before string
			if c.fixed { // else its threads end while they are read
				before = settings(t, p.pid())
			}
			c.opt.For = recordsFor
			a := attach(t, p.pid(), c.opt)
			if r := a.result(); !r.Recorded || !r.Detached || r.Traced || r.Error != "" {
				t.Fatalf("the end: %+v", r)
			}
			if c.fixed {
				stays(t, before, settings(t, p.pid()))
			}
			same(t, p.finish("go"), want)
			t.Log(verify(t, a.path))
		})
	}
}

// TestAttachAgain attaches many times in a row to a program with threads that compute, and
// to one whose threads wait, and to one that is nearly always about to stop for a call that the agent does not make. They share
// the CPUs, so that threads have to wait for one anywhere.
func TestAttachAgain(t *testing.T) {
	const times = 50
	for i, name := range []string{"attachlocks", "attachwaits", "attachlocks", "attachwaits", "attachcalls"} {
		by := []string{"stops", "agent", "agent"}[i/2]
		t.Run(name+", by "+by, func(t *testing.T) {
			t.Parallel()
			prog := compile(t, name)
			want := startAlive(t, prog).finish("go")
			p := startAlive(t, prog)
			before := settings(t, p.pid())
			path := ""
			for range times {
				a := attach(t, p.pid(), attachOptions{For: time.Millisecond, Agent: by == "agent"})
				if r := a.result(); !r.Recorded || !r.Detached || r.Traced || r.Error != "" {
					t.Fatalf("the end: %+v", r)
				}
				path = a.path
			}
			if name == "attachwaits" { // those with a time-out have ended by now, perhaps
				before, after := strings.Split(before, "\n"), strings.Split(settings(t, p.pid()), "\n")
				if b, a := countPrefix(before, ""), countPrefix(after, ""); a > b {
					t.Errorf("%d mappings, descriptors and settings before, %d after", b, a)
				}
			} else {
				stays(t, before, settings(t, p.pid()))
			}
			same(t, p.finish("go"), want)
			t.Logf("%d times; the last: %v", times, verify(t, path))
		})
	}
}

// TestAttachSpawns attaches many times to programs that are nearly always in the middle of a call that makes a process,
// executes a program or returns from a handler: they are let go before or behind it, and so is who waits for
// them, with instructions that work.
func TestAttachSpawns(t *testing.T) {
	const times = 20
	prog := compile(t, "attachspawn")
	for i, how := range []string{"vfork", "fork", "self", "vfork", "fork", "self"} {
		by := []string{"stops", "agent"}[i/3]
		t.Run(how+", by "+by, func(t *testing.T) {
			want := startAlive(t, prog, how).finish("go")
			p := startAlive(t, prog, how)
			for i := range times {
				a := attach(t, p.pid(), attachOptions{For: time.Duration(1+i) * time.Millisecond, Agent: by == "agent"})
				if r := a.result(); !r.Recorded || !r.Detached || r.Traced || r.Error != "" {
					t.Fatalf("the end: %+v", r)
				}
				t.Log(verify(t, a.path))
			}
			same(t, p.finish("go"), want)
		})
	}
}

// countPrefix counts lines.
func countPrefix(lines []string, prefix string) (n int) {
	for _, l := range lines {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

// inState waits until a process is in a state of /proc/PID/stat.
func inState(t *testing.T, pid int, state string) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, _ := strings.Cut(string(b), ") "); strings.HasPrefix(rest, state) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d is not in state %s: %s", pid, state, b)
		}
	}
}

// TestAttachStopped: a program that job control has stopped stays so, and goes on when it is
// continued, while it is recorded or afterwards.
func TestAttachStopped(t *testing.T) {
	prog := compile(t, "attachlocks")
	want := startAlive(t, prog).finish("go")
	for _, during := range []bool{false, true} {
		t.Run(fmt.Sprint("continued while it is recorded ", during), func(t *testing.T) {
			p := startAlive(t, prog)
			kill := func(sig syscall.Signal) {
				if err := syscall.Kill(p.pid(), sig); err != nil {
					t.Fatal(err)
				}
			}
			kill(syscall.SIGSTOP)
			inState(t, p.pid(), "T")
			a := attach(t, p.pid(), attachOptions{})
			if during {
				kill(syscall.SIGCONT)
				time.Sleep(recordsFor)
			}
			a.end()
			if !during {
				inState(t, p.pid(), "T")
				kill(syscall.SIGCONT)
			}
			same(t, p.finish("go"), want)
			t.Log(verify(t, a.path))
		})
	}
}

// TestAttachInterrupted: a call that a signal would end ends, though the recorder has stopped it
// as well, and one that would be made again is.
func TestAttachInterrupted(t *testing.T) {
	prog := compile(t, "attachalarm")
	for _, args := range [][]string{{prog}, {prog, "restart"}} {
		t.Run(fmt.Sprint(args[1:]), func(t *testing.T) {
			run := func(between func(pid int)) outcome {
				p := startAlive(t, args...)
				inState(t, p.pid(), "S")
				for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGUSR1} {
					if err := syscall.Kill(p.pid(), sig); err != nil {
						t.Fatal(err)
					}
					inState(t, p.pid(), "T")
				}
				between(p.pid())
				return p.finish("x")
			}
			cont := func(pid int) { _ = syscall.Kill(pid, syscall.SIGCONT) }
			want := run(cont)
			var a *attaching
			same(t, run(func(pid int) {
				a = attach(t, pid, attachOptions{})
				a.end()
				cont(pid)
			}), want)
			t.Log(verify(t, a.path))
			same(t, run(func(pid int) {
				a = attach(t, pid, attachOptions{Keep: recorder.KeepAlways})
				cont(pid)
				inState(t, a.cmd.Process.Pid, "S")
			}), want)
			if r := a.result(); !r.Recorded || r.Detached || r.ExitCode != want.code {
				t.Errorf("the end: %+v", r)
			}
			t.Log(verify(t, a.path))
		})
	}
}

// TestAttachTree attaches to a shell: what it starts from then on is recorded with it.
func TestAttachTree(t *testing.T) {
	sh := need.Program(t, "bash")
	const script = `echo ready; read x; for i in 1 2 3; do y=$(echo $i | sed s/2/two/); (exit 3); echo $y $?; done; trap 'echo usr1' USR1; kill -USR1 $$; exit 9`
	want := startAlive(t, sh, "-c", script).finish("go")
	for _, follow := range []recorder.Follow{recorder.FollowAll, recorder.FollowNone} {
		t.Run(string(follow), func(t *testing.T) {
			p := startAlive(t, sh, "-c", script)
			a := attach(t, p.pid(), attachOptions{Keep: recorder.KeepAlways, Follow: follow})
			same(t, p.finish("go"), want)
			if r := a.result(); !r.Recorded || r.Detached || r.ExitCode != 9 {
				t.Fatalf("the end: %+v", r)
			}
			t.Log(verify(t, a.path))
		})
	}
}

// TestAttachLetsTreeGo lets a program go that has executed another since the attach, and a child
// that it has made since: both end as they do by themselves.
func TestAttachLetsTreeGo(t *testing.T) {
	sh := need.Program(t, "bash")
	const script = `echo ready; read x; { i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; (exit 6); echo child $?; } & exec bash -c 'echo executed; read y; echo end $y; exit 8'`
	run := func(between func(pid int) func()) (outcome, []string) {
		p := startAlive(t, sh, "-c", script)
		end := between(p.pid())
		if _, err := p.stdin.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for !slices.Contains(lines, "executed\n") { // the child's may come first
			l, err := p.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, l)
		}
		end()
		o := p.finish("bye")
		for l := range strings.Lines(o.out) {
			lines = append(lines, l)
		}
		slices.Sort(lines)
		o.out = ""
		return o, lines
	}
	want, wantLines := run(func(int) func() { return func() {} })
	var a *attaching
	got, lines := run(func(pid int) func() { a = attach(t, pid, attachOptions{}); return a.end })
	same(t, got, want)
	if !slices.Equal(lines, wantLines) {
		t.Errorf("printed %q, want %q", lines, wantLines)
	}
	t.Log(verify(t, a.path))
}

// TestAttachCrash: a program that crashes after the attach leaves a recording of its crash, and
// one that is let go before leaves none with UntilCrash.
func TestAttachCrash(t *testing.T) {
	prog := compile(t, "attachcrash")
	p := startAlive(t, prog)
	a := attach(t, p.pid(), attachOptions{UntilCrash: true})
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := a.result(); r.Recorded || !r.Detached || r.Error != "" {
		t.Errorf("let go before the crash: %+v", r)
	}
	if _, err := os.Stat(a.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	a = attach(t, p.pid(), attachOptions{UntilCrash: true})
	if o := p.finish("crash"); o.sig != int(syscall.SIGSEGV) {
		t.Errorf("the program ends with %+v", o)
	}
	if r := a.result(); !r.Recorded || r.Detached || r.Signal != int(syscall.SIGSEGV) {
		t.Fatalf("the end: %+v", r)
	}
	t.Log(verify(t, a.path))
}

// TestAttachKilled kills the recorder: the program goes on. It is as before, or, where the guardian is killed, too, finds
// what the help of attach says: one CPU, no restartable sequences, RDTSC that faults, and memory mapped for each thread.
func TestAttachKilled(t *testing.T) {
	prog := compile(t, "attachlocks")
	killed := func(t *testing.T, agent bool) (p *alive, before string) {
		p = startAlive(t, prog, "clock")
		before = settings(t, p.pid())
		a := attach(t, p.pid(), attachOptions{Agent: agent, NoAgent: !agent})
		if err := a.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = a.cmd.Wait() // killed
		t.Cleanup(func() {
			if list, _ := filepath.Glob(filepath.Dir(a.path) + "/*"); len(list) > 0 {
				t.Errorf("files are left: %q", list)
			}
		})
		return p, before
	}
	t.Run("guarded", func(t *testing.T) {
		p, before := killed(t, false)
		after := settings(t, p.pid())
		for end := time.Now().Add(limit); after != before && time.Now().Before(end); time.Sleep(time.Millisecond) {
			after = settings(t, p.pid())
		}
		if after != before {
			t.Errorf("changed:\n%s\nbefore:\n%s", after, before)
		}
		if got := p.finish("go"); got.out != "counts agree, 0 times back, 0 wrong CPUs, 8 of 8 threads whole\naffinity same, RDTSC runs\n" || got.code != 5 {
			t.Errorf("it ends with %+v", got)
		}
	})
	// Its memory stays, and perhaps its handler, for who is inside; and the kernel does not join again what was writable
	// meanwhile with what was not.
	t.Run("guarded, by the agent", func(t *testing.T) {
		p, before := killed(t, true)
		own := func(all string) string {
			return joined(slices.DeleteFunc(strings.SplitAfter(all, "\n"), func(l string) bool {
				return strings.Contains(l, "/memfd:") || strings.Contains(l, " SigCgt:")
			}))
		}
		before = own(before)
		after := own(settings(t, p.pid()))
		for end := time.Now().Add(limit); after != before && time.Now().Before(end); time.Sleep(time.Millisecond) {
			after = own(settings(t, p.pid()))
		}
		if after != before {
			t.Errorf("changed:\n%s\nbefore:\n%s", after, before)
		}
		if got := p.finish("go"); got.out != "counts agree, 0 times back, 0 wrong CPUs, 8 of 8 threads whole\naffinity same, RDTSC runs\n" || got.code != 5 {
			t.Errorf("it ends with %+v", got)
		}
	})
	t.Run("alone", func(t *testing.T) {
		t.Setenv(guardianVariable, "none")
		p, before := killed(t, false)
		for l := range strings.Lines(settings(t, p.pid())) {
			if !strings.Contains(before, l) && !strings.Contains(l, "/dev/zero (deleted)") && !strings.Contains(l, "Cpus_allowed:") {
				t.Errorf("left behind: %s", l)
			}
		}
		got := p.finish("go")
		var cpus unix.CPUSet
		if err := unix.SchedGetaffinity(0, &cpus); err != nil {
			t.Fatal(err)
		}
		affinity := "changed"
		if cpus.Count() == 1 {
			affinity = "same"
		}
		tsc := "faults"
		if !recorder.TSCFaults() { // it is HLT that stays, where the program has it
			tsc = "runs"
		}
		want := "counts agree, 0 times back, 0 wrong CPUs, 0 of 8 threads whole\naffinity " + affinity + ", RDTSC " + tsc + "\n"
		if got.out != want || got.code != 5 {
			t.Errorf("it ends with %+v", got)
		}
	})
}

// joined returns lines of a process's settings in which mappings that are parts of one stand as that.
func joined(lines []string) string {
	var out []string
	var start, end, offset uint64
	var rest string
	for _, l := range lines {
		var from, to, at uint64
		var prot, of string
		if n, _ := fmt.Sscanf(l, "%x-%x %s %x", &from, &to, &prot, &at); n == 4 {
			_, of, _ = strings.Cut(l, fmt.Sprintf(" %08x ", at))
			if of = prot + of; strings.Contains(of, "/") && of == rest && from == end && at == offset+end-start {
				end = to
				out[len(out)-1] = fmt.Sprintf("%x-%x %s %08x %s", start, end, prot, offset, of[len(prot):])
				continue
			}
		}
		start, end, offset, rest = from, to, at, of
		out = append(out, l)
	}
	return strings.Join(out, "")
}

// TestAttachRefused: what cannot be recorded is refused with a reason and a hint, and goes on as it
// was.
func TestAttachRefused(t *testing.T) {
	need.Recorder(t)
	refused := func(t *testing.T, pid int, why string) {
		t.Helper()
		a := attach(t, pid, attachOptions{})
		r := a.result()
		if !strings.Contains(r.Error, why) || r.Hint == "" || r.Recorded {
			t.Errorf("%+v, want %q", r, why)
		}
		if _, err := os.Stat(a.path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file is left: %v", err)
		}
	}
	t.Run("no process", func(t *testing.T) {
		cmd := exec.Command("/bin/true")
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		refused(t, cmd.Process.Pid, "no such process")
	})
	t.Run("traced", func(t *testing.T) {
		p := startAlive(t, compile(t, "attachlocks"))
		a := attach(t, p.pid(), attachOptions{})
		refused(t, p.pid(), fmt.Sprintf("process %d (", a.cmd.Process.Pid))
		a.end()
		if o := p.finish("go"); o.code != 5 {
			t.Errorf("it ends with %+v", o)
		}
	})
	t.Run("a thread", func(t *testing.T) {
		p := startAlive(t, compile(t, "attachlocks"))
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid()))
		if err != nil {
			t.Fatal(err)
		}
		tid, err := strconv.Atoi(tasks[len(tasks)-1].Name())
		if err != nil || tid == p.pid() {
			t.Fatal(tid, err)
		}
		refused(t, tid, fmt.Sprintf("a thread of process %d", p.pid()))
	})
	t.Run("a zombie", func(t *testing.T) {
		cmd := exec.Command("/bin/true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		inState(t, cmd.Process.Pid, "Z")
		refused(t, cmd.Process.Pid, "zombie")
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a seccomp filter", func(t *testing.T) {
		p := startAlive(t, compile(t, "attachfilter"))
		refused(t, p.pid(), "seccomp")
		if o := p.finish("go"); o.code != 7 {
			t.Errorf("it ends with %+v", o)
		}
	})
	t.Run("without a vdso", func(t *testing.T) {
		p := startAlive(t, compile(t, "attachfilter"), "vdso")
		refused(t, p.pid(), "vdso")
		if o := p.finish("go"); o.code != 7 {
			t.Errorf("it ends with %+v", o)
		}
	})
	t.Run("a kernel thread", func(t *testing.T) {
		const kthreadd = 2
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", kthreadd))
		need.Machine(t, "kernel threads in /proc", link == "" && errors.Is(err, unix.ENOENT) && syscall.Kill(kthreadd, 0) != syscall.ESRCH)
		refused(t, kthreadd, "kernel")
	})
}
