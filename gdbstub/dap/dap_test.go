package dap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// client is the other end of a session.
type client struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
	done chan error
	seq  int
}

// connect begins a session with a server.
func connect(t testing.TB, v *Server) *client {
	ours, theirs := net.Pipe()
	c := &client{t: t, conn: ours, r: bufio.NewReader(ours), done: make(chan error, 1)}
	go func() { c.done <- v.Serve(context.Background(), theirs) }()
	t.Cleanup(func() { ours.Close() })
	return c
}

// begin begins to debug; args are those of initialize.
func (c *client) begin(args string) {
	c.t.Helper()
	c.ask("initialize", args)
	c.ask("launch", "")
	c.ask("configurationDone", "")
}

func (c *client) send(text string) {
	c.t.Helper()
	_ = c.conn.SetDeadline(time.Now().Add(20 * time.Second))
	if err := godap.WriteBaseMessage(c.conn, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends a request and returns what comes up to its response, as JSON, with the
// response last.
func (c *client) ask(command, args string) []string {
	c.t.Helper()
	c.seq++
	if args == "" {
		args = "null"
	}
	c.send(fmt.Sprintf(`{"seq":%d,"type":"request","command":%q,"arguments":%s}`, c.seq, command, args))
	var out []string
	for {
		b, err := godap.ReadBaseMessage(c.r)
		if err != nil {
			c.t.Fatalf("%s: %v", command, err)
		}
		out = append(out, string(b))
		if strings.Contains(string(b), fmt.Sprintf(`"request_seq":%d,`, c.seq)) {
			return out
		}
	}
}

// wants sends a request and fails unless its response has the text.
func (c *client) wants(command, args, want string) {
	c.t.Helper()
	out := c.ask(command, args)
	if got := out[len(out)-1]; !strings.Contains(got, want) {
		c.t.Errorf("%s %s: %s, want %s", command, args, got, want)
	}
}

// event reads up to an event and fails unless it has the text.
func (c *client) event(name, want string) {
	c.t.Helper()
	for {
		b, err := godap.ReadBaseMessage(c.r)
		if err != nil {
			c.t.Fatal(err)
		}
		if strings.Contains(string(b), `"event":"`+name) {
			if !strings.Contains(string(b), want) {
				c.t.Errorf("event %s, want %s", b, want)
			}
			return
		}
	}
}

func serverOf(f *fake) *Server {
	return New(f, fakeSymbols{f}, Options{Commands: []Command{{Usage: "when"}, {Usage: "reads WHERE", Help: "see monitor when"}}, Accesses: []string{"reads"}})
}

func TestSession(t *testing.T) {
	f := newFake()
	c := connect(t, serverOf(f))
	c.wants("initialize", `{"linesStartAt1":true}`, `"supportsStepBack":true`)
	c.wants("launch", `{"sourceFileMap":{"/src":"/home/me"}}`, `"success":true`)
	c.wants("setBreakpoints", `{"source":{"path":"/home/me/fake.c"},"breakpoints":[{"line":20},{"line":99},{"line":30,"condition":"n == 5"},{"line":5,"hitCondition":"x"}]}`,
		`"verified":true,`)
	c.wants("configurationDone", "", `"success":true`)
	c.event("stopped", `"reason":"exception","description":"Signal SIGSEGV"`)
	c.wants("stackTrace", `{"threadId":7}`, `"path":"/home/me/fake.c"`)
	c.wants("reverseContinue", `{"threadId":7}`, `"success":true`)
	c.event("stopped", `"reason":"breakpoint"`)
	if f.pos != 40 {
		t.Errorf("at instruction %d, want 40", f.pos)
	}
	for _, s := range []struct {
		command string
		pos     int
	}{{"next", 42}, {"stepIn", 44}, {"stepBack", 42}, {"stepBack", 40}, {"stepBack", 38}, {"next", 40}} {
		c.wants(s.command, `{"threadId":7}`, `"success":true`)
		c.event("stopped", "")
		if f.pos != s.pos {
			t.Errorf("after %s at instruction %d, want %d", s.command, f.pos, s.pos)
		}
	}
	c.wants("next", `{"threadId":7,"granularity":"instruction"}`, `"success":true`)
	c.event("stopped", `"reason":"step"`)
	c.wants("stepBack", `{"threadId":7}`, `"success":true`) // from the middle to the start
	c.event("stopped", `"reason":"step"`)
	if f.pos != 40 {
		t.Errorf("at instruction %d, want 40", f.pos)
	}
	c.wants("evaluate", `{"expression":"n","context":"watch"}`, `"result":"20"`)
	c.wants("evaluate", `{"expression":"m"}`, `there is no (m)`)
	c.wants("evaluate", `{"expression":"when","context":"repl"}`, `"result":"when"`)
	for line, want := range map[string]string{
		"reads n": "reads 0x8000 8", "reads n 2": "reads 0x8000 2", "monitor reads n 2 30": "reads 0x8000 2 30", "vplay reads n 2": "reads 0x8000 2", "vplay when": "when", "reads m": "reads m", "reads": "reads", "when n": "when n",
	} {
		c.wants("evaluate", `{"expression":"`+line+`","context":"repl"}`, `"result":"`+want+`"`)
	}
	c.wants("scopes", `{"frameId":0}`, `"name":"Locals"`)
	c.wants("dataBreakpointInfo", `{"name":"n"}`, `"dataId":"0x8000/8"`)
	c.wants("setDataBreakpoints", `{"breakpoints":[{"dataId":"0x8000/8","accessType":"write"},{"dataId":"x"}]}`, `"verified":true`)
	c.wants("continue", `{"threadId":7}`, `"allThreadsContinued":true`)
	c.event("stopped", `"reason":"data breakpoint"`)
	c.wants("readMemory", `{"memoryReference":"0x8000","count":100}`, `"unreadableBytes":92`)
	c.wants("readMemory", `{"memoryReference":"0xffffffffffffffff","offset":-1,"count":100}`, `nothing is mapped`)
	c.wants("disassemble", `{"memoryReference":"0x1010","instructionOffset":-6,"instructionCount":8}`, `"address":"0x1010"`)
	c.wants("restart", "", `"success":true`)
	c.event("stopped", "Beginning of the recording")
	c.wants("nonsense", "", `"success":false`)
	c.send(`{"seq":1`)
	c.wants("stackTrace", `{"threadId":"x"}`, `bad arguments`)
	c.wants("variables", `{"variablesReference":1000}`, `"variables":[]`) // of before
	c.wants("scopes", `{"frameId":1000}`, `"scopes":[]`)
	c.wants("stackTrace", `{"threadId":99}`, `"stackFrames":[]`)
	c.wants("evaluate", `{"frameId":1000,"expression":"n","context":"watch"}`, `"showUser":false`)
	c.wants("evaluate", `{"frameId":1000,"expression":"n","context":"repl"}`, `"result":"0"`)
	c.wants("variables", `{"variablesReference":999}`, `nothing here has the number 999`)
	c.wants("continue", `{"threadId":99}`, `"showUser":true`)
	c.wants("evaluate", `{"expression":"help","context":"repl"}`, `reads WHERE                      see when`)
	c.wants("evaluate", `{"expression":"help reads","context":"repl"}`, `reads WHERE\n  see when`)
	c.wants("disconnect", "", `"success":true`)
	c.event("terminated", "")
	if err := <-c.done; err != nil {
		t.Errorf("the session ended with %v", err)
	}
	if len(f.breaks) != 0 {
		t.Errorf("%v are left", f.breaks)
	}
}

// TestWhileRunning sends requests while the program runs.
func TestWhileRunning(t *testing.T) {
	f := newFake()
	f.hang = true
	c := connect(t, serverOf(f))
	c.ask("initialize", "{}")
	c.ask("launch", "{}")
	c.ask("configurationDone", "{}")
	c.event("stopped", "")
	c.wants("continue", `{"threadId":7}`, `"success":true`)
	start := time.Now()
	c.wants("setFunctionBreakpoints", `{"breakpoints":[{"name":"line"}]}`, `"verified":true`)
	c.wants("threads", "", `"name":"fake (7)"`)
	c.wants("pause", `{"threadId":7}`, `"success":true`)
	c.event("stopped", `"reason":"pause"`)
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("all this took %v", d)
	}
	c.wants("continue", `{"threadId":7}`, `"success":true`)
	c.conn.Close()
	if err := <-c.done; err != nil {
		t.Errorf("the session ended with %v", err)
	}
	if len(f.breaks) != 0 {
		t.Errorf("%v are left", f.breaks)
	}
}

// TestPanic: a panic in the target is an error and no more.
func TestPanic(t *testing.T) {
	f := newFake()
	v := serverOf(f)
	c := connect(t, v)
	c.ask("initialize", "{}")
	c.ask("launch", "{}")
	c.ask("configurationDone", "{}")
	c.event("stopped", "")
	f.panics = true
	c.wants("readMemory", `{"memoryReference":"0x8000","count":1}`, "internal error")
	c.wants("continue", `{"threadId":7}`, `"success":true`)
	c.event("stopped", "")
	c.wants("threads", "", `"success":true`)
	if err := v.Serve(context.Background(), pipeEnd()); !errors.Is(err, ErrBusy) {
		t.Errorf("a second client: %v", err)
	}
}

func pipeEnd() io.ReadWriteCloser {
	_, c := net.Pipe()
	return c
}

func TestHitCounts(t *testing.T) {
	for text, want := range map[string]string{
		"": "11111", "3": "00111", "=3": "00100", "== 3": "00100", "> 3": "00011", ">=3": "00111", "<3": "11000", "<= 3": "11100", "%2": "01010",
	} {
		h, err := parseHits(text)
		var got []byte
		for range 5 {
			got = append(got, map[bool]byte{true: '1', false: '0'}[h.holds()])
		}
		if err != nil || string(got) != want {
			t.Errorf("%q: %s and %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "%0", "!3", "3x", "-1"} {
		if _, err := parseHits(text); err == nil {
			t.Errorf("%q is understood", text)
		}
	}
}

func TestMappings(t *testing.T) {
	s := &session{mappings: []Mapping{{"/build/src", "/home/me/src/"}, {"/build", `C:\b`}}}
	for recorded, local := range map[string]string{
		"/build/src/a/b.c": "/home/me/src/a/b.c", "/build/x.c": `C:\b/x.c`, "/builder/x.c": "/builder/x.c", "/build/src": "/home/me/src",
	} {
		if got := s.source(recorded).Path; got != local {
			t.Errorf("%s becomes %s, want %s", recorded, got, local)
		}
		if got := s.fromClient(local); got != recorded {
			t.Errorf("%s comes back as %s", local, got)
		}
	}
	if got := s.fromClient("file:///home/me/src/a%20b.c"); got != "/build/src/a b.c" {
		t.Errorf("an URI becomes %s", got)
	}
}

// FuzzSession sends anything, as messages of the protocol and as requests.
func FuzzSession(f *testing.F) {
	for command := range requests {
		f.Add(command, `{"threadId":7,"frameId":1000,"variablesReference":1001,"source":{"path":"/src/fake.c"},"breakpoints":[{"line":5,"name":"line","dataId":"0x8000/8","instructionReference":"0x1010"}],"memoryReference":"0x1010","instructionCount":5,"count":9,"expression":"n","name":"n","filters":["signals"]}`, []byte("{}"))
	}
	f.Add("setBreakpoints", `{"breakpoints":[{"line":3,"condition":"n == 5","logMessage":"{n} {"}]}`, []byte(`Content-Length: 3`))
	f.Add("disassemble", `{"memoryReference":"0xffffffffffffffff","instructionOffset":-4096,"instructionCount":4096}`, []byte(`{"type":"request","command":7}`))
	f.Fuzz(func(t *testing.T, command, args string, raw []byte) {
		fk := newFake()
		ours, theirs := net.Pipe()
		done := make(chan error, 1)
		var log failing
		v := New(fk, fakeSymbols{fk}, Options{Commands: []Command{{Usage: "when"}}, Log: log.logger()})
		go func() { done <- v.Serve(context.Background(), theirs) }()
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		_ = ours.SetWriteDeadline(time.Now().Add(10 * time.Second))
		for _, m := range []string{
			request1("initialize", "{}"), request1("launch", "{}"), request1("configurationDone", "{}"), request1("stackTrace", `{"threadId":7}`),
			request1("scopes", `{"frameId":1000}`), request1(command, args), string(raw), request1("pause", "{}"), request1(command, args), request1("next", `{"threadId":7}`),
		} {
			if godap.WriteBaseMessage(ours, []byte(m)) != nil {
				break
			}
		}
		_ = ours.Close() // the session may have done so
		select {
		case <-done: //nolint:errcheck // of what was sent to it
		case <-time.After(20 * time.Second):
			t.Fatal("the session does not end")
		}
		if log.text != "" {
			t.Fatal(log.text)
		}
		if len(fk.breaks) != 0 {
			t.Fatalf("%v are left", fk.breaks)
		}
	})
}

// request1 is a request with arguments that may be no JSON.
func request1(command, args string) string {
	if !json.Valid([]byte(args)) {
		q, _ := json.Marshal(args)
		args = string(q)
	}
	q, _ := json.Marshal(command)
	return fmt.Sprintf(`{"seq":1,"type":"request","command":%s,"arguments":%s}`, q, args)
}

var _ api.Target = (*fake)(nil)
