package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersion checks that the version is the newest of the changelog, and both forms of
// the output.
func TestVersion(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n## [")
	if v, _, _ := strings.Cut(rest, "]"); v != vplayVersion {
		t.Errorf("the newest version in the changelog is %q, the source says %q", v, vplayVersion)
	}
	var text, doc bytes.Buffer
	if err := printVersion(&text, false); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text.String(), "vplayd "+vplayVersion) {
		t.Errorf("printed %q", text.String())
	}
	var got build
	if err := printVersion(&doc, true); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc.Bytes(), &got); err != nil || got != thisBuild() {
		t.Errorf("%s is %+v, %v", doc.String(), got, err)
	}
	known := build{Version: "1.2.3", Commit: "0123456789abcdef", Modified: true, Go: "go1.26", System: "linux/amd64", Format: 1}
	if got, want := known.String(), "1.2.3 (0123456789ab, modified), recording format 1, go1.26, linux/amd64"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
