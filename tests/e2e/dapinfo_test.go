package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint/abi"
)

// What an editor is told beside stops and variables: modules, sources, signals, completions,
// numbers in another base; and that large values come at once, in pages.

// TestDAPInfo asks for all that at the crash of the ledger.
func TestDAPInfo(t *testing.T) {
	_, c := startDAP(t, "-O0")
	c.wants("the crash", c.connect(), "exception ")
	status := map[string]string{}
	for _, m := range c.do("modules", nil)["modules"].([]any) {
		m := m.(map[string]any)
		status[m["name"].(string)] = fmt.Sprint(m["symbolStatus"])
		if !strings.Contains(fmt.Sprint(m["addressRange"]), "-0x") || m["path"] == "" {
			t.Errorf("a module is %v", m)
		}
	}
	if status["ledger"] != "Symbols with source lines" || !strings.HasPrefix(status["libc.so.6"], "Names of functions only: a file with build-id ") {
		t.Errorf("the modules are %v", status)
	}
	if text, _ := json.Marshal(c.do("loadedSources", nil)); !strings.Contains(string(text), `guest/ledger.c"`) {
		t.Errorf("the sources are %s", text)
	}
	if _, fault := c.try("source", map[string]any{"source": map[string]any{"path": "/build/ledger.c"}, "sourceReference": 0}); !strings.Contains(fault, "sourceMap") {
		t.Errorf("the text of a source: %s", fault)
	}
	complete := func(text string) string {
		body := c.do("completions", map[string]any{"frameId": c.frames()[1]["id"], "text": text, "column": len(text) + 1})
		var list []string
		for _, x := range body["targets"].([]any) {
			x := x.(map[string]any)
			start, _ := x["start"].(float64) // from 1, as the client counts
			length, _ := x["length"].(float64)
			list = append(list, text[:int(start)-1]+x["label"].(string))
			if int(start-1+length) != len(text) {
				t.Errorf("%s: %v replaces other than the word", text, x)
			}
		}
		return strings.Join(list, " ")
	}
	for text, want := range map[string]string{
		"depo": "deposits", "1 + depo": "1 + deposits", "accounts[2].na": "accounts[2].name", "accounts[1].next->bal": "accounts[1].next->balance", "last-": "last-write",
		"res": "restart result", "$ra": "$rax", "last-write accounts[0].": "last-write accounts[0].balance last-write accounts[0].name last-write accounts[0].next", "zzz": "", "nonsense.": "",
	} {
		got := complete(text)
		if text == "last-write accounts[0]." {
			want = "last-write accounts[0].name last-write accounts[0].next last-write accounts[0].balance"
		}
		if got != want {
			t.Errorf("%s is completed by %q, want %q", text, got, want)
		}
	}
	for expr, want := range map[string]string{"deposits,x": "0x32", "deposits,b": "0b110010", "deposits,o": "062", "deposits,d": "50", "accounts[2].name,x": `"overlong`, "accounts[1],x": `{name = "plain", next = 0x`} {
		if got := c.eval(0, expr); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", expr, got, want)
		}
	}
	hexed := map[string]any{"hex": true}
	frame := c.frames()[0]["id"]
	body := c.do("evaluate", map[string]any{"expression": "accounts[1]", "frameId": frame, "context": "watch", "format": hexed})
	if got := body["result"].(string); !strings.Contains(got, "balance = 0x") {
		t.Errorf("in base 16 an account is %s", got)
	}
	if got := c.variables(body["variablesReference"])["balance"]["value"].(string); !strings.HasPrefix(got, "0x") {
		t.Errorf("in base 16 its balance is %s", got)
	}
	for _, v := range c.do("variables", map[string]any{"variablesReference": c.scope(0, "Locals"), "format": hexed})["variables"].([]any) {
		if v := v.(map[string]any); !strings.HasPrefix(v["value"].(string), "0x") {
			t.Errorf("in base 16 %s is %v", v["name"], v["value"])
		}
	}
}

// TestDAPSignals reads what is said of the signals that programs end with.
func TestDAPSignals(t *testing.T) {
	for name, want := range map[string]string{
		"nullptr": "SIGSEGV at address 0x8: nothing is mapped there", "divide": "SIGFPE at address 0x", "heapabort": "SIGABRT, sent by process ",
		"caught": "because of SIGSEGV {si_code=SEGV_ACCERR, si_addr=0x",
	} {
		t.Run(name, func(t *testing.T) {
			g := compile(t, name, "-O0")
			g.args = []string{"an argument"}
			rec := g.record(t, "--keep", "always")
			c := dialDAP(t, serve(t, rec, "--dap", "--symbols", g.dir+"/symbols"))
			c.wants("the crash", c.connect(), "exception ")
			info := c.do("exceptionInfo", map[string]any{"threadId": 0})
			got := info["description"].(string)
			if !strings.Contains(got, want) {
				t.Errorf("the description is %q, want %q", got, want)
			}
			if name == "divide" && !strings.Contains(got, "an integer is divided by zero") || name == "heapabort" && !strings.Contains(got, "\n") {
				t.Errorf("the description is %q", got)
			}
			if trace := info["details"].(map[string]any)["stackTrace"].(string); !strings.Contains(trace, "at main (") {
				t.Errorf("the stack is %q", trace)
			}
		})
	}
}

// processorTime is what a process has used so far.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	s, ok := abi.ParseProcStat(b)
	if !ok {
		t.Fatalf("the state of process %d is %s", pid, b)
	}
	return s.CPU()
}

// TestDAPLarge looks at arrays and containers of a million elements: their pages come at
// once, wherever they are. Bounds are on the server's processor time; what is read of the
// recording for the first time takes longer.
func TestDAPLarge(t *testing.T) {
	g := compile(t, "large", "-O1")
	rec := g.record(t, "--keep", "always")
	addr, pid := serveProcess(t, rec, "--dap", "--symbols", g.dir+"/symbols")
	c := dialDAP(t, addr)
	c.limit = 2 * time.Minute
	c.wants("the crash", c.connect(), "exception ")
	frame := c.frames()[c.frameOf("main")]["id"]
	for _, name := range []string{"numbers", "vector", "map", "hashed"} {
		body := c.do("evaluate", map[string]any{"expression": name, "frameId": frame, "context": "watch"})
		if n, _ := body["indexedVariables"].(float64); n != 1e6 {
			t.Errorf("%s has %v elements", name, body["indexedVariables"])
		}
		page := func(from int) (list []any, took time.Duration) {
			start := processorTime(t, pid)
			list = c.do("variables", map[string]any{"variablesReference": body["variablesReference"], "filter": "indexed", "start": from, "count": 100})["variables"].([]any)
			return list, processorTime(t, pid) - start
		}
		_, first := page(0)
		_, read := page(999_900) // of the recording
		list, last := page(999_900)
		_, middle := page(500_000)
		t.Logf("%-8s first page %v, last page %v, then %v, in the middle %v", name, first, read, last, middle)
		if len(list) != 100 || read > 3*time.Second || first > 500*time.Millisecond || last > 400*time.Millisecond || middle > 400*time.Millisecond {
			t.Errorf("%s: the last page has %d elements", name, len(list))
		}
		if (name == "numbers" || name == "vector") && list[99].(map[string]any)["value"] != "999999" {
			t.Errorf("%s ends with %v", name, list[99])
		}
	}
	if info := c.do("dataBreakpointInfo", map[string]any{"name": "[999999]", "variablesReference": c.do("evaluate", map[string]any{"expression": "numbers", "frameId": frame})["variablesReference"]}); info["dataId"] == nil {
		t.Errorf("the last number cannot be watched: %v", info)
	}
}

// TestDAPProgress shows how far a long search is, and ends one.
func TestDAPProgress(t *testing.T) {
	g := compile(t, "busy", "-O0")
	rec := g.record(t, "--keep", "always")
	c := dialDAP(t, serve(t, rec, "--dap", "--symbols", g.dir+"/symbols"))
	c.limit = 2 * time.Minute
	c.do("initialize", map[string]any{"adapterID": "test", "supportsProgressReporting": true, "supportsInvalidatedEvent": true})
	c.do("launch", map[string]any{})
	c.do("configurationDone", nil)
	tid := c.await("stopped")["threadId"]
	// A condition without a quick form, which is never true: it would take minutes.
	c.do("setFunctionBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"name": "beat", "condition": "i == -1.5"}}})
	c.do("reverseContinue", map[string]any{"threadId": tid})
	began := c.await("progressStart")
	if began["cancellable"] != true || began["title"] == "" {
		t.Errorf("the progress is %v", began)
	}
	waiting := c.send("scopes", map[string]any{"frameId": 1})
	c.do("cancel", map[string]any{"requestId": 0, "progressId": "another"})
	c.send("cancel", map[string]any{"requestId": waiting})
	if m := c.reply(waiting); m["message"] != "cancelled" {
		t.Errorf("a request that was cancelled while it waited: %v", m)
	}
	c.reply(c.seq)
	c.do("cancel", map[string]any{"progressId": began["progressId"]})
	start := time.Now()
	if ended := c.await("progressEnd"); ended["progressId"] != began["progressId"] {
		t.Errorf("another progress ended: %v", ended)
	}
	if stop := c.await("stopped"); stop["reason"] != "pause" || time.Since(start) > 10*time.Second {
		t.Errorf("the search ended with %v, after %v", stop, time.Since(start))
	}
	if body := c.do("evaluate", map[string]any{"expression": "beats = 5", "context": "repl"}); body["result"] != "5" {
		t.Errorf("then beats = 5 is %v", body)
	}
	if areas := c.await("invalidated")["areas"]; fmt.Sprint(areas) != "[variables]" {
		t.Errorf("what has changed is %v", areas)
	}
	if len(c.boxes) > 0 {
		t.Errorf("the editor shows boxes: %q", c.boxes)
	}
}

// TestDAPThreads is told of threads that begin and end, in both directions.
func TestDAPThreads(t *testing.T) {
	g := compile(t, "race", "-pthread")
	rec := g.record(t, "--keep", "always")
	c := dialDAP(t, serve(t, rec, "--dap", "--symbols", g.dir+"/symbols"))
	c.limit = time.Minute
	c.connect()
	known := map[any]bool{}
	for _, x := range c.do("threads", nil)["threads"].([]any) {
		known[x.(map[string]any)["id"]] = true
	}
	c.do("setFunctionBreakpoints", map[string]any{"breakpoints": []any{}})
	events := 0
	for _, where := range []string{"seek begin", "seek 30%", "seek 50%", "seek end", "seek begin"} {
		c.do("evaluate", map[string]any{"expression": where, "context": "repl"})
		c.await("stopped")
		var rest []map[string]any
		for _, m := range c.left {
			body, _ := m["body"].(map[string]any)
			if m["event"] != "thread" {
				rest = append(rest, m)
				continue
			}
			events++
			if began := body["reason"] == "started"; began == known[body["threadId"]] {
				t.Errorf("%s: thread %v has %v", where, body["threadId"], body["reason"])
			} else if began {
				known[body["threadId"]] = true
			} else {
				delete(known, body["threadId"])
			}
		}
		c.left = rest
		list := c.do("threads", nil)["threads"].([]any)
		for _, x := range list {
			if id := x.(map[string]any)["id"]; !known[id] {
				t.Errorf("%s: nothing was said of thread %v", where, id)
			}
		}
		if len(list) != len(known) {
			t.Errorf("%s: %d threads, %d were told", where, len(list), len(known))
		}
	}
	if events < 4 {
		t.Errorf("%d events of threads", events)
	}
}
