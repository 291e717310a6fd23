package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"vplay/tests/bench/command"
)

// The programs, with their input.

// program is a row of the tables: args are executed, with input on standard input.
type program struct {
	name string
	make func(dir string) (args []string, input string, err error)
}

var programs = []program{
	{"gzip", onText("gzip", "-c")},
	{"bzip2", onText("bzip2", "-c")},
	{"xz", onText("xz", "-1", "-T1", "-c")},
	{"sqlite3", fixed("create table t(a integer primary key, b integer, c text);"+
		"with recursive n(x) as (select 1 union all select x+1 from n where x<8000) insert into t select x, x*7919%1000, 'row '||x from n;"+
		"create index i on t(b); select count(*), sum(a) from t where b between 100 and 300;", "sqlite3", ":memory:")},
	{"python3", fixed("", "python3", "-I", "-c", "d = {}\nfor i in range(20000): d[i * 7919 % 5003] = str(i)\nprint(len(d), sum(map(len, d.values())))")},
	{"perl", fixed("", "perl", "-e", `for $i (0 .. 40000) { $h{$i * 7919 % 5003} .= chr(97 + $i % 26) } print scalar(keys %h), "\n"`)},
	{"gawk", fixed("", "gawk", `BEGIN { for (i = 0; i < 20000; i++) { a[i % 5000] = i; s += a[(i * 7) % 5000] } print s }`)},
	{"grep", onText("grep", "-cE", "(quick|lazy) [a-z]+ [0-9]+")},
	{"bc", fixed("scale=300\n4*a(1)\nquit\n", "bc", "-l", "-q")},
	{"cc1", cc1},
}

// fixed is a program without files.
func fixed(input string, args ...string) func(string) ([]string, string, error) {
	return func(string) ([]string, string, error) { return args, input, nil }
}

// onText is a program that reads a file of 300 kB of words.
func onText(args ...string) func(string) ([]string, string, error) {
	return func(dir string) ([]string, string, error) {
		file, err := command.Text(dir, 300_000)
		return append(args[:len(args):len(args)], file), "", err
	}
}

// cc1 compiles a few hundred lines.
func cc1(dir string) ([]string, string, error) {
	where, err := exec.Command("gcc", "-print-prog-name=cc1").Output()
	if err != nil {
		return nil, "", err
	}
	var c strings.Builder
	for i := range 20 {
		fmt.Fprintf(&c, "int f%[1]d(int *a, int n)\n{\n\tint s = %[1]d;\n\tfor (int i = 0; i < n; i++)\n\t\ts = a[i] %% 7 ? s * 31 + a[i] : s ^ a[n - 1 - i];\n\treturn s;\n}\n", i)
	}
	file := filepath.Join(dir, "generated.c")
	args := []string{strings.TrimSpace(string(where)), "-quiet", "-O1", file, "-o", filepath.Join(dir, "generated.s")}
	return args, "", os.WriteFile(file, []byte(c.String()), 0o600)
}
