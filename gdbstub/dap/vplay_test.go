package dap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// historian is the fake with a past that can be asked about.
type historian struct {
	*fake
	asked string // the newest monitor command
}

func (h *historian) Monitor(ctx context.Context, line string, out io.Writer) error {
	h.asked = line
	switch {
	case h.hang:
		<-ctx.Done()
		return errors.New("interrupted")
	case strings.HasSuffix(line, " 9999"):
		for i := range 9999 {
			fmt.Fprintf(out, `{"position":"1:%d.0","at":{"addr":4096,"function":"a_function_with_a_name_that_is_quite_long","file":"/src/fake.c","line":3},"instruction":"mov"}`+"\n", i)
		}
		return nil
	case strings.HasPrefix(line, "writes --json"):
		fmt.Fprintln(out, `{"position":"1:2.0","at":{"addr":4096,"function":"old","file":"/src/fake.c","line":3},"instruction":"mov","old":"0100000000000000","new":"feffffffffffffff","changed":true}`)
		fmt.Fprintln(out, `{"position":"1:8.0","at":{"addr":4104},"instruction":"mov","old":"","new":"07"}`)
		return nil
	case strings.HasPrefix(line, "calls --json"):
		fmt.Fprintln(out, `{"position":"1:4.0","arguments":["1","0x2"],"from":{"addr":4100,"function":"main","file":"/src/fake.c","line":9}}`)
		return nil
	}
	return h.fake.Monitor(ctx, line, out)
}

func (h *historian) Moment() api.Moment { return api.Moment{Position: "1:8.0", At: 0.5, Event: 3} }

func (h *historian) History(_ context.Context, from, to float64, most int) (*api.History, error) {
	return &api.History{From: from, To: to, Intervals: make([]api.HistoryInterval, min(most, 3))}, nil
}

// TestVplayRequests asks what the editor's extension asks.
func TestVplayRequests(t *testing.T) {
	h := &historian{fake: newFake()}
	c := connect(t, New(h, fakeSymbols{h.fake}, Options{}))
	c.begin("")
	c.wants("vplay/position", "", `"position":"1:8.0","at":0.5,"event":3`)
	c.wants("vplay/history", `{"from":0.25,"to":0.5,"most":2}`, `"from":0.25,"to":0.5`)
	c.wants("vplay/accesses", `{"expression":"n","count":5}`, `"address":"0x8000","size":8,"accesses":[{"position":"1:8.0","instructionPointer":"0x1008","instruction":"mov","before":"?","after":"07","changed":false},`+
		`{"position":"1:2.0","instructionPointer":"0x1000","function":"old","source":{"name":"fake.c","path":"/src/fake.c"},"line":3,"instruction":"mov","before":"1","after":"-2","changed":true}]`)
	if want := "writes --json 0x8000 8 5"; h.asked != want {
		t.Errorf("asked %q, want %q", h.asked, want)
	}
	c.wants("vplay/accesses", `{"address":"0x8000","size":8}`, `"before":"0x1","after":"0xfffffffffffffffe"`)
	c.wants("vplay/accesses", `{"expression":"nothing"}`, `"success":false`)
	c.wants("vplay/accesses", `{"address":"0x8000"}`, `is not in memory here`)
	c.wants("vplay/calls", `{"function":"line()","count":2}`, `"calls":[{"position":"1:4.0","instructionPointer":"0x1004","function":"main","source":{"name":"fake.c","path":"/src/fake.c"},"line":9,"arguments":["1","0x2"]}]`)
	c.wants("vplay/calls", `{"function":"a b"}`, `wants the name of a function`)
	c.wants("vplay/seek", `{"to":" "}`, `where to`)
	c.wants("vplay/watch", `{"expression":"n"}`, `"address":"0x8000","size":8`)
	c.wants("reverseContinue", `{"threadId":7}`, `"success":true`)
	c.event("stopped", `"reason":"data breakpoint"`)
	c.wants("vplay/watch", `{"expression":"n","remove":true}`, `"success":true`)
	if h.breaks[placedKey{api.WatchWrite, fakeData, 8}] {
		t.Error("the watch is still there")
	}
}

// TestVplayMany: of more answers than fit the newest come, and the client is told.
func TestVplayMany(t *testing.T) {
	h := &historian{fake: newFake()}
	c := connect(t, New(h, fakeSymbols{h.fake}, Options{}))
	c.begin("")
	c.wants("vplay/accesses", `{"expression":"n","count":9999}`, `"accesses":[{"position":"1:9998.0"`)
	c.wants("vplay/accesses", `{"expression":"n","count":9999}`, `"cut":true`)
	c.wants("vplay/calls", `{"function":"line","count":9999}`, `"cut":true`)
}

// TestVplayQuestion: a question leaves the numbers of variables as they are, can be cancelled by
// its number, and has a title and a bound.
func TestVplayQuestion(t *testing.T) {
	h := &historian{fake: newFake()}
	c := connect(t, New(h, fakeSymbols{h.fake}, Options{Commands: []Command{{Usage: "when"}}}))
	c.begin(`{"supportsProgressReporting":true}`)
	c.wants("scopes", `{"frameId":0}`, `"variablesReference":1000`)
	c.wants("vplay/accesses", `{"expression":"n"}`, `"success":true`)
	c.wants("variables", `{"variablesReference":1000}`, `"evaluateName":"n"`)
	c.wants("vplay/calls", `{"function":"`+strings.Repeat("f", maxCommand)+`"}`, errTooLong.Error())
	h.hang = true
	c.seq++
	c.send(fmt.Sprintf(`{"seq":%d,"type":"request","command":"vplay/accesses","arguments":{"expression":"n"}}`, c.seq))
	c.event("progressStart", fmt.Sprintf(`"title":"Looking for writes of n","requestId":%d`, c.seq))
	c.ask("cancel", fmt.Sprintf(`{"requestId":%d}`, c.seq))
	c.event("progressEnd", "")
	if b, err := godap.ReadBaseMessage(c.r); err != nil || !strings.Contains(string(b), `"success":false,"command":"vplay/accesses","message":"cancelled"`) {
		t.Errorf("cancelled: %s, %v", b, err)
	}
}

// TestNoHistory: a target without a history says so.
func TestNoHistory(t *testing.T) {
	f := newFake()
	c := connect(t, New(f, fakeSymbols{f}, Options{}))
	c.wants("vplay/position", "", errNoHistory.Error())
	c.wants("vplay/history", `{"from":0,"to":1,"most":2}`, errNoHistory.Error())
}
