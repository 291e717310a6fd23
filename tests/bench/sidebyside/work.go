package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// The programs that are measured, with their input. Each prepares its files in a folder
// and returns the command to run; a new line of the table is a new entry here.

//go:embed kernels/*.c
var sources embed.FS

// Groups of work; the table has a mean for each.
const (
	groupInteger = "integer kernel"
	groupSIMD    = "packed integer"
	groupPacked  = "packed double"
	groupProgram = "program"
	groupMore    = "other program"
)

// work is one line of the table.
type work struct {
	name, group string
	// prepare returns the command to run; dir is for its files. n scales a
	// kernel, or the input of a program.
	prepare func(dir string, n int) ([]string, error)
	n       int // so that it runs for 0.15 to 0.5 s
	tiny    int // for a test
}

var all = []work{
	{"crc", groupInteger, kernel("crc", "-O2"), 1500, 20},
	{"sieve", groupInteger, kernel("sieve", "-O2"), 60, 1},
	{"matmul", groupInteger, kernel("matmul", "-O2", "-fno-tree-vectorize"), 25, 1},
	{"sort", groupInteger, kernel("sort", "-O2"), 60, 1},
	{"fib", groupInteger, kernel("fib", "-O2"), 38, 20},
	{"list", groupInteger, kernel("list", "-O2"), 120_000, 100},
	{"random", groupInteger, kernel("random", "-O2"), 50, 1},
	{"matmul-sse2", groupSIMD, kernel("matmul", "-O2"), 25, 1},
	{"packed-sse2", groupPacked, kernel("packed", "-O3", "-fno-math-errno"), 2500, 1},
	{"packed-avx2", groupPacked, kernel("packed", "-O3", "-fno-math-errno", "-mavx2"), 4000, 1},
	{"gzip", groupProgram, gzip, 4 << 20, 1 << 16},
	{"bc", groupProgram, bc, 800, 50},
	{"sqlite3", groupProgram, sqlite, 130_000, 100},
	{"python3", groupProgram, python, 200_000, 10},
}

// kernel compiles kernels/name.c.
func kernel(name string, flags ...string) func(string, int) ([]string, error) {
	return func(dir string, n int) ([]string, error) {
		text, err := sources.ReadFile("kernels/" + name + ".c")
		if err != nil {
			return nil, err
		}
		bin := filepath.Join(dir, name+strings.Join(flags, ""))
		cmd := exec.Command("gcc", append(flags, "-o", bin, "-x", "c", "-", "-lm")...)
		cmd.Stdin = bytes.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("gcc %s.c: %w\n%s", name, err, out)
		}
		return []string{bin, strconv.Itoa(n)}, nil
	}
}

// gzip compresses n bytes of words.
func gzip(dir string, n int) ([]string, error) {
	words := strings.Fields("the quick brown fox jumps over a lazy dog while seven wizards quietly mix potions 1984 0x7fff")
	var text bytes.Buffer
	for x := uint32(1); text.Len() < n; {
		x = x*1664525 + 1013904223
		text.WriteString(words[x>>16%uint32(len(words))%uint32(len(words))])
		text.WriteByte(" \n"[x>>28&1])
	}
	file := filepath.Join(dir, "text")
	return []string{"gzip", "-nc", file}, os.WriteFile(file, text.Bytes(), 0o600)
}

// bc computes pi to n digits.
func bc(dir string, n int) ([]string, error) {
	file := filepath.Join(dir, "pi.bc")
	return []string{"bc", "-lq", file}, os.WriteFile(file, fmt.Appendf(nil, "scale=%d\n4*a(1)\nquit\n", n), 0o600)
}

const sql = `create table t(a integer primary key, b integer, c text);
with recursive n(x) as (select 1 union all select x+1 from n where x<%d)
insert into t select x, x*7919%%1000, 'row '||x from n;
create index i on t(b);
select count(*), sum(a), max(c) from t where b between 100 and 300;
select b, count(*), avg(a) from t group by b order by 2, 1 limit 5;`

func sqlite(_ string, n int) ([]string, error) {
	return []string{"sqlite3", ":memory:", fmt.Sprintf(sql, n)}, nil
}

const script = `n = %d
words, total = {}, 0
for i in range(n):
    k = "k%%d" %% (i * 7919 %% 1000)
    words[k] = words.get(k, 0) + i
    total += len(k) * i
class P:
    def __init__(self, x): self.x = x
    def step(self, d): self.x = (self.x * 31 + d) %% 1000003; return self.x
p = P(1)
print(total, sum(p.step(i) for i in range(n)), sorted(words.items())[:3])
print(sum(x * x for x in [i ^ 5 for i in range(n)]), pow(3, n, 10 ** 40))
`

// python runs a script in the system's python3: the first on PATH may be a
// shell script, and another version.
func python(_ string, n int) ([]string, error) {
	for _, p := range []string{"/usr/bin/python3", "/usr/local/bin/python3"} {
		if _, err := os.Stat(p); err == nil {
			return []string{p, "-c", fmt.Sprintf(script, n)}, nil
		}
	}
	return nil, errors.New("no python3 in /usr/bin or /usr/local/bin")
}
