package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// More programs, for -more: compilers, languages, tools, cryptography. They come from Debian (the suite sidebyside of tests/need/programs.txt).

var more = []work{
	{"cc1", groupMore, cc1, 60, 2},
	{"perl", groupMore, scripted("perl", perlText), 300_000, 100},
	{"lua", groupMore, scripted("lua5.4", luaText), 500_000, 100},
	{"tclsh", groupMore, scripted("tclsh", tclText), 300_000, 100},
	{"ruby", groupMore, scripted("ruby", rubyText), 300_000, 100},
	{"nasm", groupMore, nasm, 60_000, 100},
	{"git-log", groupMore, gitLog, 4000, 10},
	{"openssl-sha256", groupMore, openssl("dgst", "-sha256"), 320, 1},
	{"openssl-aes", groupMore, openssl("enc", "-aes-256-cbc", "-K", strings.Repeat("01", 32), "-iv", strings.Repeat("02", 16), "-out", "/dev/null", "-in"), 160, 1},
	{"openssl-prime", groupMore, opensslPrime, 3, 1},
	{"convert", groupMore, convert, 1400, 20},
	{"ffmpeg-version", groupMore, func(string, int) ([]string, error) { return []string{"ffmpeg", "-version"}, nil }, 1, 1},
}

// cc1 compiles n functions.
func cc1(dir string, n int) ([]string, error) {
	out, err := exec.Command("gcc", "-print-prog-name=cc1").Output()
	if err != nil {
		return nil, fmt.Errorf("gcc: %w", err)
	}
	var text bytes.Buffer
	for i := range n {
		fmt.Fprintf(&text, `struct s%[1]d { int n; double x[%[2]d]; struct s%[1]d *next; };
double f%[1]d(struct s%[1]d *p, int k) {
	double sum = %[1]d;
	for (; p; p = p->next)
		for (int i = 0; i < p->n && i < %[2]d; i++)
			switch ((i * k) %% 5) {
			case 0: sum += p->x[i] * k; break;
			case 1: sum -= p->x[i] / (i + 1); break;
			case 2: p->x[i] = sum; break;
			default: sum = sum < 0 ? -sum : sum * 1.5;
			}
	return sum;
}
`, i, i%13+3)
	}
	file := filepath.Join(dir, "text.c")
	return []string{strings.TrimSpace(string(out)), "-quiet", "-O2", file, "-o", "-"}, os.WriteFile(file, text.Bytes(), 0o600)
}

const (
	perlText = `my %%h; my $t = 0;
for my $i (1 .. %[1]d) { my $k = "k" . ($i * 7919 %% 1000); $h{$k} += $i; $t += length($k); $t ^= $i if "$i" =~ /7[0-4]$/; }
print $t, " ", join(",", (sort { $h{$a} <=> $h{$b} } keys %%h)[0 .. 2]), "\n";`
	luaText = `local h, t = {}, 0
for i = 1, %[1]d do
	local k = "k" .. (i * 7919 %% 1000)
	h[k] = (h[k] or 0) + i
	t = t + #k * (i & 7)
end
local l = {}
for k in pairs(h) do l[#l + 1] = k end
table.sort(l)
print(t, l[1], l[#l])`
	tclText = `proc run {n} {
	set t 0
	for {set i 1} {$i <= $n} {incr i} {
		set k k[expr {$i * 7919 %% 1000}]
		incr h($k) $i
		incr t [string length $k]
	}
	return "$t [lindex [lsort [array names h]] 0]"
}
puts [run %[1]d]`
	rubyText = `h = Hash.new(0); t = 0
(1..%[1]d).each { |i| k = "k#{i * 7919 %% 1000}"; h[k] += i; t += k.size; t ^= i if i %% 77 == 3 }
puts t, h.sort_by { |k, v| [v, k] }.first(3).inspect`
)

// scripted runs a script for n.
func scripted(program, text string) func(string, int) ([]string, error) {
	return func(dir string, n int) ([]string, error) {
		file := filepath.Join(dir, program+".script")
		return []string{program, file}, os.WriteFile(file, fmt.Appendf(nil, text, n), 0o600)
	}
}

// nasm assembles n lines.
func nasm(dir string, n int) ([]string, error) {
	var text bytes.Buffer
	fmt.Fprintln(&text, "bits 64\nsection .text")
	for i := range n / 4 {
		fmt.Fprintf(&text, "l%[1]d:\n\tmov rax, [rbx+8*rcx+%[2]d]\n\tadd rax, %[1]d\n\tjne l%[1]d\n", i, i%512)
	}
	file := filepath.Join(dir, "text.asm")
	return []string{"nasm", "-f", "elf64", "-o", filepath.Join(dir, "text.o"), file}, os.WriteFile(file, text.Bytes(), 0o600)
}

// gitLog shows all changes of a repository with n commits.
func gitLog(dir string, n int) ([]string, error) {
	repo := filepath.Join(dir, "repo")
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git init: %w\n%s", err, out)
	}
	var commits bytes.Buffer
	text := strings.Repeat("a line of the file\n", 40)
	for i := range n {
		text = text[19:] + fmt.Sprintf("line %-13d\n", i)
		fmt.Fprintf(&commits, "commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 5\nwhy %d\nM 644 inline f%d\ndata %d\n%s\n", 1_700_000_000+i, i%10, i%7, len(text), text)
	}
	cmd := exec.Command("git", "-C", repo, "fast-import", "--quiet")
	cmd.Stdin = &commits
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git fast-import: %w\n%s", err, out)
	}
	return []string{"git", "-C", repo, "log", "-p", "--no-color", "main"}, nil
}

// openssl reads n MiB.
func openssl(args ...string) func(string, int) ([]string, error) {
	return func(dir string, n int) ([]string, error) {
		file := filepath.Join(dir, "zeros")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return nil, err
		}
		return append(append([]string{"openssl"}, args...), file), os.Truncate(file, int64(n)<<20)
	}
}

// opensslPrime tests a prime of 1,279 bits n times (2^1279-1, that of Mersenne).
func opensslPrime(_ string, n int) ([]string, error) {
	args := []string{"openssl", "prime", "-hex"}
	for range n {
		args = append(args, "7"+strings.Repeat("F", 1276/4))
	}
	return args, nil
}

// convert works on a picture of n times n pixels.
func convert(_ string, n int) ([]string, error) {
	return []string{"convert-im6.q16", "-limit", "thread", "1", "-size", fmt.Sprintf("%dx%d", n, n), "gradient:red-blue", "-blur", "0x2", "-rotate", "17", "-resize", "50%", "rgb:-"}, nil
}
