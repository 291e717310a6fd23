package damage

import (
	"path/filepath"
	"testing"

	"vplay/checkpoint"
	"vplay/tests/internal/tool"
)

// malformed writes recordings whose extended state is no XSAVE image, or lacks what
// replay needs.
var malformed = map[string]func(iv *checkpoint.Interval){
	"short at the start":   func(iv *checkpoint.Interval) { iv.Start[0].XState = make([]byte, 100) },
	"compact at the start": func(iv *checkpoint.Interval) { iv.Start[0].XState = compactXState() },
	"none at the start":    func(iv *checkpoint.Interval) { iv.Start[0].XState = nil },
	"short at the end":     func(iv *checkpoint.Interval) { iv.End.Contexts[0].XState = make([]byte, 100) },
	"in the log": func(iv *checkpoint.Interval) {
		iv.Events = []checkpoint.Event{{Kind: checkpoint.EventExit, TID: 1, XState: compactXState()}}
	},
	"no thread at a forced end": func(iv *checkpoint.Interval) { iv.End = checkpoint.End{Kind: checkpoint.EndForced} },
}

// compactXState is an image in the compacted format (SDM volume 1, 13.4.3).
func compactXState() []byte {
	b := make([]byte, 832)
	b[512+15] = 0x80
	return b
}

// TestMalformedXState opens recordings with bad extended state with verbs that replay:
// all of them are damaged.
func TestMalformedXState(t *testing.T) {
	dir := t.TempDir()
	vplayd, err := tool.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range malformed {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad.vplay")
			err := record(path, 1, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
				change(iv)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, verb := range [][]string{{"verify", "FILE"}, {"export-elf", "FILE"}, {"serve", "--listen", "127.0.0.1:0", "FILE"}} {
				open(t, vplayd, path, verb, false, 4)
			}
		})
	}
}
