package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/lockstep"
	"vplay/tests/processes"
)

// vplayd runs a command and returns what it prints, and its exit code.
func vplayd(t *testing.T, args ...string) (stdout string, code int, err error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot(&out)
	root.SetArgs(append(args, "--no-sandbox"))
	err = root.ExecuteContext(t.Context())
	var done exitError
	switch {
	case errors.As(err, &done):
		return out.String(), done.code, nil
	case err != nil:
		return out.String(), codeOf(err), err
	}
	return out.String(), exitOK, nil
}

// expect checks that a text has all parts, in this order.
func expect(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Errorf("%s: %q is not there, or not in its place:\n%s", what, part, text)
			return
		}
		rest = after
	}
}

func TestListProcesses(t *testing.T) {
	path := processes.Write(t, processes.Options{})
	out, code, err := vplayd(t, "processes", path)
	if code != exitOK || err != nil {
		t.Fatal(code, err)
	}
	expect(t, "processes", out, "PID", "PARENT", "THREADS", "INTERVALS", "CPU", "ENDED", "PROGRAM\n",
		"  10   -       1        3          0.003 s  recording stopped before the program ended  /bin/sh -c cc1 weather.c; true\n",
		"* 20   10      1        3          0.003 s  killed by SIGSEGV                           ", "  /usr/lib/cc1 weather.c\n",
		"  30   10      2        1          0.001 s  exited with code 3                          ", "  /bin/true\n")
	out, code, err = vplayd(t, "processes", "--json", path)
	if code != exitOK || err != nil {
		t.Fatal(code, err)
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	for _, want := range []string{
		"10 0 1 3 1 3 recording stopped 0 false false", "20 10 1 3 2 3 crash 11 true true", "30 10 2 1 1 1 exit 0 false false",
	} {
		var p process
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%d %d %d %d %d %d %s %d %t %t", p.PID, p.Parent, p.Threads, p.Intervals, p.Images, p.Events, p.End, p.Signal, p.Crashed, p.Main)
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if (p.PID == processes.Exited) != (p.ExitCode != nil && *p.ExitCode == processes.ExitCode) || p.Cwd == "" || len(p.Args) == 0 {
			t.Errorf("process %d is %+v", p.PID, p)
		}
	}
	if d.More() {
		t.Error("there is more")
	}
}

// TestListKilledChild marks the process that the recording is about, not a child that was
// ended by a signal: that is a crash only where it dumps core.
func TestListKilledChild(t *testing.T) {
	for signo, isCrash := range map[abi.Signal]bool{abi.SIGHUP: false, abi.SIGSEGV: true} {
		path := processes.Write(t, processes.Options{About: processes.Parent, Signo: int32(signo)})
		out, code, err := vplayd(t, "processes", path)
		if code != exitOK || err != nil {
			t.Fatal(code, err)
		}
		expect(t, "processes", out, "\n* 10 ", "\n  20 ", "killed by "+signo.String(), "\n  30 ")
		out, code, err = vplayd(t, "processes", "--json", path)
		if code != exitOK || err != nil {
			t.Fatal(code, err)
		}
		expect(t, "processes --json", out, `"pid":10,`, `"main":true`, `"pid":20,`, fmt.Sprintf(`"signal":%d,"crashed":%t,"main":false`, signo, isCrash))
	}
}

// TestInfoCountsProcess counts what the process has that info shows.
func TestInfoCountsProcess(t *testing.T) {
	path := processes.Write(t, processes.Options{})
	for pid, want := range map[string]string{
		"10": "3 intervals (3 fat, 0 slim), 3 events, 0.003 s of CPU time\n",
		"30": "1 interval (1 fat, 0 slim), 1 event, 0.001 s of CPU time\n",
	} {
		out, code, err := vplayd(t, "info", "--count", "--process", pid, path)
		if code != exitOK || err != nil {
			t.Fatal(code, err)
		}
		expect(t, "info --process "+pid, out, want, "of this process; the size is of the whole file\n", "instructions\n")
	}
}

// TestForgedProcessTree lists processes whose parents are in a circle, are themselves, or
// are a long chain, with names that would move a terminal's cursor.
func TestForgedProcessTree(t *testing.T) {
	const n = 2000
	path := filepath.Join(t.TempDir(), "forged.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := checkpoint.Manifest{PID: 1, Parent: 3, Program: "\x1b[2J/x\ny\t", Args: []string{"", strings.Repeat("ü", 5000)}}
	for pid := int32(1); pid <= n; pid++ {
		if err := w.AddInterval(&checkpoint.Interval{ID: uint32(pid), PID: pid}); err != nil {
			t.Fatal(err)
		}
		switch {
		case pid == 4:
			m.Processes = append(m.Processes, checkpoint.Process{PID: pid, Parent: pid})
		case pid > 1:
			m.Processes = append(m.Processes, checkpoint.Process{PID: pid, Parent: pid - 1})
		}
	}
	m.Processes[1].Parent = 2 // 1 is the child of 3, 3 of 2, 2 of 1
	if err := w.Finish(m); err != nil {
		t.Fatal(err)
	}
	out, code, err := vplayd(t, "processes", path)
	if code != exitOK || err != nil {
		t.Fatal(code, err)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != n+1 || len(out) > 300*n || strings.ContainsAny(out, "\x1b\t") {
		t.Errorf("%d lines, %d bytes", len(lines), len(out))
	}
	for _, l := range lines[1:] {
		if len([]rune(l)) > 250 {
			t.Errorf("a line of %d characters", len([]rune(l)))
		}
	}
	if _, code, err := vplayd(t, "info", path); code != exitOK {
		t.Errorf("info: %d, %v", code, err)
	}
}

// TestUnknownProcess names a process that the recording does not have to each verb that
// takes one.
func TestUnknownProcess(t *testing.T) {
	path := processes.Write(t, processes.Options{})
	verbs := [][]string{
		{"serve", "--listen", "127.0.0.1:0", "--no-sandbox"}, {"replay", "--debugger", "true"}, {"info", "--no-sandbox"}, {"dump", "--no-sandbox"},
		{"verify", "--no-sandbox"}, {"windows", "--no-sandbox"}, {"export-elf", "-o", "-", "--no-sandbox"}, {"vscode", "--dir", t.TempDir()},
		{"report", "-o", "-", "--no-sandbox"},
	}
	for _, verb := range verbs {
		for pid, want := range map[string]string{"77": "there is no process 77 in " + path, "0": "there is no process 0", "-1": "no process -1", "x": "--process x", "99999999999": "--process 99999999999"} {
			root := newRoot(&bytes.Buffer{})
			root.SetArgs(slices.Concat(verb, []string{"--process", pid, path}))
			err := root.ExecuteContext(t.Context())
			var hint hintError
			if err == nil || !strings.Contains(err.Error(), want) || codeOf(err) != exitUsage || !errors.As(err, &hint) {
				t.Errorf("%s --process %s: %v", verb[0], pid, err)
			} else if !strings.Contains(hint.hint, "vplayd processes lists") {
				t.Errorf("%s --process %s: the hint is %q", verb[0], pid, hint.hint)
			}
			if pid == "77" {
				expect(t, verb[0], hint.hint, "20 cc1", "10 sh", "30 true")
			}
		}
	}
}

func TestInfoOfProcesses(t *testing.T) {
	path := processes.Write(t, processes.Options{})
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"/usr/lib/cc1 (process 20)", "cc1 weather.c", "killed by SIGSEGV", "0x401028", "processes", "10 sh (recording stopped", "30 true (exited with code 3)", "lists all 3"}},
		{[]string{"-p", "30"}, []string{"/bin/true (process 30)", "exited with code 3", "0x40100a", "processes", "20 cc1 (killed by SIGSEGV), 10 sh"}},
		{[]string{"--process", "10"}, []string{"/bin/sh (process 10)", "recording stopped before the program ended", "processes", "20 cc1", "30 true"}},
	} {
		out, code, err := vplayd(t, slices.Concat([]string{"info", path}, c.args)...)
		if code != exitOK || err != nil {
			t.Fatal(code, err)
		}
		expect(t, fmt.Sprint("info ", c.args), out, c.want...)
		out, _, err = vplayd(t, slices.Concat([]string{"info", "--json", path}, c.args)...)
		var in info
		if err = errors.Join(err, json.Unmarshal([]byte(out), &in)); err != nil || len(in.Others) != 2 || in.Others[0].PID == in.PID {
			t.Errorf("%v: %+v, %v", c.args, in, err)
		}
	}
	out, _, err := vplayd(t, "info", processes.Write(t, processes.Options{Alone: processes.Parent}))
	if err != nil || strings.Contains(out, "processes") {
		t.Errorf("of a process that is alone, %v:\n%s", err, out)
	}
}

func TestVerifyOfProcesses(t *testing.T) {
	path := processes.Write(t, processes.Options{})
	out, code, err := vplayd(t, "verify", path)
	if code != exitOK || err != nil {
		t.Fatal(code, err)
	}
	expect(t, "verify", out, "process 20 cc1: 3 intervals, ", " instructions, exact\n", "process 10 sh: 3 intervals, ", "process 30 true: 1 interval, ", "7 intervals, ")
	out, code, err = vplayd(t, "verify", "-p", "10", path)
	if code != exitOK || err != nil || strings.Contains(out, "20") {
		t.Errorf("of one process: %d, %v:\n%s", code, err, out)
	}
	expect(t, "verify -p 10", out, "process 10 sh: 3 intervals, ", "\n3 intervals, ")

	path = processes.Write(t, processes.Options{Diverges: processes.Exited})
	out, code, err = vplayd(t, "verify", path)
	if code != exitDiverged || err != nil {
		t.Errorf("one that diverges: %d, %v", code, err)
	}
	expect(t, "verify", out, "interval 4 of process 30: ", "process 20 cc1: 3 intervals, ", "exact", "process 30 true: 1 interval, ", "1 divergence\n", "7 intervals, ", "1 divergence\n")
	if _, code, err = vplayd(t, "verify", "-p", "20", path); code != exitOK || err != nil {
		t.Errorf("another one than that which diverges: %d, %v", code, err)
	}
	out, code, err = vplayd(t, "verify", "--json", path)
	if code != exitDiverged || err != nil {
		t.Errorf("as JSON: %d, %v", code, err)
	}
	expect(t, "verify --json", out, `"interval":4`, `"pid":30`, `"divergences":0`, `"program":"/usr/lib/cc1"`, `"divergences":1`, `"pid":30`)

	out, _, err = vplayd(t, "verify", "-v", processes.Write(t, processes.Options{Alone: processes.Parent}))
	if err != nil || strings.Contains(out, "process") {
		t.Errorf("of a process that is alone, %v:\n%s", err, out)
	}
}

func TestDumpOfProcesses(t *testing.T) {
	path := processes.Write(t, processes.Options{})
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"0: pid 10", "1: pid 20", "2: pid 10", "3: pid 20", "4: pid 30", "5: pid 10", "6: pid 20"}},
		{[]string{"-p", "20"}, []string{"1: pid 20", "3: pid 20", "6: pid 20"}},
		{[]string{"-p", "20", "2-5"}, []string{"3: pid 20"}},
	} {
		out, code, err := vplayd(t, slices.Concat([]string{"dump", path}, c.args)...)
		var got []string
		for l := range strings.Lines(out) {
			if rest, ok := strings.CutPrefix(l, "interval "); ok {
				got = append(got, rest[:strings.IndexByte(rest, ',')])
			}
		}
		if code != exitOK || err != nil || !slices.Equal(got, c.want) {
			t.Errorf("dump %v: %d, %v: %q", c.args, code, err, got)
		}
	}
	if _, code, err := vplayd(t, "dump", "-p", "30", path, "5-6"); code != exitUsage || !strings.Contains(fmt.Sprint(err), "no interval of process 30") {
		t.Errorf("intervals of another process: %d, %v", code, err)
	}
}

// TestSlimNamesProcess slims a recording of which one process does not replay.
func TestSlimNamesProcess(t *testing.T) {
	path := processes.Write(t, processes.Options{Diverges: processes.Exited})
	err := slim(t.Context(), path, slimFlags{quiet: true})
	if err == nil || codeOf(err) != exitDiverged || !strings.HasPrefix(err.Error(), "process 30: replay: diverged at 4:") {
		t.Errorf("got %v", err)
	}
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if s := rec.Sizes(); s.Fat != 1 || s.Slim != 6 {
		t.Errorf("%d intervals are fat and %d slim", s.Fat, s.Slim)
	}
}

// TestProcessOption looks at the commands that verbs print.
func TestProcessOption(t *testing.T) {
	s, err := replay.NewSession(processes.Open(t, processes.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := lockstepRun{s: s, path: "x.vplay"}
	for id, want := range map[uint32]string{0: "vplayd replay --process 10 x.vplay -- ", 4: "vplayd replay --process 30 x.vplay -- ", 6: "vplayd replay x.vplay -- "} {
		got := l.command(&lockstep.Difference{At: checkpoint.Position{Interval: id}})
		if !strings.HasPrefix(got, want) {
			t.Errorf("interval %d: %s, want %s", id, got, want)
		}
	}
}

// TestWayToDivergence: the way to where replay differs begins at the last event that was right.
func TestWayToDivergence(t *testing.T) {
	s, err := replay.NewSession(processes.Open(t, processes.Options{Diverges: processes.Exited}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := lockstepRun{c: new(cobra.Command), s: s}
	l.c.SetContext(t.Context())
	list, err := l.wayTo(checkpoint.Position{Interval: 4, Instr: 3})
	want := []stretch{{from: checkpoint.Position{Interval: 4}, to: checkpoint.Position{Interval: 4, Instr: 4}, insns: 3}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %v, want %v", list, err, want)
	}
}

// TestIndexPaths keeps the indexes of the processes of a recording in files of their own.
func TestIndexPaths(t *testing.T) {
	rec := processes.Open(t, processes.Options{})
	s, err := replay.NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for pid, want := range map[int32]string{processes.Crashed: "x.vplay.index", processes.Parent: "x.vplay.10.index"} {
		if got := indexPath(openProcess(t, s, pid), "x.vplay"); got != want {
			t.Errorf("process %d: %s, want %s", pid, got, want)
		}
	}
}

func openProcess(t *testing.T, s *replay.Session, pid int32) *debug.Session {
	t.Helper()
	d, err := debug.OpenProcess(s, pid, 1<<20, loader.NewSymbols(nil, false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}
