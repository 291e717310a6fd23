package gdbstub

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"vplay/replay/debug/api"
)

// unhex decodes a reply of text in hex.
func unhex(t *testing.T, reply string) string {
	t.Helper()
	b, err := hex.DecodeString(reply)
	if err != nil {
		t.Fatalf("reply %q: %v", reply, err)
	}
	return string(b)
}

func rcmd(line string) string { return "qRcmd," + hexText(line) }

func TestJobs(t *testing.T) {
	f := newFake()
	c := dial(t, f)
	for _, step := range []struct{ command, want string }{
		{"& when", "done\n0:44.0\n"},
		{"&", "done\n"},
		{"& nonsense", "done\nerror: no such command: nonsense\n"},
	} {
		want := strings.Replace(step.want, "44", itoa(f.pos), 1)
		if got := unhex(t, c.ask(rcmd(step.command))); got != want {
			t.Errorf("monitor %s: %q, want %q", step.command, got, want)
		}
	}
	start := time.Now()
	for range 2 {
		if got := unhex(t, c.ask(rcmd("& wait"))); got != "running\n" { // the first is ended by the second
			t.Errorf("a job that goes on: %q", got)
		}
		if got := unhex(t, c.ask(rcmd("&"))); got != "running\n" {
			t.Errorf("a job that goes on: %q", got)
		}
	}
	if d := time.Since(start); d < 4*jobPatience || d > 4*jobPatience+5*time.Second {
		t.Errorf("four answers took %v", d)
	}
	c.want("qC", "QC1234") // ends it
	if got := unhex(t, c.ask(rcmd("&"))); got != "done\n" {
		t.Errorf("no job: %q", got)
	}
	c.ask(rcmd("& wait"))
	c.raw("\x03") // as does an interrupt
	c.raw(frame(rcmd("&")))
	if got := unhex(t, c.receive()); got != "done\n" {
		t.Errorf("after an interrupt: %q", got)
	}
	c.ask(rcmd("& wait"))
	if err := c.hangUp(); err != nil { // and the end of the connection
		t.Error(err)
	}
	if f.overlap.Load() {
		t.Error("calls to the target overlapped")
	}
}

// TestAbandonedMonitor sends the next packet before the reply of a monitor command,
// as gdb does after Ctrl-C: the command ends, and nothing more is heard of it.
func TestAbandonedMonitor(t *testing.T) {
	f := newFake()
	c := dial(t, f)
	c.want("QStartNoAckMode", "OK")
	c.raw(frame(rcmd("wait")))
	time.Sleep(20 * time.Millisecond)
	c.want("qC", "QC1234")
	c.want("p10", "1010400000000000")
	if err := c.hangUp(); err != nil || f.overlap.Load() {
		t.Errorf("%v, overlap %t", err, f.overlap.Load())
	}
}

// TestJobOutput reads more than fits into a packet, and more than a job may keep.
func TestJobOutput(t *testing.T) {
	f := newFake()
	f.output = strings.Repeat("0123456789abcde\n", MaxPacket/16)
	c := dial(t, f)
	var got strings.Builder
	for reply := unhex(t, c.ask(rcmd("& print"))); ; reply = unhex(t, c.ask(rcmd("&"))) {
		status, text, _ := strings.Cut(reply, "\n")
		got.WriteString(text)
		if status == "done" {
			break
		}
		if status != "running 50 %" {
			t.Fatalf("status %q", status)
		}
	}
	if got.String() != f.output {
		t.Errorf("%d bytes, not those written", got.Len())
	}
	f.output = strings.Repeat("x", maxJobOutput+1)
	if got := unhex(t, c.ask(rcmd("& print"))); got != "done\nerror: gdbstub: output is not read\n" {
		t.Errorf("%.100q", got)
	}
	f.panics = true
	if got := unhex(t, c.ask(rcmd("& when"))); !strings.Contains(got, "done\nerror: internal error") {
		t.Errorf("%.100q", got)
	}
	f.panics = false
	c.want(rcmd("& exit"), hexText("done\n"))
	if err := <-c.err; !errors.Is(err, api.ErrExit) {
		t.Errorf("after exit: %v", err)
	}
}
