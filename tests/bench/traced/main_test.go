package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// TestTraced measures one program, and prints it both ways.
func TestTraced(t *testing.T) {
	need.Recorder(t)
	need.Program(t, "grep")
	vplayd, err := tool.BuildShipped(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--json", "--only", "grep", "--length", "100k", "--vplayd", vplayd}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Results) != 1 {
		t.Fatalf("%d results", len(rep.Results))
	}
	r := rep.Results[0]
	if r.Windows.Instructions == 0 || r.Windows.Instructions != r.Loads.Instructions || len(r.Windows.Bounds) != 1 || r.Windows.Bounds[0].Optimal.Bytes == 0 {
		t.Errorf("windows %+v, first loads %+v", r.Windows, r.Loads)
	}
	if r.Fat.Fat == 0 || r.Slim.Slim == 0 || pages(&r.Slim) >= pages(&r.Fat) || r.Loads.Each.PlainStored+r.Loads.CodeStored >= pages(&r.Slim) {
		t.Errorf("fat %+v, slim %+v, first loads %+v", r.Fat, r.Slim, r.Loads)
	}
	out.Reset()
	if err := rep.Print(&out); err != nil || strings.Count(out.String(), " grep ") != 2 {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := run(t.Context(), []string{"--only", "nothing"}, io.Discard, io.Discard); err == nil {
		t.Error("a program that is not there was measured")
	}
}
