//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
)

// TestBusError has a program access pages of mapped files that lie behind the end, where that was from the beginning, and
// where it, a thread, or another process has cut the file: memory without a name, a file in memory, and one on a disk. In the
// case outside the process that cuts the file is the test, which nobody records.
func TestBusError(t *testing.T) {
	prog := compile(t, "buserror")
	for _, kind := range []string{"memfd", "shm", "file"} {
		for _, way := range []string{"shared", "private"} {
			for _, name := range []string{
				"beyond", "cut", "empty", "grown", "mapped", "across", "calls", "code", "repeated", "child", "emptied", "meanwhile", "outside", "thread", "kills",
			} {
				if name == "outside" && kind == "memfd" && way == "private" {
					continue // pages of such memory take part in the hash of a forced end, and that these have gone no event says
				}
				t.Run(kind+"/"+way+"/"+name, func(t *testing.T) {
					t.Parallel()
					c := guestCase{name: name}
					r := run{args: []string{prog, kind, way, name}, dir: t.TempDir()}
					if name == "outside" {
						r.kick = cutFile
					}
					want := r.native(t)
					for _, m := range []struct {
						name string
						opt  recorder.Options
					}{
						{"plain", recorder.Options{}},
						{"agent", recorder.Options{Agent: true}},
						{"agent, forced", recorder.Options{Agent: true, ForceEvery: 3 * time.Millisecond}},
					} {
						r.opt = m.opt
						t.Run(m.name, func(t *testing.T) { c.check(t, &r, want) })
					}
				})
			}
		}
	}
}

// TestCutByItself: a program that cuts a file that it maps, or a thread or a recorded child of it, is no other process that changes it unseen.
func TestCutByItself(t *testing.T) {
	prog := compile(t, "buserror")
	for _, name := range []string{"grown", "thread", "child", "meanwhile"} {
		t.Run(name, func(t *testing.T) {
			r := run{args: []string{prog, "file", "private", name}, dir: t.TempDir()}
			_, res := r.recorded(t)
			rec, err := checkpoint.Open(res.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			if notes := strings.Join(rec.Manifest().Notes, "\n"); strings.Contains(notes, "was changed by another process") {
				t.Errorf("notes: %s", notes)
			}
		})
	}
}

// cutFile makes the file that a process has as descriptor 3 one page long, once it has been four while the process worked.
func cutFile(pid int) {
	name := fmt.Sprintf("/proc/%d/fd/3", pid)
	for range 1000 {
		time.Sleep(10 * time.Millisecond)
		if fi, err := os.Stat(name); err == nil && fi.Size() == 4*4096 {
			break
		}
	}
	// Of a file that is cut so, the recording has what was read before the last interval. On a busy machine
	// a process that has no CPU has no intervals.
	for begin := cpuTime(pid); cpuTime(pid) < begin+300*time.Millisecond; {
		time.Sleep(10 * time.Millisecond)
		if _, err := os.Stat(name); err != nil {
			return
		}
	}
	_ = os.Truncate(name, 4096) // where it fails the program runs on, until the limit of a run
}

// cpuTime is the processor time that a process has used, 0 when it is gone.
func cpuTime(pid int) time.Duration {
	const schedClock = 2 // CPUCLOCK_SCHED, include/linux/posix-timers_types.h
	var ts unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|schedClock), &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
