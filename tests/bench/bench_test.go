// Package bench measures what the README states: what recording costs, how
// fast replay is beside the program itself, how large recordings are, and how
// long a debugger waits. Run it on a quiet machine: just bench.
package bench

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/tests/internal/tool"
)

// built is vplayd, built once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vplay-bench")
	if err != nil {
		return "", err
	}
	return tool.Build(dir)
})

func vplayd(b *testing.B) string {
	b.Helper()
	path, err := built()
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// text writes a text file of n bytes that compresses like prose.
func text(b *testing.B, n int) string {
	b.Helper()
	words := strings.Fields("the quick brown fox jumps over a lazy dog while seven wizards quietly mix potions 1984 0x7fff")
	var buf bytes.Buffer
	for x := uint32(1); buf.Len() < n; {
		x = x*1664525 + 1013904223
		buf.WriteString(words[x>>16%uint32(len(words))%uint32(len(words))])
		buf.WriteByte(" \n"[x>>28&1])
	}
	path := filepath.Join(b.TempDir(), "text")
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

const sqlScript = `create table t(a integer primary key, b integer, c text);
with recursive n(x) as (select 1 union all select x+1 from n where x<60000)
insert into t select x, x*7919%1000, 'row '||x from n;
create index i on t(b);
select count(*), sum(a), max(c) from t where b between 100 and 300;`

// program is a command whose recording is measured.
type program struct {
	name string
	args func(b *testing.B) []string
}

var programs = []program{
	{"gzip", func(b *testing.B) []string { return []string{"gzip", "-c", text(b, 8<<20)} }},
	{"sqlite3", func(*testing.B) []string { return []string{"sqlite3", ":memory:", sqlScript} }},
	{"find", func(*testing.B) []string { return []string{"find", "/usr/share", "-size", "+100k"} }},
	{"bc", func(*testing.B) []string { return []string{"sh", "-c", "echo 'scale=600; 4*a(1)' | bc -l"} }},
}

// run runs a command with its output thrown away and returns the wall time.
func run(b *testing.B, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	start := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatalf("%v: %v", args, err)
	}
	return time.Since(start)
}

// BenchmarkRecord compares a program with the same program recorded into the
// ring, in alternation; the metric is the ratio of the smallest times.
func BenchmarkRecord(b *testing.B) {
	v := vplayd(b)
	for _, p := range programs[:3] {
		b.Run(p.name, func(b *testing.B) {
			args := p.args(b)
			native, recorded := time.Hour, time.Hour
			for b.Loop() {
				native = min(native, run(b, args...))
				recorded = min(recorded, run(b, append([]string{v, "record", "-q", "--"}, args...)...))
			}
			b.ReportMetric(recorded.Seconds()/native.Seconds(), "x-native")
			b.ReportMetric(native.Seconds()*1e3, "native-ms")
		})
	}
}

// recording records a program whole and returns the file and its CPU time.
func recording(b *testing.B, p program) (path string, cpu time.Duration) {
	b.Helper()
	path = filepath.Join(b.TempDir(), p.name+".vplay")
	run(b, append([]string{vplayd(b), "record", "-q", "--keep", "always", "--no-slim", "-o", path, "--"}, p.args(b)...)...)
	rec, err := checkpoint.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer rec.Close()
	for _, i := range rec.Intervals() {
		cpu += i.CPUTime
	}
	return path, cpu
}

// BenchmarkReplay verifies whole recordings on one core: instructions a
// second, and how much slower than the program itself that is.
func BenchmarkReplay(b *testing.B) {
	for _, p := range programs {
		b.Run(p.name, func(b *testing.B) {
			path, cpu := recording(b, p)
			best, insns := 0.0, uint64(0)
			for b.Loop() {
				rec, err := checkpoint.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				s, err := replay.NewSession(rec)
				if err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				results, err := replay.Verify(context.Background(), s, replay.VerifyOptions{Workers: 1})
				if err != nil {
					b.Fatal(err)
				}
				took := time.Since(start)
				insns = 0
				for _, r := range results {
					if r.Err != nil {
						b.Fatal(r.Err)
					}
					insns += r.Instructions
				}
				best = max(best, float64(insns)/1e6/took.Seconds())
				s.Close()
				rec.Close()
			}
			b.ReportMetric(best, "Minsn/s")
			b.ReportMetric(float64(insns)/1e6, "Minsn")
			b.ReportMetric(float64(insns)/best/1e6/cpu.Seconds(), "x-native")
		})
	}
}

// BenchmarkSize reports the bytes of a recording before and after slimming.
func BenchmarkSize(b *testing.B) {
	for _, p := range programs {
		b.Run(p.name, func(b *testing.B) {
			var fat, slim int64
			for b.Loop() {
				path, _ := recording(b, p)
				r, err := replay.Slim(context.Background(), path, replay.SlimOptions{})
				if err != nil {
					b.Fatal(err)
				}
				if len(r.Failed) > 0 {
					b.Fatal(r.Failed[0].Err)
				}
				fat, slim = r.Before, r.After
			}
			b.ReportMetric(float64(fat)/1e6, "fat-MB")
			b.ReportMetric(float64(slim)/1e6, "slim-MB")
		})
	}
}

// BenchmarkPrompt measures how long gdb takes from its start to a backtrace
// at the crash, serve included.
func BenchmarkPrompt(b *testing.B) {
	v := vplayd(b)
	dir := b.TempDir()
	prog, rec := filepath.Join(dir, "crash"), filepath.Join(dir, "crash.vplay")
	src := filepath.Join(dir, "crash.c")
	code := "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", 1); volatile int *p = 0; return *p; }\n"
	if err := os.WriteFile(src, []byte(code), 0o600); err != nil {
		b.Fatal(err)
	}
	run(b, "gcc", "-g", "-o", prog, src)
	cmd := exec.Command(v, "record", "-q", "--slim", "now", "-o", rec, "--", prog)
	if err := cmd.Run(); err == nil {
		b.Fatal("the program did not crash")
	}
	for _, c := range []struct {
		name    string
		options []string
	}{
		{"without-debug-files", []string{"-iex", "set debug-file-directory " + dir}}, // gdb takes its time to read libc's
		{"with-debug-files", nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			args := slices.Concat([]string{"replay", "--symbols", dir, rec, "--", "-nx", "-batch"}, c.options, []string{"-ex", "bt"})
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				out, err := exec.Command(v, args...).CombinedOutput()
				if err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				best = min(best, time.Since(start))
				if !regexp.MustCompile(`#0 .* main .*crash\.c:2`).Match(out) {
					b.Fatalf("no backtrace:\n%s", out)
				}
			}
			b.ReportMetric(best.Seconds()*1e3, "ms-to-backtrace")
		})
	}
}
