//go:build linux && amd64

package record

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// TestAgent records programs with the agent and without it: the same calls are in both logs,
// with the same arguments, results and bytes, where these are no addresses and no times. Both recordings
// replay exactly, also with short intervals and with ends by force.
func TestAgent(t *testing.T) {
	dir := t.TempDir()
	tree := treeOfFiles(t, dir)
	agents := compile(t, "agent")
	for _, c := range []struct {
		name    string
		args    []string
		changes bool // what it reads, for the next run
	}{
		{"static", []string{compile(t, "agent", "-static"), tree}, false},
		{"dynamic", []string{agents, tree}, false},
		{"find", []string{"find", tree, "-size", "+5k", "-name", "f*"}, false},
		{"sqlite3", []string{"sqlite3", filepath.Join(dir, "db"), "drop table if exists t; create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<500) insert into t select i, i*i from n; select sum(b) from t;"}, true},
		{"ls", []string{"ls", "-lR", tree}, false},
	} {
		for _, m := range agentModes {
			t.Run(c.name+"/"+m.name, func(t *testing.T) {
				m.opt.FullRegs = true
				r := run{args: installed(t, c.args), opt: m.opt}
				r.opt.Agent = true
				want := r.native(t)
				got, res := r.recorded(t)
				same(t, got, want)
				t.Logf("%d of %d calls by the agent, %d forced ends; %v", res.Stats.AgentCalls, res.Stats.Calls, res.Stats.ForcedEnds, verify(t, res.Path))
				if res.Stats.AgentCalls == 0 {
					t.Errorf("the agent has made no call: %s", notesOf(t, res.Path))
				}
				if *underAgent || c.changes {
					return // the other recording would be by the agent, too, or of another run
				}
				r.opt.Agent = false
				_, by := r.recorded(t)
				equalLogs(t, logOf(t, res.Path)[:1], logOf(t, by.Path)[:1])
			})
		}
	}
}

// agentModes are how programs are recorded with the agent.
var agentModes = []struct {
	name string
	opt  recorder.Options
}{
	{"plain", recorder.Options{}},
	{"short", recorder.Options{Interval: 2 * time.Millisecond}},
	{"forced", recorder.Options{ForceEvery: 3 * time.Millisecond}},
	{"bare", recorder.Options{NoTrapTSC: true, NoFSGSBase: true}},
}

// treeOfFiles makes a folder with files in dir.
func treeOfFiles(t *testing.T, dir string) string {
	t.Helper()
	tree := filepath.Join(dir, "tree")
	for i := range 30 {
		name := filepath.Join(tree, fmt.Sprint("d", i%3), fmt.Sprint("f", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.Repeat([]byte{byte(i)}, i*1000), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// TestAgentFull: an interval ends when it has many events, however long intervals are: what reads the recording holds all of one.
func TestAgentFull(t *testing.T) {
	const calls = 400_000
	r := run{args: []string{need.Program(t, "dd"), "if=/dev/zero", "of=/dev/null", "bs=16", fmt.Sprint("count=", calls/2), "status=none"}}
	r.opt = recorder.Options{Agent: true, AgentAfter: 1, Keep: recorder.KeepAlways, Interval: time.Hour, ForceAfter: time.Hour}
	_, res := r.recorded(t)
	if res.Stats.AgentCalls < calls || res.Stats.Intervals < 3 {
		t.Errorf("%d calls by the agent in %d intervals", res.Stats.AgentCalls, res.Stats.Intervals)
	}
	t.Log(verify(t, res.Path))
}

// TestAgentThreads records programs with threads: the agent makes their calls, too, but those that wait
// for another thread, or it would be for ever. least is how many of a hundred it makes.
func TestAgentThreads(t *testing.T) {
	dir := treeOfFiles(t, t.TempDir())
	prog := compile(t, "agentthreads")
	for _, c := range []struct {
		name  string
		least uint64
	}{{"files", 90}, {"waits", 60}, {"events", 60}, {"fifos", 0}, {"stuck", 0}, {"own", 0}, {"sigsys", 60}} {
		for _, m := range agentModes {
			t.Run(c.name+"/"+m.name, func(t *testing.T) {
				r := run{args: []string{prog, c.name, dir}, opt: m.opt}
				r.opt.Agent = true
				want := r.native(t)
				got, res := r.recorded(t)
				same(t, got, want)
				t.Logf("%d of %d calls by the agent, %d forced ends; %v", res.Stats.AgentCalls, res.Stats.Calls, res.Stats.ForcedEnds, verify(t, res.Path))
				if m.name == "plain" && res.Stats.AgentCalls*100 < res.Stats.Calls*c.least {
					t.Errorf("the agent has made fewer than %d %% of the calls: %s", c.least, notesOf(t, res.Path))
				}
			})
		}
	}
}

// notesOf returns the notes of a recording's manifest.
func notesOf(t *testing.T, path string) string {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	return fmt.Sprint(rec.Manifest().Notes)
}

// TestAgentOrphaned kills the recorder with SIGKILL while its program, under the agent, runs its
// own code, waits in a call that the recorder makes, or in one that the agent makes. The program goes on, with
// threads and children, as if there had been neither.
func TestAgentOrphaned(t *testing.T) {
	need.Recorder(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte("x"), 5000), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"-static"}} {
		prog, threads := compile(t, "agent", flags...), compile(t, "agentthreads", flags...)
		for _, how := range []string{"spin", "poll", "read", "threads"} {
			t.Run(fmt.Sprint(how, flags), func(t *testing.T) {
				args := []string{prog, dir, how}
				if how == "threads" {
					args = []string{threads, "orphan", dir}
				}
				want, _ := orphan(t, exec.Command(args[0], args[1:]...), "", func() {})
				out := filepath.Join(t.TempDir(), "out.vplay")
				cmd := exec.Command("/proc/self/exe", append([]string{recordVerb, out, "1m"}, args...)...)
				cmd.Env = append(os.Environ(), agentVariable+"=1")
				got, errs := orphan(t, cmd, "", func() { _ = cmd.Process.Kill() }) // it has not been waited for
				if got != want {
					t.Errorf("without its recorder:\n%s\nby itself:\n%s\n%s", got, want, errs)
				}
			})
		}
	}
}

// orphan runs a command whose program says that it is ready, calls between, then gives the program its input, and returns
// all that it writes.
func orphan(t *testing.T, cmd *exec.Cmd, input string, between func()) (out, errs string) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	late := time.AfterFunc(limit, func() { r.Close() })
	defer late.Stop()
	b := bufio.NewReader(r)
	line, err := b.ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("%q, %v: %s", line, err, stderr.String())
	}
	time.Sleep(150 * time.Millisecond) // it waits by then
	between()
	time.Sleep(50 * time.Millisecond)
	if _, err := stdin.Write([]byte(input)); err != nil {
		t.Error(err)
	}
	_ = stdin.Close() // the end of what it may read
	rest, err := io.ReadAll(b)
	if err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it may have been killed
	return string(rest), stderr.String()
}

// TestAgentRestarts: a call that waits in the agent, and that a signal ends which the program ignores, is
// made again where the program made it, and not in the midst of the jump to the agent there.
func TestAgentRestarts(t *testing.T) {
	for _, args := range [][]string{{compile(t, "agenttrees"), "restarts", t.TempDir()}, {compile(t, "agentvia")}} {
		for _, m := range agentModes {
			t.Run(filepath.Base(args[0])+"/"+m.name, func(t *testing.T) {
				m.opt.Agent = true
				r, c := run{args: args, opt: m.opt}, guestCase{}
				c.check(t, &r, r.native(t))
			})
		}
	}
}

// TestAgentAway: a process that is to enter the agent loses its turn there, and meanwhile another begins to write what it maps,
// with which a random schedule has no agent any more. It goes on without.
func TestAgentAway(t *testing.T) {
	prog := compile(t, "trees")
	r, c := run{args: []string{prog, "pwrites"}}, guestCase{}
	want := r.native(t)
	for seed := range uint64(12) { // one of eight did not replay, before
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r.opt = recorder.Options{Agent: true, Chaos: true, ChaosSeed: seed}
			c.check(t, &r, want)
		})
	}
}

// TestAgentTrees records programs of several processes with the agent in each that shares no memory with
// another, at once and when it has made some calls, and without an agent: the program's calls are the same. least is how many of a hundred the agent
// makes where it comes at once.
func TestAgentTrees(t *testing.T) {
	dynamic, static := compile(t, "agenttrees"), compile(t, "agenttrees", "-static") // whose calls do not depend on what is installed
	for _, c := range []struct {
		name   string
		least  uint64
		chance bool // decides which calls the program makes
	}{
		{"forks", 60, false}, {"chain", 60, false}, {"execs", 40, false}, {"threads", 20, true}, {"pipes", 80, true},
		{"mapped", 0, false}, {"killed", 20, true}, {"dispatched", 0, true},
	} {
		for _, m := range agentModes {
			for name, after := range map[string]int{"at once": -1, "worth it": 0} {
				t.Run(c.name+"/"+m.name+"/"+name, func(t *testing.T) {
					m.opt.FullRegs = true
					r := run{args: []string{static, c.name, t.TempDir()}, opt: m.opt}
					if c.chance {
						r.args[0] = dynamic
					}
					r.opt.Agent, r.opt.AgentAfter = true, after
					want := r.native(t)
					got, res := r.recorded(t)
					got.out, want.out = sortLines(got.out), sortLines(want.out)
					same(t, got, want)
					t.Logf("%d of %d calls by the agent, %d forced ends; %v", res.Stats.AgentCalls, res.Stats.Calls, res.Stats.ForcedEnds, verify(t, res.Path))
					if m.name == "plain" && after != 0 && res.Stats.AgentCalls*100 < res.Stats.Calls*c.least {
						t.Errorf("the agent has made fewer than %d %% of the calls: %s", c.least, notesOf(t, res.Path))
					}
					if *underAgent || c.chance || m.name != "plain" {
						return
					}
					r.opt.Agent = false
					_, by := r.recorded(t)
					equalLogs(t, logOf(t, res.Path)[:1], logOf(t, by.Path)[:1])
				})
			}
		}
	}
}

// TestAgentCrashes: one process of several crashes. The others, wherever the agent has them, are in
// the recording up to that moment.
func TestAgentCrashes(t *testing.T) {
	prog := compile(t, "agenttrees")
	for i := range 5 {
		r := run{args: []string{prog, "crashes", t.TempDir()}, opt: recorder.Options{Keep: recorder.KeepCrash, Agent: true, AgentAfter: -1}}
		if i%2 == 1 {
			r.opt.ForceEvery = 3 * time.Millisecond
		}
		got, res := r.recorded(t)
		if got.sig != int(syscall.SIGSEGV) || !res.Recorded || res.Stats.AgentCalls == 0 {
			t.Fatalf("signal %d, %+v", got.sig, res)
		}
		if n := len(openRecording(t, res.Path).Processes()); n != 4 {
			t.Errorf("%d processes, want 4", n)
		}
		t.Log(verify(t, res.Path))
	}
}

// TestAgentStrict: once a program allows itself no call that would take the agent out, none is made.
func TestAgentStrict(t *testing.T) {
	r := run{args: []string{compile(t, "filters")}, opt: recorder.Options{Agent: true, AgentAfter: -1}}
	c := guestCase{}
	c.check(t, &r, r.native(t))
}

// transfer is bytes that one call has written to a pipe, or read from it.
type transfer struct {
	upTo        int64 // of the pipe's bytes, with those of this call
	enter, exit uint64
}

// transfersOf returns the calls nr on a descriptor that each process has made.
func transfersOf(t *testing.T, rec *checkpoint.Recording, nr int64, fd uint64) map[checkpoint.TID][]transfer {
	t.Helper()
	out := map[checkpoint.TID][]transfer{}
	entered, last := map[checkpoint.TID]checkpoint.Event{}, map[checkpoint.TID]uint64{}
	for _, info := range rec.Intervals() {
		iv, err := rec.Interval(info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range iv.Events {
			if e.Seq <= last[e.TID] && e.Seq+last[e.TID] != 0 {
				t.Fatalf("event %d of %d comes after %d", e.Seq, e.TID, last[e.TID])
			}
			last[e.TID] = e.Seq
			enter := entered[e.TID]
			switch {
			case e.Kind == checkpoint.EventEnter:
				entered[e.TID] = e
			case e.Kind == checkpoint.EventExit && e.NR == nr && enter.Args[0] == fd && e.Result > 0:
				var before int64
				if all := out[e.TID]; len(all) > 0 {
					before = all[len(all)-1].upTo
				}
				out[e.TID] = append(out[e.TID], transfer{before + e.Result, enter.Seq, e.Seq})
			}
		}
	}
	return out
}

// TestAgentOrder: the numbers of the events of two processes, whose calls the agent makes, say that what one
// has read the other had written before.
func TestAgentOrder(t *testing.T) {
	for _, m := range agentModes {
		t.Run(m.name, func(t *testing.T) {
			r := run{args: []string{compile(t, "agenttrees", "-static"), "pipes", t.TempDir()}, opt: m.opt}
			r.opt.Agent, r.opt.AgentAfter = true, -1
			_, res := r.recorded(t)
			if res.Stats.AgentCalls*2 < res.Stats.Calls && m.name == "plain" {
				t.Errorf("the agent has made %d of %d calls", res.Stats.AgentCalls, res.Stats.Calls)
			}
			rec := openRecording(t, res.Path)
			// The pipes have descriptors 3 to 6.
			for _, p := range []struct{ read, write uint64 }{{3, 4}, {5, 6}} {
				for writer, wrote := range transfersOf(t, rec, abi.SYS_WRITE, p.write) {
					n := 0
					for reader, read := range transfersOf(t, rec, abi.SYS_READ, p.read) {
						if reader != writer {
							n += inOrder(t, read, wrote)
						}
					}
					if n < 300 {
						t.Errorf("descriptor %d: %d reads", p.read, n)
					}
				}
			}
		})
	}
}

// inOrder checks that each read ends after the write of its last byte was begun. It returns how many reads
// there are.
func inOrder(t *testing.T, read, wrote []transfer) int {
	t.Helper()
	i := 0
	for _, r := range read {
		for i < len(wrote) && wrote[i].upTo < r.upTo {
			i++
		}
		if i == len(wrote) {
			t.Fatalf("%d bytes were read, and %d written", r.upTo, wrote[len(wrote)-1].upTo)
		}
		if w := wrote[i]; r.exit <= w.enter {
			t.Fatalf("byte %d was read at %d to %d, and written at %d to %d", r.upTo, r.enter, r.exit, w.enter, w.exit)
		}
	}
	return len(read)
}
