package debug

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// questions are asked one after the other in the demo's recording.
var questions = []string{
	"when", "last-write 0x7fff586e3630", "last-write 0x7fff586e3630 16", "writes 0x7fff586e3630 8 3", "reads 0x7fff586e3630 4 2", "last-write 0x10",
	"reads main 1 2", "calls main", "calls memcpy 3", "calls memcpy 2 PPQ", "calls 0x401000", "calls main 1 inlined main",
	"first-exec main", "first-exec 0x400000", "events 4", "events 0", "modules", "why 0x7fff586e3630", "why 0x10", "why 0x400000", "pages", "pages main", "pages 0x10",
	"last-write", "writes 0x10 0", "calls nonsense", "seek 30%", "when", "last-write 0x7fff586e3630", "calls memcpy 1", "events 2", "why 0x7fff586e3630", "pages",
	"seek begin", "last-write 0x7fff586e3630", "calls main", "events",
}

// TestAnswers compares what the queries print with testdata/answers.txt.
func TestAnswers(t *testing.T) {
	g := openDemo(t)
	var got bytes.Buffer
	for _, q := range questions {
		got.WriteString("> " + q + "\n")
		if err := g.Monitor(t.Context(), q, &got); err != nil {
			got.WriteString("error: " + err.Error() + "\n")
		}
	}
	golden := filepath.Join("testdata", "answers.txt")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	g1, w1 := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g1), len(w1)) {
		if i >= len(g1) || i >= len(w1) || g1[i] != w1[i] {
			t.Fatalf("line %d of %d and %d:\n%q\nwant\n%q", i+1, len(g1), len(w1), g1[min(i, len(g1)-1)], w1[min(i, len(w1)-1)])
		}
	}
}

// TestAnswersJSON asks for the answers as JSON: each is an object, as many as there are
// answers for people, with the same positions.
func TestAnswersJSON(t *testing.T) {
	g := openDemo(t)
	for _, q := range questions {
		words := strings.Fields(q)
		if monitorCommands[words[0]].ask == nil || words[0] == "modules" { // of two lines each
			continue
		}
		var plain, objects bytes.Buffer
		err := g.Monitor(t.Context(), q, &plain)
		jsonErr := g.Monitor(t.Context(), strings.Join(append([]string{words[0], "--json"}, words[1:]...), " "), &objects)
		if (err == nil) != (jsonErr == nil) {
			t.Errorf("%s: the errors are %v and %v", q, err, jsonErr)
		}
		lines := strings.Split(strings.TrimSuffix(plain.String(), "\n"), "\n")
		n := 0
		for d := json.NewDecoder(&objects); d.More(); n++ {
			var x map[string]any
			if err := d.Decode(&x); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			if p, ok := x["position"].(string); n >= len(lines) || ok && !strings.Contains(" "+lines[n]+" ", " "+p+" ") {
				t.Errorf("%s: object %d is %v, the lines are %q", q, n, x, lines)
			}
		}
		if isNone := len(lines) == 1 && !strings.Contains(lines[0], ":"); n != len(lines) && !isNone && n != 0 {
			t.Errorf("%s: %d objects, %d lines", q, n, len(lines))
		}
	}
}

// TestQueries looks at the values that queries return.
func TestQueries(t *testing.T) {
	g := openDemo(t)
	const slot = 0x7fff586e3630
	list, err := g.Accesses(t.Context(), AccessQuery{Addr: slot, Len: 8, Most: 2})
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if a := list[1]; a.Position.String() != "0:15458.0" || a.At.Function != "_dl_find_object_init" || !a.IsStore || !a.IsChanged ||
		!bytes.Equal(a.Old, []byte{1, 0, 0, 0, 0, 0, 0, 0}) || !bytes.Equal(a.New, []byte{0x28, 0x39, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("the last store is %+v", a)
	}
	if a := list[0]; a.IsChanged || !bytes.Equal(a.Old, a.New) {
		t.Errorf("the one before is %+v", a)
	}
	at, err := g.addresses("main")
	if err != nil {
		t.Fatal(err)
	}
	calls, err := g.Calls(t.Context(), CallQuery{Entries: at, Types: "iPP", Most: 1})
	if err != nil || len(calls) != 1 || calls[0].Function != "main" || len(calls[0].Arguments) != 3 || calls[0].Arguments[0].Bits != 1 || calls[0].From.Function != "__libc_start_call_main" {
		t.Errorf("the calls are %+v, %v", calls, err)
	}
	if x, ok, err := g.FirstExecution(t.Context(), at, nil); !ok || err != nil || x.Position != calls[0].Position {
		t.Errorf("first executed at %+v, %v, %v", x, ok, err)
	}
	events, err := g.Events(t.Context(), 3)
	if err != nil || len(events) != 3 || events[2].Number != 29 || events[2].Kind != "exit" || events[1].Kind != "enter" {
		t.Errorf("the events are %+v, %v", events, err)
	}
	if b, p := g.Byte(slot), g.Page(slot); !b.IsKnown || b.Value != 0x28 || p.State != PageWritten || p.Name != "[stack]" {
		t.Errorf("%+v, %+v", b, p)
	}
	if b, p := g.Byte(16), g.Page(16); b.IsKnown || b.Reason == "" || p.IsMapped {
		t.Errorf("%+v, %+v", b, p)
	}
	known := 0
	for _, m := range g.Pages(t.Context()) {
		known += m.Count[PageCaptured]
	}
	if known == 0 {
		t.Error("no page is captured")
	}
}
