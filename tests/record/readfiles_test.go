//go:build linux && amd64

package record

import (
	"path/filepath"
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
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
