package damage

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"vplay/replay"
	"vplay/replay/analysis/windows"
)

// counted counts the windows and first loads of a recording held in memory.
func counted(b []byte) (uint64, error) { return opened(b, windowsOf) }

func windowsOf(ctx context.Context, s *replay.Session) (instructions uint64, err error) {
	var ids []uint32
	for _, i := range s.Rec.Intervals() {
		ids = append(ids, i.ID)
	}
	rep, err := windows.Of(ctx, s, windows.Options{Intervals: ids, Bounds: []uint64{50, 1000}, Scan: windows.Scan{Share: 1}})
	if err != nil {
		return 0, err
	}
	loads, err := windows.MeasureFirstLoads(ctx, s, ids, nil)
	if err != nil {
		return 0, err
	}
	if loads.Instructions != rep.Instructions {
		return 0, errors.New("two ways count different numbers of instructions")
	}
	return rep.Instructions, nil
}

// TestDamageWindows: a damaged recording is counted as the whole one, or gives an error, in time.
func TestDamageWindows(t *testing.T) {
	whole := recordTiny(t)
	want, err := counted(whole)
	if err != nil || want < 10_000 {
		t.Fatalf("the undamaged file: %d instructions, %v", want, err)
	}
	exact, cases := 0, 0
	b := bytes.Clone(whole)
	for i := 0; i < len(b); i += 97 {
		cases++
		b[i] ^= 0xff
		switch n, err := counted(b); {
		case errors.Is(err, context.DeadlineExceeded):
			t.Errorf("flipped byte %d: it did not end", i)
		case err == nil && n != want:
			t.Errorf("flipped byte %d: %d instructions without an error, want %d", i, n, want)
		case err == nil:
			exact++
		}
		b[i] ^= 0xff
	}
	if exact == cases {
		t.Error("no damage was noticed")
	}
	t.Logf("%d cases on a file of %d bytes: %d are as if whole", cases, len(whole), exact)
}
