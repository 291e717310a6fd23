package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/windows"
	"vplay/replay/observe"
	"vplay/tests/internal/tool"
)

// vplayd windows on real recordings: a program whose accesses are known, and others against a
// count by the definitions.

// answer runs vplayd, which must succeed, and reads the JSON that it prints.
func answer(t *testing.T, a any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(limited(t, patience), vplayd, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	if err := json.Unmarshal(out, a); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// TestWindowsKnown: of a program whose accesses are known every figure is.
func TestWindowsKnown(t *testing.T) {
	t.Parallel()
	rec := compile(t, "windows", "-O1", "-static", "-nostdlib", "-fno-stack-protector").record(t)
	const (
		array = 1024 * 8
		line  = 64
		turns = 8
	)
	var rep windows.Report
	answer(t, &rep, "windows", "--json", "--length", "1k,1M", "--scan", "30%", rec)
	if rep.Outside != array+line || len(rep.Bounds) != 2 {
		t.Errorf("%d bytes from outside, want %d; %d bounds", rep.Outside, array+line, len(rep.Bounds))
	}
	short, long := rep.Bounds[0], rep.Bounds[1]
	// A turn takes longer than a window, so that each of its reads is one of the window's first.
	for i, p := range []windows.Placement{short.Fixed, short.Scanned, short.Unbounded, short.Optimal} {
		if p.Bytes != turns*array+line {
			t.Errorf("short windows, way %d: %d bytes, want %d", i, p.Bytes, turns*array+line)
		}
	}
	if want := (rep.Instructions + 999) / 1000; short.Fixed.Windows != want || short.Optimal.Windows < want {
		t.Errorf("%d windows, and %d of the optimum, want %d", short.Fixed.Windows, short.Optimal.Windows, want)
	}
	if want := (windows.Placement{Bytes: array + line, Windows: 1}); long.Fixed != want || long.Optimal != want || long.UniqueWrites < array || long.UniqueWrites > array+100 {
		t.Errorf("one window: %+v", long)
	}
	if long.PagesRead < 3 || long.PagesRead > 5 || long.PagesWritten < 2 || long.PagesWritten > 4 {
		t.Errorf("one window: %d pages read and %d written, the array has three at most", long.PagesRead, long.PagesWritten)
	}
	var loads windows.FirstLoads
	answer(t, &loads, "windows", "--json", "--first-loads", rec)
	for _, l := range []windows.LoadLog{loads.Each, loads.Whole} {
		if l.Loads != 1024+line || l.Values != l.Loads || l.InDictionary < l.Values-10 || l.BugNet > 3*1100 || l.Plain < array+line {
			t.Errorf("first loads: %+v", l)
		}
	}
	if loads.Loads != turns*1024+line || loads.Code < 50 || loads.Code > 500 {
		t.Errorf("%d loads, %d bytes of code", loads.Loads, loads.Code)
	}
}

// seenStep is an access of a real recording, or what an event did.
type seenStep struct {
	at      uint64 // instructions before it
	addr, n uint64
	isWrite bool
	isMap   bool // the range is mapped anew
	isFresh bool // with zeros
}

// steps collects all accesses of a recording's process.
func steps(t *testing.T, s *replay.Session, ids []uint32) (list []seenStep, n uint64) {
	t.Helper()
	base := uint64(0)
	note := func(v *observe.View, x seenStep) {
		x.at += base
		key, _ := v.Machine().Mem.Key(x.addr)
		x.addr = key + x.addr%checkpoint.PageSize
		list = append(list, x)
	}
	err := observe.Run(limited(t, patience), s, observe.Options{Intervals: ids, Ordered: true, Begin: func(*observe.View) (*observe.Observer, error) {
		return &observe.Observer{
			AllAccesses: true,
			Access: func(v *observe.View, a *observe.Access) {
				at := v.CPU().Retired
				if v.CPU().RepIter == 0 {
					at--
				}
				note(v, seenStep{at: at, addr: a.Addr, n: uint64(a.Size), isWrite: a.Store})
			},
			Applied: func(v *observe.View, e *checkpoint.Event) {
				at := v.CPU().Retired
				for _, op := range e.Maps {
					if op.Kind == checkpoint.MapOpProtect {
						continue
					}
					if op.Kind == checkpoint.MapOpMove {
						t.Fatal("the guest calls mremap, which this test does not follow")
					}
					r, mapped := v.Machine().Mem.Find(op.Start)
					list = append(list, seenStep{at: base + at, addr: op.Start, n: op.End - op.Start, isMap: true, isFresh: mapped && r.Object == 0})
				}
				for _, w := range e.Writes {
					note(v, seenStep{at: at, addr: w.Addr, n: uint64(len(w.Data)), isWrite: true})
				}
			},
			Done: func(v *observe.View) { base += v.Position().Instr },
		}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return list, base
}

// traced counts the bytes that are read in a window before they are accessed in it, for windows that begin with list and end
// at each of ends.
func traced(list []seenStep, ends []uint64) (out []uint64) {
	seen := map[uint64]int{}
	var maps []int
	bytes := uint64(0)
	known := func(a uint64) bool {
		at, ok := seen[a]
		for i := len(maps) - 1; i >= 0 && (!ok || maps[i] > at); i-- {
			if m := &list[maps[i]]; a >= m.addr && a < m.addr+m.n {
				return m.isFresh
			}
		}
		return ok
	}
	for i, s := range list {
		for len(ends) > 0 && s.at >= ends[0] {
			out, ends = append(out, bytes), ends[1:]
		}
		if len(ends) == 0 {
			return out
		}
		if s.isMap {
			maps = append(maps, i)
			continue
		}
		for a := s.addr; a < s.addr+s.n; a++ {
			if !s.isWrite && !known(a) {
				bytes++
			}
			seen[a] = i
		}
	}
	for range ends {
		out = append(out, bytes)
	}
	return out
}

// TestWindowsByDefinition compares the costs of windows with a count by the definition, of programs with
// threads, signals and borders between intervals in the middle of windows.
func TestWindowsByDefinition(t *testing.T) {
	for _, k := range []struct {
		name   string
		flags  []string
		record []string
	}{
		{"moves", []string{"-O0", "-static"}, []string{"--keep", "always", "--interval", "5ms", "--force-every", "5", "--no-slim"}},
		{"crew", []string{"-O1", "-pthread"}, []string{"--keep", "always", "--no-slim"}},
		{"slice/handler", []string{"-O0"}, nil},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := tool.OpenSession(t, compile(t, k.name, k.flags...).record(t, k.record...))
			var ids []uint32
			for _, image := range s.Rec.Images() {
				for _, in := range image {
					ids = append(ids, in.ID)
				}
			}
			list, n := steps(t, s, ids)
			const points = 4
			grain := max(n/40, 1)
			rep, err := windows.Of(limited(t, patience), s, windows.Options{Intervals: ids, Bounds: []uint64{grain * points}, Points: points, Scan: windows.Scan{Share: 0.5}})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d intervals, %d instructions, %d accesses and events", len(ids), n, len(list))
			got := rep.Bounds[0]
			if want := byDefinition(list, n, grain, points); rep.Instructions != n || got.Optimal.Bytes != want || got.Optimal.Bytes > min(got.Fixed.Bytes, got.Scanned.Bytes, got.Unbounded.Bytes) {
				t.Errorf("%d instructions, %+v; want an optimum of %d bytes", rep.Instructions, got, want)
			}
			fixed := uint64(0)
			for a := uint64(0); a < n; a += grain * points {
				fixed += traced(from(list, a), []uint64{a + grain*points})[0]
			}
			if got.Fixed.Bytes != fixed {
				t.Errorf("fixed windows have %d bytes, want %d", got.Fixed.Bytes, fixed)
			}
		})
	}
}

// from returns the steps from instruction a on.
func from(list []seenStep, a uint64) []seenStep {
	for i := range list {
		if list[i].at >= a {
			return list[i:]
		}
	}
	return nil
}

// byDefinition returns the least that can be traced of n instructions, from the costs of all windows.
func byDefinition(list []seenStep, n, grain, points uint64) uint64 {
	slots := (n + grain - 1) / grain
	best := make([]uint64, slots+1)
	for i := range best[1:] {
		best[i+1] = 1 << 60
	}
	for a := range slots {
		var ends []uint64
		for b := a + 1; b <= min(a+points, slots); b++ {
			ends = append(ends, b*grain)
		}
		for i, c := range traced(from(list, a*grain), ends) {
			b := a + 1 + uint64(i)
			best[b] = min(best[b], best[a]+c)
		}
	}
	return best[slots]
}

// TestWindowsForms: text and CSV have what JSON has.
func TestWindowsForms(t *testing.T) {
	t.Parallel()
	rec := compile(t, "windows", "-O1", "-static", "-nostdlib", "-fno-stack-protector").record(t)
	for _, k := range []struct{ flags, want string }{
		{"--length 1k --scan 0", `(?s)8,256 reads of 65\.6 kB.*M = 0 +M = 0 +M = T.*\n +1,000 +\d+ +65\.6 kB +65\.6 kB`},
		{"--csv --length 1k,2k", `(?s)^file,instructions,bound,.*,1000,1000,100,.*,2000,2000,200,`},
		{"--first-loads", `each interval +1,088 +\d.*(?s:.*)the recording +1,088 .*(?s:.*)this file: `},
	} {
		out, err := exec.Command(vplayd, append(append([]string{"windows"}, strings.Fields(k.flags)...), rec)...).CombinedOutput()
		if err != nil || !regexp.MustCompile(k.want).Match(out) {
			t.Errorf("%s: %v\n%s", k.flags, err, out)
		}
	}
}

// TestSliceTable: the origin of a crash, the instructions from there to it, and an error in the line of what has no crash.
func TestSliceTable(t *testing.T) {
	t.Parallel()
	crashes, ends := compile(t, "slice/overwrite", "-O0"), compile(t, "moves", "-O0", "-static")
	recs := []string{crashes.record(t), ends.record(t, "--keep", "always")}
	type line struct {
		File, Of, Error, Crash string
		Instructions, Window   uint64
		Origin                 struct {
			Kind, Position string
		}
		Slice, Values struct {
			Rows         int
			Instructions uint64
			Share        float64
		}
	}
	cmd := exec.Command(vplayd, append([]string{"slice", "--table", "--json", "--symbols", filepath.Join(crashes.dir, "symbols")}, recs...)...)
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 2 {
		t.Errorf("exit code %d, %v", code, err)
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	var a, b line
	if err := d.Decode(&a); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := d.Decode(&b); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	whole := crashes.slice(t, recs[0])
	var crash, origin checkpoint.Position
	for text, p := range map[string]*checkpoint.Position{a.Crash: &crash, a.Origin.Position: &origin} {
		if _, err := fmt.Sscanf(text, "%d:%d.%d", &p.Interval, &p.Instr, &p.Step); err != nil {
			t.Fatal(err)
		}
	}
	if a.Window != crash.Instr-origin.Instr || a.Window == 0 || a.Instructions != crash.Instr || a.Origin.Kind != "code" {
		t.Errorf("the window: %+v", a)
	}
	if a.Slice.Instructions != whole.Instructions || a.Slice.Rows != len(whole.Rows)-1 || a.Values.Instructions >= a.Slice.Instructions || a.Slice.Share != float64(a.Slice.Instructions)/float64(a.Window) {
		t.Errorf("the slices: %+v, alone %d instructions and %d rows", a, whole.Instructions, len(whole.Rows))
	}
	if !strings.Contains(b.Error, "say what to explain") || b.Instructions == 0 {
		t.Errorf("of a program that does not crash: %+v", b)
	}
	text, _ := exec.Command(vplayd, append([]string{"slice", "--table"}, recs...)...).CombinedOutput()
	if !regexp.MustCompile(`(?s)recording +instructions +window.*rec\.vplay +\d+,\d+ .*say what to explain`).Match(text) {
		t.Errorf("as text:\n%s", text)
	}
}
