package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
)

// scheduledRecording is a recording of two processes, of which the log alone makes sense. In
// the one of the manifest, three threads run in three intervals and two images; one of them
// has a hostile name.
func scheduledRecording(t *testing.T) *checkpoint.Recording {
	t.Helper()
	const main, second, third, other = 200, 201, 202, 100
	path := filepath.Join(t.TempDir(), "schedule.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	context := func(tid checkpoint.TID, name string) checkpoint.Context {
		return checkpoint.Context{TID: tid, Name: name, OrigRAX: -1, XState: make([]byte, 576)}
	}
	sched := func(tid checkpoint.TID, why checkpoint.SchedReason) checkpoint.Event {
		return checkpoint.Event{Kind: checkpoint.EventSched, TID: tid, Why: why}
	}
	enter := func(tid checkpoint.TID, nr int64) checkpoint.Event {
		return checkpoint.Event{Kind: checkpoint.EventEnter, TID: tid, NR: nr}
	}
	exit := func(tid checkpoint.TID, nr int64) checkpoint.Event {
		return checkpoint.Event{Kind: checkpoint.EventExit, TID: tid, NR: nr}
	}
	starts := func(tid checkpoint.TID) checkpoint.Event {
		return checkpoint.Event{Kind: checkpoint.EventThread, TID: tid, Thread: checkpoint.ThreadStart, Parent: main, Regs: &checkpoint.Regs{}}
	}
	ends := func(tid checkpoint.TID) checkpoint.Event {
		return checkpoint.Event{Kind: checkpoint.EventThread, TID: tid, Thread: checkpoint.ThreadExit}
	}
	inRead := context(main, "prog")
	inRead.InCall, inRead.OrigRAX = true, abi.SYS_READ
	hostile := context(second, "a\x1b[2Jb\nc")
	for i, iv := range []*checkpoint.Interval{
		{
			PID: main, Start: []checkpoint.Context{context(main, "prog")},
			Events: []checkpoint.Event{starts(second), starts(third), enter(main, abi.SYS_READ), sched(second, checkpoint.SchedBlocked)},
			End:    checkpoint.End{Kind: checkpoint.EndForced, Forced: true, Contexts: []checkpoint.Context{hostile, inRead}},
		},
		{
			PID: other, Start: []checkpoint.Context{context(other, "")},
			Events: []checkpoint.Event{enter(other, abi.SYS_EXIT)}, End: checkpoint.End{Kind: checkpoint.EndExit, ExitCode: 3},
		},
		{
			PID: main, Start: []checkpoint.Context{hostile, inRead, context(third, "")},
			Events: []checkpoint.Event{
				sched(third, checkpoint.SchedSlice), sched(second, checkpoint.SchedYield), sched(third, checkpoint.SchedSlice), sched(second, checkpoint.SchedStart),
				sched(third, 0), ends(third), sched(main, checkpoint.SchedExit), exit(main, abi.SYS_READ), enter(main, abi.SYS_EXECVE),
			},
			End: checkpoint.End{Kind: checkpoint.EndExec},
		},
		{
			PID: main, Image: 1, Start: []checkpoint.Context{context(main, "next")},
			Events: []checkpoint.Event{{Kind: checkpoint.EventFault, TID: main, Signo: int32(abi.SIGSEGV)}},
			End:    checkpoint.End{Kind: checkpoint.EndCrash, Signo: int32(abi.SIGSEGV)},
		},
	} {
		iv.ID = uint32(i)
		if err := w.AddInterval(iv); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(checkpoint.Manifest{PID: main, Program: "/bin/p\x1bq", CPU: checkpoint.Identity{Vendor: "GenuineIntel", XCR0: 3}}); err != nil {
		t.Fatal(err)
	}
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

const scheduledText = `process 200 /bin/p?q
  from         to             events  thread                   why it switched
  0/0          0/3                 3  200 prog                 waits in read
  0/3          2/0                 1  201 a?[2Jb?c             forced end
  2/0          2/1                 1  202 prog                 yield
  2/1          2/2                 1  201 a?[2Jb?c             slice
  2/2          2/3                 1  202 prog                 start
  2/3          2/4                 1  201 a?[2Jb?c             unknown
  2/4          2/6                 2  202 prog                 exit
  2/6          3/0                 3  200 prog                 execve
  3/0          3/1                 1  200 next                 killed by SIGSEGV
  thread                   stretches   events  share  why they ended
  200 next                         3        7  50.0%  waits in a call 1, execve 1, killed by SIGSEGV 1
  201 a?[2Jb?c                     3        3  21.4%  forced end 1, slice 1, unknown 1
  202 prog                         3        4  28.6%  exit 1, start 1, yield 1
process 100
  from         to             events  thread                   why it switched
  1/0          1/1                 1  100                      exit code 3
  thread                   stretches   events  share  why they ended
  100                              1        1 100.0%  exit code 3 1
`

// scheduled returns what schedule prints.
func scheduled(t *testing.T, rec *checkpoint.Recording, f scheduleFlags) (string, error) {
	t.Helper()
	if f.last == 0 {
		f.last = ^uint32(0)
	}
	var out bytes.Buffer
	err := schedule(t.Context(), &out, rec, f)
	return out.String(), err
}

// TestSchedule prints a log with every reason of a switch, as text and as JSON, whole and in
// parts.
func TestSchedule(t *testing.T) {
	rec := scheduledRecording(t)
	all := strings.Split(scheduledText, "\n")
	lines := func(numbers ...int) string {
		var s strings.Builder
		for _, n := range numbers {
			s.WriteString(all[n] + "\n")
		}
		return s.String()
	}
	for _, c := range []struct {
		name string
		f    scheduleFlags
		want string
	}{
		{"all", scheduleFlags{}, scheduledText},
		{"process", scheduleFlags{pid: 100}, lines(15, 16, 17, 18, 19)},
		{"thread", scheduleFlags{thread: "201"}, lines(0, 1, 3, 5, 7, 11, 13)},
		{"interval", scheduleFlags{first: 3, last: 3}, lines(0, 1, 10, 11) + "  200 next                         1        1 100.0%  killed by SIGSEGV 1\n"},
	} {
		if got, err := scheduled(t, rec, c.f); err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
	for want, f := range map[string]scheduleFlags{
		`no thread "nobody" there`:       {thread: "nobody"},
		"no interval 7 in the recording": {first: 7, last: 8},
	} {
		if _, err := scheduled(t, rec, f); codeOf(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	checkScheduleJSON(t, rec)
}

// checkScheduleJSON compares the JSON with the text.
func checkScheduleJSON(t *testing.T, rec *checkpoint.Recording) {
	t.Helper()
	out, err := scheduled(t, rec, scheduleFlags{json: true})
	if err != nil || strings.ContainsRune(out, '\x1b') {
		t.Fatalf("%v: %q", err, out)
	}
	d := json.NewDecoder(strings.NewReader(out))
	var got []string
	for d.More() {
		var x struct {
			Kind string
			TID  int32
			From place
			Why  any
			Call string
		}
		if err := d.Decode(&x); err != nil {
			t.Fatal(err)
		}
		if x.Kind == "stretch" {
			got = append(got, fmt.Sprintf("%v %d %v %s", x.From, x.TID, x.Why, x.Call))
		} else {
			got = append(got, fmt.Sprintf("%s %d", x.Kind, x.TID))
		}
	}
	want := []string{
		"0/0 200 blocked read", "0/3 201 forced ", "2/0 202 yield ", "2/1 201 slice ", "2/2 202 start ", "2/3 201 unknown ", "2/4 202 exit ",
		"2/6 200 execve ", "3/0 200 killed by SIGSEGV ", "thread 200", "thread 201", "thread 202", "1/0 100 exit code 3 ", "thread 100",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("JSON:\n%s\nwant\n%s", g, w)
	}
}

// TestScheduleReplay: with --replay, the instructions of all stretches are those that verify
// counts, and where replay fails so does schedule.
func TestScheduleReplay(t *testing.T) {
	rec, err := checkpoint.Open(filepath.Join("demo", demoRecording))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	s, err := replay.NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	results, err := replay.Verify(t.Context(), s, replay.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var want, got uint64
	for _, r := range results {
		want += r.Instructions
	}
	out, err := scheduled(t, rec, scheduleFlags{replay: true, json: true})
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var x struct {
			Kind         string
			Instructions *uint64
			To           struct{ Position string }
		}
		if err := d.Decode(&x); err != nil || x.Instructions == nil || x.Kind == "stretch" && x.To.Position == "" {
			t.Fatalf("%+v, %v", x, err)
		}
		if x.Kind == "thread" {
			got += *x.Instructions
		}
	}
	if got != want || want == 0 {
		t.Errorf("%d instructions, verify has %d", got, want)
	}
	var diverged *replay.DivergenceError
	if _, err := scheduled(t, scheduledRecording(t), scheduleFlags{replay: true}); err == nil || codeOf(err) != exitDiverged && !errors.As(err, &diverged) {
		t.Errorf("a log that does not replay: %v", err)
	}
}
