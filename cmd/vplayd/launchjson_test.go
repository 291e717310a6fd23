package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMergeLaunch(t *testing.T) {
	configs := launchConfigs("app", "app.elf", nil, vscodeFlags{port: 1, dapPort: 2, gdb: "gdb"})
	for name, old := range map[string]string{
		"none":    "",
		"empty":   `{"version": "0.2.0", "configurations": []}`,
		"other":   "{\r\n // mine, \"quoted\" /* \r\n \"configurations\": [ {\"name\": \"a // b\", \"type\": \"go\",}, /* x */ ], }",
		"bom":     "\ufeff{\"configurations\": []}",
		"ours":    `{"configurations": [{"name": "x"}, {"name": "vplay app", "old": 1}, {"name": "y"}]}`,
		"further": `{"inputs": [{"configurations": [1]}], "configurations": [7, null, {"name": 5}]}`,
	} {
		text, err := mergeLaunch([]byte(old), configs)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := mergeLaunch(text, configs)
		if err != nil || string(again) != string(text) {
			t.Errorf("%s: a second time changes it: %v\n%s\n%s", name, err, text, again)
		}
		var doc struct {
			Configurations []json.RawMessage
		}
		if err := json.Unmarshal(plainJSON(text), &doc); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		n := strings.Count(string(text), `"name": "vplay app"`)
		if n != 1 || strings.Contains(string(text), `"old"`) {
			t.Errorf("%s: it is there %d times\n%s", name, n, text)
		}
		if i := strings.Index(old, "//"); i >= 0 && !strings.Contains(string(text), old[i:strings.Index(old, "[")]) {
			t.Errorf("%s: a comment is lost\n%s", name, text)
		}
	}
	for _, old := range []string{"nonsense", "{", `[]`, `{"configurations": {}}`, `{"version": "1"}`, `{"configurations": [}`, `{"a": "b`} {
		if text, err := mergeLaunch([]byte(old), configs); err == nil {
			t.Errorf("%q becomes\n%s", old, text)
		}
	}
}

func FuzzMergeLaunch(f *testing.F) {
	f.Add([]byte(`{"configurations": [{"name": "a",}, /* x */ ], } // y`))
	configs := launchConfigs("app", "app.elf", map[string]string{"/a": "b"}, vscodeFlags{port: 1, dapPort: 2})
	f.Fuzz(func(t *testing.T, old []byte) {
		text, err := mergeLaunch(old, configs)
		if err == nil && !json.Valid(plainJSON(text)) {
			t.Fatalf("%q becomes %q", old, text)
		}
	})
}
