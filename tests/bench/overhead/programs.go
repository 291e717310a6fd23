package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"vplay/tests/bench/command"
)

// The rows, and the programs that run to their end, with their input. A new row is a new entry here; servers are in
// servers.go.

// The wanted ratios.
const (
	computing = 1.05
	serving   = 1.10
	database  = 1.08
	calling   = 1.3
	copying   = 1.7
)

var rows = []row{
	{name: "true", what: "nothing: what starting and ending costs", program: trueProgram},
	{name: "gzip", what: "compresses 24 MB of text", bound: computing, quoted: 2.6, program: gzip},
	{name: "xz", what: "xz -1 -T1 of 12 MB of text", bound: computing, program: xz},
	{name: "cc1", what: "compiles a generated C file, -O2, without gcc's driver", bound: computing, program: cc1},
	{name: "sqlite3", what: "300,000 rows in memory, an index, queries", bound: database, quoted: 4.3, program: sqlite},
	{name: "sqlite3-file", what: "3,000 transactions in a file", bound: database, program: sqliteFile},
	{name: "find", what: "find /usr/share -size +100k", bound: calling, quoted: 11, program: find},
	{name: "git-status", what: "git status of 20,000 files", bound: calling, program: gitStatus},
	{name: "python3", what: "starts, and imports 20 modules", bound: calling, quoted: 29, program: python},
	{name: "dd-4k", what: "dd bs=4k of 256 MiB", bound: copying, program: dd("4k", 256<<20, 1<<20)},
	{name: "dd-1", what: "dd bs=1 of 1 MiB", program: dd("1", 1<<20, 1000)},
	{name: "threads", what: "a C program that computes with a thread for each CPU", threads: runtime.NumCPU(), program: threads},
	{name: "zstd-T2", what: "zstd -T2 of 64 MB of text", quoted: 5.9, threads: 2, program: zstd},
	{name: "redis", what: "redis-benchmark, SET and GET, 20 clients", bound: serving, server: redis},
	{name: "nginx", what: "ab -k, 20 clients, one worker, 20 kB", bound: serving, server: nginx("off")},
	{name: "nginx-sendfile", what: "the same with sendfile, as Debian's configuration has it", bound: serving, server: nginx("on")},
	{name: "memcached", what: "set and get, 20 clients", bound: serving, server: memcached},
	{name: "postgresql", what: "pgbench -S, 4 clients", bound: serving, server: postgresql},
}

func trueProgram(*bench, string) (*program, error) { return &program{args: []string{"true"}}, nil }

func gzip(b *bench, dir string) (*program, error) {
	file, err := command.Text(dir, b.n(24<<20, 1<<16))
	return &program{args: []string{"gzip", "-nc", file}}, err
}

func xz(b *bench, dir string) (*program, error) {
	file, err := command.Text(dir, b.n(12<<20, 1<<16))
	return &program{args: []string{"xz", "-1", "-T1", "-c", file}}, err
}

func zstd(b *bench, dir string) (*program, error) {
	file, err := command.Text(dir, b.n(64<<20, 1<<16))
	return &program{args: []string{"zstd", "-q", "-9", "-T2", "-c", file}}, err
}

// cc1 compiles some thousand lines.
func cc1(b *bench, dir string) (*program, error) {
	where, err := exec.Command("gcc", "-print-prog-name=cc1").Output()
	if err != nil {
		return nil, err
	}
	var c strings.Builder
	for i := range b.n(700, 5) {
		fmt.Fprintf(&c, `
struct s%[1]d { int a, b[%[2]d]; double c; };
static int step%[1]d(int x, int n) {
	int sum = %[1]d;
	for (int i = 0; i < n; i++) {
		switch ((x ^ i) %% 7) {
		case 0: sum += x * i; break;
		case 1: sum ^= x << (i & 7); break;
		case 2: if (sum > n) sum -= n; else sum += 3 * i; break;
		default: sum = sum * 31 + x;
		}
	}
	return sum;
}
double work%[1]d(struct s%[1]d *s, int n) {
	for (int i = 0; i < %[2]d; i++) {
		s->b[i] = step%[1]d(s->a + i, n);
		s->c += s->b[i] / (1.0 + i);
	}
	return s->c + (s->a ? work%[1]d(s, n - 1) : 0);
}
`, i, 3+i%29)
	}
	file := filepath.Join(dir, "generated.c")
	args := []string{strings.TrimSpace(string(where)), "-quiet", "-O2", file, "-o", filepath.Join(dir, "generated.s")}
	return &program{args: args}, os.WriteFile(file, []byte(c.String()), 0o600)
}

// sqlFill makes a table of %d rows.
const sqlFill = `create table t(a integer primary key, b integer, c text);
with recursive n(x) as (select 1 union all select x+1 from n where x<%d)
insert into t select x, x*7919%%1000, 'row '||x from n;
create index i on t(b);
select count(*), sum(a), max(c) from t where b between 100 and 300;
select b, count(*), avg(a) from t group by b order by 2, 1 limit 5;
`

func sqlite(b *bench, _ string) (*program, error) {
	return &program{args: []string{"sqlite3", ":memory:", fmt.Sprintf(sqlFill, b.n(300_000, 100))}}, nil
}

// sqliteFile works with a file, in as many transactions as it inserts rows. The disk is not waited for.
func sqliteFile(b *bench, dir string) (*program, error) {
	var sql strings.Builder
	sql.WriteString("pragma synchronous=off;\ndrop table if exists t;\ncreate table t(a integer primary key, b text);\n")
	for i := range b.n(3000, 10) {
		fmt.Fprintf(&sql, "begin; insert into t values(%d, 'row %d'); update t set b = b || '.' where a = %d; commit;\n", i, i*7919, i/2)
	}
	sql.WriteString("select count(*), sum(length(b)) from t;\n")
	file := filepath.Join(dir, "script.sql")
	return &program{args: []string{"sqlite3", filepath.Join(dir, "file.db")}, stdin: file}, os.WriteFile(file, []byte(sql.String()), 0o600)
}

func find(b *bench, dir string) (*program, error) {
	where := "/usr/share"
	if b.tiny {
		where = dir
	}
	return &program{args: []string{"find", where, "-size", "+100k", "-not", "-name", "std*"}}, nil
}

// gitStatus makes a repository of which nothing has changed.
func gitStatus(b *bench, dir string) (*program, error) {
	repo := filepath.Join(dir, "repository")
	for i := range b.n(20_000, 20) {
		folder := filepath.Join(repo, fmt.Sprintf("folder%d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return nil, err
			}
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("file%d", i)), fmt.Appendf(nil, "file %d\n", i), 0o600); err != nil {
			return nil, err
		}
	}
	// Nothing of the user's: git's answer may depend on it. No commit is to tidy the repository behind us.
	env := []string{"HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	for _, args := range [][]string{
		{"init", "-q"},
		{"add", "."},
		{"-c", "user.name=vplay", "-c", "user.email=vplay@example.org", "-c", "maintenance.auto=false", "commit", "-q", "-m", "all", "--no-gpg-sign"},
	} {
		cmd := exec.CommandContext(b.ctx, "git", append([]string{"-C", repo}, args...)...)
		cmd.Env = environment(env)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
	}
	return &program{args: []string{"git", "-C", repo, "status", "--porcelain"}, env: env}, nil
}

// python starts the system's python3: the first on PATH may be a shell script, and another version.
func python(*bench, string) (*program, error) {
	for _, p := range []string{"/usr/bin/python3", "/usr/local/bin/python3"} {
		if _, err := os.Stat(p); err == nil {
			const script = "import argparse, asyncio, collections, csv, ctypes, dataclasses, decimal, email.message, hashlib, http.client, inspect, " +
				"json, logging, pathlib, random, sqlite3, ssl, subprocess, unittest, xml.dom.minidom; print(len(json.dumps(dir(asyncio))))"
			return &program{args: []string{p, "-c", script}}, nil
		}
	}
	return nil, errors.New("no python3 in /usr/bin or /usr/local/bin")
}

// dd copies a file in blocks of a size.
func dd(block string, full, tiny int) func(*bench, string) (*program, error) {
	return func(b *bench, dir string) (*program, error) {
		file, err := command.Text(dir, b.n(full, tiny))
		return &program{args: []string{"dd", "if=" + file, "of=/dev/null", "bs=" + block, "status=none"}}, err
	}
}

// parallel computes with a number of threads for as many steps each.
const parallel = `#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static long steps;
static void *compute(void *arg) {
	unsigned long x = (unsigned long)arg;
	for (long i = 0; i < steps; i++) x = x * 6364136223846793005ul + (x >> 33) + i;
	return (void *)x;
}
int main(int argc, char **argv) {
	int n = atoi(argv[1]);
	steps = atol(argv[2]);
	pthread_t t[256];
	unsigned long sum = 0;
	for (int i = 0; i < n; i++) pthread_create(&t[i], 0, compute, (void *)(long)(i + 1));
	for (int i = 0; i < n; i++) {
		void *x;
		pthread_join(t[i], &x);
		sum ^= (unsigned long)x;
	}
	printf("%lu\n", sum);
}
`

func threads(b *bench, dir string) (*program, error) {
	bin := filepath.Join(dir, "parallel")
	cmd := exec.CommandContext(b.ctx, "gcc", "-O2", "-pthread", "-o", bin, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(parallel)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return &program{args: []string{bin, strconv.Itoa(min(runtime.NumCPU(), 256)), strconv.Itoa(b.n(400_000_000, 1_000_000))}}, nil
}
