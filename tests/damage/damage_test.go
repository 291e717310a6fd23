// Package damage cuts a recording at every length and flips every byte: each
// case must replay exactly or give an error that names the part.
package damage

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// recordTiny records the tiny guest and returns the file's bytes.
func recordTiny(t *testing.T) []byte {
	t.Helper()
	need.Recorder(t)
	need.Program(t, "gcc")
	dir := t.TempDir()
	run := func(name string, args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return exec.CommandContext(ctx, name, args...).CombinedOutput()
	}
	prog, rec := filepath.Join(dir, "tiny"), filepath.Join(dir, "tiny.vplay")
	if out, err := run("gcc", "-O1", "-static", "-nostdlib", "-fno-stack-protector", "-o", prog, "../guest/tiny.c"); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	vplayd, err := tool.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := run(vplayd, "record", "--slim", "now", "-o", rec, "--", prog); err == nil {
		t.Fatalf("the guest did not crash:\n%s", out)
	}
	b, err := os.ReadFile(rec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// opened calls f with a session of a recording held in memory, for five seconds at most. The error is what a
// user would be told.
func opened(b []byte, f func(ctx context.Context, s *replay.Session) (instructions uint64, err error)) (uint64, error) {
	rec, err := checkpoint.OpenReader(bytes.NewReader(b), int64(len(b)), "tiny.vplay")
	if err != nil {
		return 0, err
	}
	defer rec.Close()
	s, err := replay.NewSession(rec)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return f(ctx, s)
}

// outcome replays a recording held in memory.
func outcome(b []byte) (uint64, error) { return opened(b, replayed) }

func replayed(ctx context.Context, s *replay.Session) (instructions uint64, err error) {
	results, err := replay.Verify(ctx, s, replay.VerifyOptions{Workers: 1})
	if err != nil {
		return 0, err
	}
	for _, r := range results {
		instructions += r.Instructions
		if r.Err != nil {
			return instructions, r.Err
		}
	}
	if _, err := s.Final(); err != nil {
		return instructions, err
	}
	return instructions, nil
}

// check judges one damaged file.
func check(t *testing.T, what string, at int, b []byte, want uint64) (exact bool) {
	t.Helper()
	n, err := outcome(b)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		t.Errorf("%s %d: replay did not end", what, at)
	case err == nil && n != want:
		t.Errorf("%s %d: replayed %d instructions without an error, want %d", what, at, n, want)
	case err != nil && err.Error() == "":
		t.Errorf("%s %d: an error without words", what, at)
	}
	return err == nil
}

func TestDamage(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 37
	}
	cases := damageAll(t, recordTiny(t), step)
	if !testing.Short() && cases < 2000 {
		t.Errorf("%d cases only", cases)
	}
}

// fatTiny writes the recording of the tiny guest with a page that nobody uses: it is so small that partial pages alone make
// it no smaller.
func fatTiny(t *testing.T) string {
	t.Helper()
	b := recordTiny(t)
	rec, err := checkpoint.OpenReader(bytes.NewReader(b), int64(len(b)), "tiny.vplay")
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	path := filepath.Join(t.TempDir(), "fat.vplay")
	o := checkpoint.RewriteOptions{Interval: func(w *checkpoint.Writer, iv *checkpoint.Interval) (*checkpoint.Interval, error) {
		page := make([]byte, checkpoint.PageSize)
		rand.Read(page)
		ref, err := w.AddPage(page)
		iv.Pages = append(iv.Pages, checkpoint.PageEntry{Addr: 0x10000000000, Ref: ref})
		return iv, err
	}}
	if err := checkpoint.Rewrite(rec, path, o); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDamageFirstLoads is TestDamage for a recording of first loads, at fewer places.
func TestDamageFirstLoads(t *testing.T) {
	path := fatTiny(t)
	res, err := replay.Slim(t.Context(), path, replay.SlimOptions{FirstLoads: true})
	if err != nil || res.Slimmed == 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damageAll(t, b, 97)
}

// damageAll cuts a recording, and flips its bytes, at each step-th place. It returns how many cases that were.
func damageAll(t *testing.T, whole []byte, step int) (cases int) {
	t.Helper()
	want, err := outcome(whole)
	if err != nil || want < 10_000 {
		t.Fatalf("the undamaged file: %d instructions, %v", want, err)
	}
	exact := 0
	for n := 0; n < len(whole); n += step {
		cases++
		if check(t, "cut at", n, whole[:n], want) {
			t.Errorf("cut at %d of %d: replays as if whole", n, len(whole))
		}
	}
	b := bytes.Clone(whole)
	for i := 0; i < len(b); i += step {
		for _, flip := range []byte{0x01, 0xff} {
			b[i] ^= flip
			cases++
			if check(t, "flipped byte", i, b, want) {
				exact++
			}
			b[i] ^= flip
		}
	}
	t.Logf("%d cases on a file of %d bytes: %d replay exactly all the same, the rest say what is wrong", cases, len(whole), exact)
	return cases
}
