//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// programCase is a real program and its work.
type programCase struct {
	name  string
	needs []string
	// script is run by sh -c "exec ..." so that the recorded image becomes the
	// program; args, when set, are run directly.
	args  []string
	kill  syscall.Signal
	after time.Duration
	loose bool // output differs from run to run
	// processes is how many the recording has at least.
	processes int
}

// bashScript forks, pipes, traps and substitutes.
const bashScript = `
f() { local i s=0; for ((i = 0; i < 3000; i++)); do ((s += i * i % 7)); done; echo $s; }
trap 'echo got USR1' USR1
kill -USR1 $$
for w in one two three; do echo "$w $(echo $w | tr a-z A-Z) $(f)"; done
printf '%s\n' {1..300} | sort -rn | head -3
(exit 3); echo status $?
sleep 0.05 & wait $!; echo waited $?
declare -A m; for ((i = 0; i < 500; i++)); do m[k$i]=$((i * i)); done; echo ${m[k77]} ${#m[@]}
[[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo ${BASH_REMATCH[2]}
`

const pythonScript = `
import hashlib, json, re, zlib, random, collections, decimal, struct
random.seed(5)
words = [''.join(random.choice('abcdef') for _ in range(6)) for _ in range(4000)]
c = collections.Counter(words)
print(len(c), hashlib.sha256(' '.join(words).encode()).hexdigest())
z = zlib.compress(json.dumps(words).encode())
print(len(z), zlib.crc32(z), len(re.findall('a[b-d]+e', ' '.join(words))))
print(sum(x ** 0.5 for x in range(20000)), decimal.Decimal(2).sqrt(), struct.pack('>d', 1.5))
class A:
    def __init__(self, n): self.n = n
    def __lt__(self, o): return self.n < o.n
print([a.n for a in sorted(A(random.random()) for _ in range(2000))][0])
`

const perlScript = `my %h; my $s = "x"; for my $i (1..20000) { $h{$i % 997} .= chr(97 + $i % 26); $s = substr($s . $i, -40); }
my $n = 0; for (sort keys %h) { $n += () = $h{$_} =~ /[aeiou]/g } print "$n $s\n"; printf "%.6f %s\n", exp(1) * sin(2), join ",", map { $_ * 2 } grep { $_ % 3 == 0 } 1..20; local $_ = "a,b;c" x 2000; my @p = split /[,;]/; print scalar(@p), "\n"; print sprintf("%b", 1234567), " ", reverse("abc"), " ", lc(uc "MiXed"), "\n"; my $pid = fork; exit 4 unless $pid; waitpid $pid, 0; print $? >> 8, "\n";`

const sqlScript = `create table t(a integer primary key, b text, c real); begin; with recursive n(i) as (select 1 union all select i+1 from n where i<8000) insert into t select i, hex(i*7919), i*1.5 from n; commit; create index tb on t(b); select count(*), sum(c), max(b) from t where b like '3%'; select substr(b,1,2) k, count(*), avg(c) from t group by k order by 2 desc, 1 limit 5; update t set c=c*2 where a%3=0; select total(c) from t; delete from t where a%2; select count(*) from t; pragma integrity_check;`

const awkScript = `{ n[length($0)]++; for (i = 1; i <= NF; i++) { w[$i]++; s += i * length($i) } gsub(/a+/, "A"); t += index($0, "A") } END { for (k in w) c++; print NR, c, s, t, n[40]; printf "%.4f %s\n", log(s), substr("forwards", 3, 4) }`

func programCases(dir string) []programCase {
	return []programCase{
		{name: "bc", args: []string{"bc", "-lq", filepath.Join(dir, "pi.bc")}},
		{name: "gzip", args: []string{"gzip", "-9c", "text"}},
		{name: "gzip -d", args: []string{"gzip", "-dc", "text.gz"}, needs: []string{"gzip"}},
		{name: "xz", args: []string{"xz", "-1", "-c", "-T1", "small"}},
		{name: "sqlite3", args: []string{"sqlite3", "test.db", sqlScript}},
		{name: "awk", args: []string{"awk", awkScript, "small"}},
		{name: "perl", args: []string{"perl", "-e", perlScript}},
		{name: "python3", args: []string{"python3", "-c", pythonScript}},
		{name: "bash", args: []string{"bash", "-c", bashScript}},
		{name: "grep", args: []string{"grep", "-cE", "(a[b-f]+){3}|zz[0-9]*z", "text"}},
		{name: "date", args: []string{"date", "-d", "2024-02-29 12:00 UTC", "+%s %A %j"}},
		{name: "sleep", args: []string{"sleep", "0.1"}},
		{name: "sort", args: []string{"sort", "-k2", "--parallel=1", "small"}},
		{name: "find", args: []string{"find", "/usr/share/doc", "-maxdepth", "1", "-name", "lib*a*"}},
		{name: "crash python3", args: []string{"python3", "-c", "import ctypes\nx = [i * i for i in range(50000)]\nctypes.string_at(0)"}},
		{name: "crash sqlite3", args: []string{"sqlite3", ":memory:", "with recursive n(i) as (select 1 union all select i+1 from n) select sum(i*i%7) from n"}, kill: syscall.SIGSEGV, after: 70 * time.Millisecond},
		{name: "crash gzip", args: []string{"gzip", "-9c", "/dev/zero"}, kill: syscall.SIGSEGV, after: 150 * time.Millisecond, loose: true},
	}
}

// inputs makes the folder the programs work in.
func inputs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	x := uint32(12345)
	for b.Len() < 2<<20 {
		for range 8 {
			x = x*1664525 + 1013904223
			n := int(x>>24)%7 + 1
			for k := range n {
				b.WriteByte("abcdefghijklmnopqrstuvwxyz"[(x>>(k*3))%26])
			}
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d\n", x%1000)
	}
	text := b.String()
	write := func(name, s string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("text", text)
	write("small", text[:300<<10])
	write("pi.bc", "scale=120; 4*a(1); e(1); for (i = 0; i < 400; i++) { x += sqrt(i) * i ^ 3 }; x; 2^2000 % 10^30\n")
	if out, err := output("gzip", "-c", filepath.Join(dir, "text")); err == nil {
		write("text.gz", out)
	}
	return dir
}

// TestRealPrograms records real programs whole and verifies every interval.
func TestRealPrograms(t *testing.T) {
	dir := inputs(t)
	for _, c := range programCases(dir) {
		t.Run(c.name, func(t *testing.T) { c.check(t, dir) })
	}
}

// check records the program in folder dir and replays it.
func (c *programCase) check(t *testing.T, dir string) {
	for _, n := range c.needs {
		need.Program(t, n)
	}
	r := run{args: installed(t, c.args), dir: dir}
	if c.kill != 0 {
		r.kick = func(pid int) {
			time.Sleep(c.after)
			_ = syscall.Kill(pid, c.kill)
		}
	}
	want := r.native(t)
	_ = os.Remove(filepath.Join(dir, "test.db"))
	began := time.Now()
	got, res := r.recorded(t)
	took := time.Since(began)
	_ = os.Remove(filepath.Join(dir, "test.db"))
	if c.loose {
		got.out, want.out = "", ""
	}
	same(t, got, want)
	if !res.Recorded {
		t.Fatalf("nothing recorded: %s", res.Reason)
	}
	if res.Reason != "" {
		t.Errorf("recording ended early: %s", res.Reason)
	}
	checkProcesses(t, res.Path, c.processes)
	t.Logf("recorded in %.2f s; %v", took.Seconds(), verify(t, res.Path))
}

// checkProcesses wants at least so many processes in a recording.
func checkProcesses(t *testing.T, path string, want int) {
	t.Helper()
	if names := programsIn(openRecording(t, path)); len(strings.Fields(names)) < want {
		t.Errorf("the recording has %s, want %d processes", names, want)
	}
}

// TestStatic records a program without a dynamic linker.
func TestStatic(t *testing.T) {
	for _, name := range []string{"brk", "twosignals", "vfork"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run{args: []string{compile(t, name, "-static")}}
			want := r.native(t)
			got, res := r.recorded(t)
			same(t, got, want)
			if !res.Recorded {
				t.Fatalf("nothing recorded: %s", res.Reason)
			}
			t.Log(verify(t, res.Path))
		})
	}
}

// TestUntrappedCPUID records programs that ask the CPU themselves where CPUID
// cannot be made to fault: what they are told in their environment keeps glibc
// and OpenSSL to what replay knows.
func TestUntrappedCPUID(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"date", "-u", "-d", "@1e9"},
		{"python3", "-c", "import hashlib; print([hashlib.new(n, b'x' * 100000).hexdigest() for n in ('sha1', 'sha256', 'sha512', 'sha3_256')])"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			r := run{args: installed(t, args), opt: recorder.Options{NoTrapCPUID: true}}
			want := r.native(t)
			got, res := r.recorded(t)
			same(t, got, want)
			if !res.Recorded {
				t.Fatalf("nothing recorded: %s", res.Reason)
			}
			rec, err := checkpoint.Open(res.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			if rec.Manifest().CPU.Faulting {
				t.Error("CPUID was trapped")
			}
			t.Logf("%v", verify(t, res.Path))
		})
	}
}
