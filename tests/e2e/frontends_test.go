package e2e

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	godap "github.com/google/go-dap"

	"vplay/gdbstub"
	"vplay/gdbstub/dap"
	"vplay/loader"
	"vplay/replay/debug"
	"vplay/tests/internal/tool"
)

// talk is a conversation with a front end. It returns what was answered.
type talk func(t *testing.T, conn net.Conn) []string

// gdbTalk asks a server of gdb's protocol and moves about.
func gdbTalk(t *testing.T, conn net.Conn) (said []string) {
	in := bufio.NewReader(conn)
	ask := func(payload string) string {
		var sum byte
		for i := range len(payload) {
			sum += payload[i]
		}
		fmt.Fprintf(conn, "$%s#%02x", payload, sum)
		for {
			if _, err := in.ReadString('$'); err != nil {
				t.Errorf("%s: %v", payload, err)
				return ""
			}
			b, err := in.ReadString('#')
			if err == nil {
				_, err = in.Discard(2)
			}
			if _, werr := io.WriteString(conn, "+"); err != nil || werr != nil {
				t.Errorf("%s: %v", payload, err)
				return ""
			}
			if b = strings.TrimSuffix(b, "#"); !strings.HasPrefix(b, "O") || b == "OK" {
				return b
			}
			if text, err := hex.DecodeString(b[1:]); err != nil || len(text) > 0 { // an empty one says that it takes long
				said = append(said, string(text))
			}
		}
	}
	monitor := func(line string) { said = append(said, line, ask("qRcmd,"+hex.EncodeToString([]byte(line)))) }
	said = append(said, ask("?"), ask("g"))
	monitor("last-write $rsp")
	for range 5 {
		said = append(said, ask("bs"), ask("g"))
	}
	monitor("calls main")
	monitor("seek 40%")
	monitor("events 5")
	said = append(said, ask("bc"), ask("g"))
	for range 5 {
		said = append(said, ask("vCont;s"), ask("g"))
	}
	monitor("seek end")
	monitor("when")
	return said
}

// dapTalk asks a DAP server and moves about.
func dapTalk(t *testing.T, conn net.Conn) (said []string) {
	in := bufio.NewReader(conn)
	seq := 0
	// ask returns the body of the response. With an event it waits for that, too.
	ask := func(command string, args any, event string) string {
		seq++
		b, _ := json.Marshal(map[string]any{"seq": seq, "type": "request", "command": command, "arguments": args})
		if err := godap.WriteBaseMessage(conn, b); err != nil {
			return ""
		}
		var body string
		for answered := false; !answered || event != ""; {
			b, err := godap.ReadBaseMessage(in)
			if err != nil {
				t.Errorf("%s: %v", command, err)
				_ = conn.Close()
				return ""
			}
			var m struct {
				Type, Event string
				Request     int `json:"request_seq"`
				Body        json.RawMessage
			}
			if err := json.Unmarshal(b, &m); err != nil {
				t.Error(err)
			}
			switch {
			case m.Type == "response" && m.Request == seq:
				body, answered = string(m.Body), true
			case m.Type == "event" && m.Event == event:
				said, event = append(said, string(m.Body)), ""
			}
		}
		said = append(said, command, body)
		return body
	}
	ask("initialize", map[string]any{}, "")
	ask("launch", map[string]any{}, "initialized")
	ask("configurationDone", nil, "stopped")
	tid := map[string]any{"threadId": json.RawMessage("0")}
	var threads struct{ Threads []struct{ ID int } }
	if err := json.Unmarshal([]byte(ask("threads", nil, "")), &threads); err == nil && len(threads.Threads) > 0 {
		tid["threadId"] = threads.Threads[0].ID
	}
	look := func() {
		var stack struct{ StackFrames []struct{ ID int } }
		if err := json.Unmarshal([]byte(ask("stackTrace", tid, "")), &stack); err != nil || len(stack.StackFrames) == 0 {
			t.Errorf("no stack: %v", err)
			return
		}
		ask("evaluate", map[string]any{"expression": "$rsp", "frameId": stack.StackFrames[0].ID}, "")
		ask("scopes", map[string]any{"frameId": stack.StackFrames[0].ID}, "")
	}
	look()
	for range 3 {
		ask("stepBack", tid, "stopped")
		look()
	}
	ask("setFunctionBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"name": "main"}}}, "")
	ask("reverseContinue", tid, "stopped")
	look()
	for range 3 {
		ask("next", tid, "stopped")
		look()
	}
	ask("evaluate", map[string]any{"expression": "writes $rsp", "context": "repl"}, "")
	return said
}

// openDemo opens the recording of vplayd demo for the length of a test.
func openDemo(t *testing.T) *debug.Session {
	t.Helper()
	dir := filepath.Join("..", "..", "cmd", "vplayd", "demo")
	d, err := debug.Open(tool.OpenSession(t, filepath.Join(dir, "weather.vplay")), 64<<20, loader.NewSymbols([]string{dir}, false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// TestTwoFrontEnds holds a conversation with gdb's protocol and one with DAP at the
// same time, on one session: each is told what it is told when it is alone, and both
// move on one timeline.
func TestTwoFrontEnds(t *testing.T) {
	serve := func(d *debug.Session, isDAP bool, speak talk) []string {
		g, err := d.NewCursor()
		if err != nil {
			t.Error(err)
			return nil
		}
		defer g.Close()
		if g.Timeline() != d.Timeline() {
			t.Error("the cursor has a timeline of its own")
		}
		ours, theirs := net.Pipe()
		_ = ours.SetDeadline(time.Now().Add(5 * time.Minute))
		done := make(chan error, 1)
		go func() {
			if isDAP {
				done <- dap.New(g, debug.NewSymbols(g), dap.Options{Commands: []dap.Command{{Usage: "writes"}}, Accesses: []string{"writes"}}).Serve(context.Background(), theirs)
			} else {
				done <- gdbstub.New(g, gdbstub.Options{}).Serve(context.Background(), theirs)
			}
		}()
		said := speak(t, ours)
		_ = ours.Close()
		<-done
		return said
	}
	var gdbAlone, dapAlone []string
	if !tool.Race { // which is slow, and looks for something else
		gdbAlone = serve(openDemo(t), false, gdbTalk)
		dapAlone = serve(openDemo(t), true, dapTalk)
	}
	d := openDemo(t)
	d.Timeline().StartIndexer(nil)
	var wg sync.WaitGroup
	for _, c := range []struct {
		isDAP bool
		speak talk
		want  []string
	}{{false, gdbTalk, gdbAlone}, {true, dapTalk, dapAlone}} {
		wg.Go(func() {
			got := serve(d, c.isDAP, c.speak)
			if len(got) < 25 {
				t.Errorf("DAP %v: %d answers", c.isDAP, len(got))
			}
			if !tool.Race && !slices.Equal(got, c.want) {
				i := 0
				for i < min(len(got), len(c.want)) && got[i] == c.want[i] {
					i++
				}
				t.Errorf("DAP %v: answer %d of %d and %d differs:\n%.300q\n%.300q", c.isDAP, i, len(got), len(c.want), got[i:min(i+1, len(got))], c.want[i:min(i+1, len(c.want))])
			}
		})
	}
	wg.Wait()
}
