package debug

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/debug/api"
	"vplay/tests/processes"
)

// openFamily opens a recording of several processes.
func openFamily(t *testing.T, o processes.Options) *Inferiors {
	t.Helper()
	s, err := replay.NewSession(processes.Open(t, o))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(s, 64<<20, loader.NewSymbols([]string{demo}, false))
	if err != nil {
		t.Fatal(err)
	}
	v, err := d.NewInferiors()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		v.Close()
		d.Close()
		s.Close()
	})
	return v
}

// interval returns the number of the interval that the selected process is in, by what
// is in its registers, and checks that it is shown with its own memory.
func (v *Inferiors) interval(t *testing.T, pid int) int {
	t.Helper()
	if err := v.Select(pid); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if n, err := v.ReadMemory(processes.PIDAt, b[:]); n != 1 || int(b[0]) != pid || v.Process().PID != pid || v.Threads()[0].PID != pid {
		t.Errorf("process %d has the memory of %d, %v", pid, b[0], err)
	}
	return int(v.state().R[3])
}

// TestInferiors goes through the moments of each process of a family: the others are
// at the same moment, by the order of the events. The number of an interval is in rbx, each
// has one event, and the events are in the order of the intervals.
func TestInferiors(t *testing.T) {
	v := openFamily(t, processes.Options{})
	pids := []int{processes.Crashed, processes.Parent, processes.Exited}
	if !slices.Equal(v.PIDs(), pids) {
		t.Fatalf("the processes are %v, want %v", v.PIDs(), pids)
	}
	ids := map[int][]int{} // the intervals of each process, in order
	for _, pid := range pids {
		for _, image := range processes.Of(int32(pid)) {
			for _, id := range image {
				ids[pid] = append(ids[pid], int(id))
			}
		}
	}
	// at returns the interval in which a process is behind event n of the session: that of
	// its next event, or its last.
	at := func(pid, n int) int {
		for _, id := range ids[pid] {
			if id >= n {
				return id
			}
		}
		return ids[pid][len(ids[pid])-1]
	}
	for _, moved := range pids {
		if err := v.Select(moved); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids[moved] {
			if err := v.Select(moved); err != nil {
				t.Fatal(err)
			}
			w := where{pos: checkpoint.Position{Interval: uint32(id)}}
			if err := v.note(true, v.seek(t.Context(), w, true)); err != nil {
				t.Fatal(err)
			}
			// The last event that has happened is that of the interval before, if there is
			// one; else the moment is that just before the process's first event.
			n := id
			if i := slices.Index(ids[moved], id); i > 0 {
				n = ids[moved][i-1] + 1
			}
			for _, pid := range pids {
				want := at(pid, n)
				if pid == moved {
					want = id
				}
				if got := v.interval(t, pid); got != want {
					t.Errorf("process %d at interval %d: process %d is in interval %d, want %d", moved, id, pid, got, want)
				}
			}
		}
	}
}

// TestInferiorsStart looks at all processes where a debugger begins: the one that crashed is
// at its end, and the others are where they were then. Looking moves nothing.
func TestInferiorsStart(t *testing.T) {
	v := openFamily(t, processes.Options{})
	for range 2 {
		for _, pid := range v.PIDs() {
			id := v.interval(t, pid)
			if pid == processes.Crashed && (v.final == nil || v.Stop().Signo != 11) {
				t.Errorf("the process that crashed is in interval %d, with %+v", id, v.Stop())
			}
			if pid == processes.Exited && len(v.Threads()) != 2 {
				t.Errorf("process %d has the threads %v", pid, v.Threads())
			}
		}
	}
	if err := v.Select(77); err == nil {
		t.Error("process 77 is there")
	}
	if v.Process().PID != processes.Exited {
		t.Errorf("process %d is selected", v.Process().PID)
	}
}

// TestInferiorsMoves steps one process back and forth: the others stand at the same places
// at the same moments, however they came there.
func TestInferiorsMoves(t *testing.T) {
	v := openFamily(t, processes.Options{})
	seen := map[string]string{}
	look := func(moved int) {
		var all []string
		for _, pid := range v.PIDs() {
			v.interval(t, pid)
			if pid == moved {
				continue
			}
			where := fmt.Sprintf("%d at %#x in %d", pid, v.state().RIP, v.state().R[3])
			all = append(all, where)
		}
		if err := v.Select(moved); err != nil {
			t.Fatal(err)
		}
		key, now := fmt.Sprint(moved, v.cur.Position()), fmt.Sprint(all)
		if was, ok := seen[key]; ok && was != now {
			t.Errorf("process %s: the others were %s, and are %s", key, was, now)
		}
		seen[key] = now
	}
	for _, moved := range []int{processes.Parent, processes.Crashed, processes.Exited} {
		if err := v.Select(moved); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []api.Direction{api.Backward, api.Forward, api.Backward} {
			for range 100 {
				stop, err := v.Resume(t.Context(), api.Resume{Kind: api.Step, Dir: dir, ExecEvents: true, All: true})
				if err != nil {
					t.Fatal(err)
				}
				look(moved)
				if stop.Kind != api.StopStep && stop.Kind != api.StopExec {
					break
				}
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d moments were seen", len(seen))
	}
}

// TestInferiorsAlone moves one process along with another, then the other alone: the first
// stays at the moment to which it was moved, whether it was looked at in between or not.
func TestInferiorsAlone(t *testing.T) {
	for _, looked := range []bool{true, false} {
		v := openFamily(t, processes.Options{})
		v.interval(t, processes.Parent)
		if err := v.Select(processes.Crashed); err != nil {
			t.Fatal(err)
		}
		if err := v.note(true, v.seek(t.Context(), where{pos: checkpoint.Position{Interval: 3}}, true)); err != nil {
			t.Fatal(err)
		}
		if looked {
			v.interval(t, processes.Parent)
			if err := v.Select(processes.Crashed); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := v.Resume(t.Context(), api.Resume{}); err != nil {
			t.Fatal(err)
		}
		if got := v.interval(t, processes.Parent); got != 2 {
			t.Errorf("looked at in between %t: the other process is in interval %d, want 2", looked, got)
		}
	}
}

// TestMonitorOfProcess asks about another process than the selected one.
func TestMonitorOfProcess(t *testing.T) {
	v := openFamily(t, processes.Options{})
	for line, want := range map[string]string{
		"threads":                        "20",
		"--process 30 threads":           "31  waits",
		" --process  30 when":            "4:",
		"--process 77 when":              "is not in the recording",
		"--process x when":               "is no process",
		"--process":                      "there is no command",
		"--process 30 --process 10 when": "name one process",
	} {
		var b strings.Builder
		if err := v.Monitor(t.Context(), line, &b); err != nil {
			b.WriteString(err.Error())
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q: %s, want %s", line, b.String(), want)
		}
		if v.pid() != processes.Crashed {
			t.Fatalf("%q: process %d is selected", line, v.pid())
		}
	}
}

// TestMonitorProcesses lists the processes.
func TestMonitorProcesses(t *testing.T) {
	v := openFamily(t, processes.Options{})
	var b strings.Builder
	if err := v.Select(processes.Parent); err != nil {
		t.Fatal(err)
	}
	if err := v.Monitor(t.Context(), "processes", &b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i, want := range []string{"  20  ", "* 10  ", "  30  "} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q", i, lines[i])
		}
	}
	for i, want := range []string{"killed by SIGSEGV", "", "exited with code 3"} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %d is %q", i, lines[i])
		}
	}
}
