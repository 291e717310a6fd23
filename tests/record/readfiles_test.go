//go:build linux && amd64

package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// TestReadFiles: what is read from large files is not copied while nobody changes them.
func TestReadFiles(t *testing.T) {
	prog := compile(t, "readfiles")
	for name, opt := range map[string]recorder.Options{
		"plain":    {},
		"forced":   {ForceEvery: 3 * time.Millisecond},
		"short":    {Interval: time.Millisecond},
		"chaos":    {Chaos: true, ChaosSeed: 5},
		"crash":    {Keep: recorder.KeepCrash},
		"no agent": {},
	} {
		t.Run(name, func(t *testing.T) {
			r := run{args: []string{prog, filepath.Join(t.TempDir(), "file")}}
			if name == "crash" {
				r.args = append(r.args, "and crash")
			}
			want := r.native(t)
			r.opt = opt
			r.opt.Agent, r.opt.AgentAfter = name != "no agent", -1
			got, res := r.recorded(t)
			same(t, got, want)
			if least := uint64(8 << 20); (res.Stats.Referred > least) != r.opt.Agent {
				t.Errorf("%d bytes were not copied", res.Stats.Referred)
			}
			t.Log(verify(t, res.Path))
		})
	}
}

// TestReadMuch: however little room it takes in the agent's log what is referred to, an interval has not much of it.
func TestReadMuch(t *testing.T) {
	const size = 400 << 20
	file := filepath.Join(t.TempDir(), "holes")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
		t.Fatal(err)
	}
	r := run{args: []string{need.Program(t, "dd"), "if=" + file, "of=/dev/null", "bs=256k"}}
	r.opt.Agent, r.opt.AgentAfter, r.opt.Keep = true, -1, recorder.KeepCrash
	_, res := r.recorded(t)
	referred, intervals := res.Stats.Referred, uint64(res.Stats.Intervals)
	if referred < size*9/10 || referred/intervals > 80<<20 {
		t.Errorf("%d MiB are referred to in %d intervals", referred>>20, intervals)
	}
}
