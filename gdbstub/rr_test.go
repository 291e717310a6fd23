package gdbstub

import (
	"fmt"
	"strings"
	"testing"
)

// rrText is what a client of rr gets for a command, decoded.
func (c *client) rrText(command string) string {
	c.t.Helper()
	in := c.ask("qRRCmd:" + command)
	var out []byte
	if _, err := fmt.Sscanf(in, "%x", &out); err != nil {
		c.t.Fatalf("%s was answered %q: %v", command, in, err)
	}
	return string(out)
}

// TestRRClient goes through what Delve asks of rr, in its words.
func TestRRClient(t *testing.T) {
	f := newFake()
	c := dialWith(t, f, Options{RR: true})
	defer c.hangUp()
	c.want("QStartNoAckMode", "OK")

	// Registers are in the files that the description includes.
	target := c.ask("qXfer:features:read:target.xml:0,fff")
	if strings.Contains(target, "<reg") || !strings.Contains(target, `<xi:include href="64bit-core.xml"/>`) {
		t.Errorf("target.xml is\n%s", target)
	}
	if core := c.ask("qXfer:features:read:64bit-core.xml:0,fff"); !strings.Contains(core, `<reg name="rax"`) {
		t.Errorf("64bit-core.xml is\n%s", core)
	}
	c.want("qXfer:features:read:../register.go:0,fff", "E01")

	// The ends of history are signals.
	if got := c.ask("bc"); !strings.HasPrefix(got, "T00") {
		t.Errorf("the beginning of history is %s", got)
	}
	if got := c.rrText("when:-1"); got != "Current event: 0:0.0\n" {
		t.Errorf("when: %q", got)
	}
	c.want("Z0,401024,1", "OK") // the instruction that counts
	c.ask("vCont;c")
	at := c.rrText("when:-1")

	// A checkpoint is gone back to, and the first resume after that goes nowhere.
	if got := c.rrText("checkpoint:-1:" + hexText("a\tnote")); got != "Checkpoint 1 at a note\n" {
		t.Errorf("checkpoint: %q", got)
	}
	c.ask("vCont;c")
	if c.rrText("when:-1") == at {
		t.Fatal("continue did not move")
	}
	for _, where := range []string{"c1", strings.TrimSpace(strings.TrimPrefix(at, "Current event: "))} {
		for _, resume := range []string{"vCont;c", "bc"} {
			c.want("vRun;;"+hexText("0:1.0"), c.ask("vRun;;"+hexText("0:1.0")))
			if got := c.ask("vRun;;" + hexText(where)); !strings.HasPrefix(got, "T05") {
				t.Errorf("vRun: %s", got)
			}
			c.ask(resume)
			if got := c.rrText("when:-1"); got != at {
				t.Errorf("after vRun %s and %s: %q, want %q", where, resume, got, at)
			}
		}
	}
	if got := c.ask("vRun;"); !strings.HasPrefix(got, "T05") {
		t.Errorf("vRun: %s", got)
	}
	c.ask("vCont;c")
	if got := c.rrText("when:-1"); got != "Current event: 0:0.0\n" {
		t.Errorf("after vRun: %q", got)
	}
	for _, bad := range []string{"c7", "c", "cx", "9:9", "exit"} {
		if got := c.ask("vRun;;" + hexText(bad)); !strings.HasPrefix(got, "E") {
			t.Errorf("vRun %s: %s", bad, got)
		}
	}
	if got := c.rrText("info checkpoints:-1"); got != "ID\tWhen\tWhere\n1\t"+strings.TrimPrefix(at, "Current event: ")[:len(at)-len("Current event: ")-1]+"\ta note\n" {
		t.Errorf("info checkpoints: %q", got)
	}
	if got := c.rrText("delete checkpoint:-1:" + hexText("1")); got != "Deleted checkpoint 1.\n" {
		t.Errorf("delete checkpoint: %q", got)
	}
	if got := c.rrText("delete checkpoint:-1:" + hexText("1")); got != "no checkpoint 1\n" {
		t.Errorf("a second time: %q", got)
	}

	c.want("z0,401024,1", "OK")
	c.ask("vCont;c") // the crash
	if got := c.ask("vCont;c"); !strings.HasPrefix(got, "T09") {
		t.Errorf("the end of history is %s", got)
	}

	// Memory is there to its end or not at all.
	c.want("m402ffe,2", "0000")
	c.want("m402ffe,4", "E01")
	c.want("_M100,rwx", "")
	c.want("qRRCmd:when", "E01")
	c.want("qRRCmd:no:-1", "E01")
	c.want("qRRCmd:checkpoint:-1:zz", "E01")
}

// TestRRBounded has a client that asks for more than is kept.
func TestRRBounded(t *testing.T) {
	c := dialWith(t, newFake(), Options{RR: true})
	defer c.hangUp()
	c.want("QStartNoAckMode", "OK")
	long := hexText(strings.Repeat("x", 1000))
	for range maxRRCheckpoints {
		if got := c.rrText("checkpoint:-1:" + long); len(got) > 2*maxRRNote {
			t.Fatalf("a note of %d bytes", len(got))
		}
	}
	if got := c.rrText("checkpoint:-1:"); !strings.HasPrefix(got, "there are") {
		t.Errorf("one more: %s", got)
	}
}

// TestNoRR has gdb's server know nothing of it.
func TestNoRR(t *testing.T) {
	c := dial(t, newFake())
	defer c.hangUp()
	c.want("QStartNoAckMode", "OK")
	c.want("qRRCmd:when:-1", "")
	if got := c.ask("qXfer:features:read:target.xml:0,fff"); !strings.Contains(got, "<reg") {
		t.Errorf("target.xml is\n%s", got)
	}
}
