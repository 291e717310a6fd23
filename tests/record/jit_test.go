//go:build linux && amd64

package record

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	recorder "vplay/checkpoint/record"
	"vplay/replay"
	"vplay/tests/internal/tool"
)

// TestTranslatedSlim: slim by generated code writes the same file, byte by byte: the same
// pages were read, written and executed. verify compares both engines for every other recording.
func TestTranslatedSlim(t *testing.T) {
	maker, err := tool.Translated(t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"gzip", "-nc", "/bin/bash"},
		{"bash", "-c", "for ((i = 0; i < 3000; i++)); do s=$((s + i)); done; echo $s"},
	} {
		t.Run(args[0], func(t *testing.T) {
			r := run{args: installed(t, args), opt: recorder.Options{}}
			_, res := r.recorded(t)
			if !res.Recorded {
				t.Fatal(res.Reason)
			}
			fat, err := os.ReadFile(res.Path)
			if err != nil {
				t.Fatal(err)
			}
			var slim [2][]byte
			for i, m := range []replay.EngineMaker{nil, maker} {
				path := filepath.Join(t.TempDir(), "a.vplay")
				if err := os.WriteFile(path, fat, 0o600); err != nil {
					t.Fatal(err)
				}
				got, err := replay.Slim(context.Background(), path, replay.SlimOptions{Engine: m})
				if err != nil || got.Slimmed == 0 || got.Left != 0 {
					t.Fatalf("slimming: %+v, %v", got, err)
				}
				if slim[i], err = os.ReadFile(path); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(slim[0], slim[1]) {
				t.Errorf("%d bytes by the interpreter, %d by generated code, and they differ", len(slim[0]), len(slim[1]))
			}
		})
	}
}
