package e2e

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/replay/debug"
	"vplay/replay/debug/api"
)

// rspClient is a client of gdb's protocol that holds all processes of a recording and sends
// what gdb sends to move them.
type rspClient struct {
	t     testing.TB
	conn  net.Conn
	in    *bufio.Reader
	pid   int               // chosen
	known map[string]string // all registers of a thread, by process, position and thread
}

func dialRSP(t testing.TB, addr string, pids []int) *rspClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &rspClient{t: t, conn: conn, in: bufio.NewReader(conn), known: map[string]string{}}
	c.ask("qSupported:multiprocess+;swbreak+;hwbreak+;vContSupported+")
	c.want("!", "OK")
	for _, pid := range pids {
		if got := c.ask(fmt.Sprintf("vAttach;%x", pid)); !strings.HasPrefix(got, "T") {
			t.Fatalf("attach to %d: %s", pid, got)
		}
	}
	return c
}

// exchange sends a packet and returns the reply and what came for the console before it.
// Nothing here has a byte that the protocol escapes.
func (c *rspClient) exchange(packet string) (reply, console string) {
	c.t.Helper()
	var sum byte
	for i := range len(packet) {
		sum += packet[i]
	}
	_ = c.conn.SetDeadline(time.Now().Add(time.Minute))
	_, err := fmt.Fprintf(c.conn, "+$%s#%02x", packet, sum)
	for err == nil {
		if _, err = c.in.ReadString('$'); err == nil {
			reply, err = c.in.ReadString('#')
		}
		if err == nil {
			_, err = c.in.Discard(2)
		}
		reply = strings.TrimSuffix(reply, "#")
		text, isText := strings.CutPrefix(reply, "O")
		if err != nil || !isText || reply == "OK" {
			break
		}
		var b []byte
		b, err = hex.DecodeString(text)
		console += string(b)
	}
	if err != nil {
		c.t.Fatalf("%s: %v", packet, err)
	}
	return reply, console
}

func (c *rspClient) ask(packet string) string {
	c.t.Helper()
	reply, _ := c.exchange(packet)
	return reply
}

func (c *rspClient) want(packet, reply string) {
	c.t.Helper()
	if got := c.ask(packet); got != reply {
		c.t.Fatalf("%s: %s, want %s", packet, got, reply)
	}
}

// monitor returns what a monitor command prints about the process.
func (c *rspClient) monitor(line string) string {
	c.t.Helper()
	reply, console := c.exchange("qRcmd," + hex.EncodeToString(fmt.Appendf(nil, "--process %d %s", c.pid, line)))
	if reply != "OK" {
		c.t.Fatalf("monitor %s: %s", line, reply)
	}
	return console
}

func (c *rspClient) choose(pid int) {
	c.t.Helper()
	c.pid = pid
	c.want(fmt.Sprintf("Hgp%x.0", pid), "OK")
}

func (c *rspClient) position() checkpoint.Position {
	c.t.Helper()
	p, err := debug.ParsePosition(strings.TrimSpace(c.monitor("when")))
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *rspClient) seek(p checkpoint.Position) {
	c.t.Helper()
	if got := c.monitor("seek " + p.String()); strings.TrimSpace(got) != p.String() {
		c.t.Fatalf("seek %s: %s", p, got)
	}
}

// gdbOrder are the general registers of a g packet, by their number in api.Registers.
var gdbOrder = [16]int{0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15}

// view implements crewDriver. Not all registers are digested as the history's are.
func (c *rspClient) view() view {
	c.t.Helper()
	v := view{pos: c.position()}
	listed := strings.Split(strings.TrimPrefix(c.ask("qfThreadInfo"), "m"), ",")
	for line := range strings.Lines(c.monitor("threads --json")) {
		var s debug.ThreadState
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			c.t.Fatalf("%s: %v", line, err)
		}
		id := fmt.Sprintf("p%x.%x", c.pid, s.TID)
		if !slices.Contains(listed, id) {
			c.t.Fatalf("thread %s is not in the list %v", id, listed)
		}
		c.want("Hg"+id, "OK")
		g := c.ask("g")
		key := fmt.Sprint(id, v.pos)
		if was, ok := c.known[key]; ok && was != g {
			c.t.Fatalf("thread %s at %s has the registers %s, and had %s", id, v.pos, g, was)
		}
		c.known[key] = g
		b, err := hex.DecodeString(g[:17*16])
		if err != nil {
			c.t.Fatal(err)
		}
		var gpr [16]uint64
		for i, n := range gdbOrder {
			gpr[n] = binary.LittleEndian.Uint64(b[8*i:])
		}
		rip := binary.LittleEndian.Uint64(b[8*16:])
		v.threads = append(v.threads, threadView{tid: s.TID, inCall: s.InCall, core: coreDigest(gpr, rip)})
		if s.Runs {
			v.tid, v.rip = s.TID, rip
		}
	}
	return v
}

func (c *rspClient) check(what string, want *view) {
	c.t.Helper()
	same := *want
	same.threads = slices.Clone(want.threads)
	for i := range same.threads {
		same.threads[i].all = 0
	}
	if got := c.view(); !reflect.DeepEqual(got, same) {
		c.t.Fatalf("%s: %+v, want %+v", what, got, same)
	}
}

// move resumes as gdb does: forward by vCont, with the process named unless schedule-multiple
// is on; backward by Hc and bs or bc, and the thread is the one that the user has selected.
func (c *rspClient) move(r api.Resume) {
	c.t.Helper()
	whom := fmt.Sprintf("p%x.-1", c.pid)
	tid := r.TID
	if tid == 0 {
		tid = c.view().threads[0].tid
	}
	thread := fmt.Sprintf("p%x.%x", c.pid, tid)
	c.want("T"+thread, "OK")
	c.want("Hg"+thread, "OK")
	var packet string
	switch {
	case r.Dir == api.Backward:
		if r.All {
			whom = "0"
		}
		c.want("Hc"+whom, "OK")
		packet = map[api.ResumeKind]string{api.Step: "bs", api.Continue: "bc"}[r.Kind]
	case r.Kind == api.Step && r.All:
		packet = "vCont;s:" + thread + ";c"
	case r.Kind == api.Step:
		packet = "vCont;s:" + thread + ";c:" + whom
	case r.All:
		packet = "vCont;c"
	default:
		packet = "vCont;c:" + whom
	}
	reply := c.ask(packet)
	if strings.HasPrefix(reply, "W") { // forward again from where the process exits
		reply = c.ask(fmt.Sprintf("vAttach;%x", c.pid))
	}
	if process := fmt.Sprintf("thread:p%x.", c.pid); !strings.HasPrefix(reply, "T") || !strings.Contains(reply, process) {
		c.t.Fatalf("%s: %s, want a stop in process %x", packet, reply, c.pid)
	}
}

func (c *rspClient) set(b api.Breakpoint)   { c.breakpoint("Z", b) }
func (c *rspClient) clear(b api.Breakpoint) { c.breakpoint("z", b) }

func (c *rspClient) breakpoint(letter string, b api.Breakpoint) {
	c.t.Helper()
	c.want(fmt.Sprintf("Hgp%x.0", c.pid), "OK")
	c.want(fmt.Sprintf("%s%d,%x,%x", letter, b.Kind, b.Addr, b.Len), "OK")
}
