//go:build linux && amd64

package record

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vplay/tests/need"
)

// The programs of this file use what x86-64-v3 adds, or make code as they run.
// `just programs` installs them and runs this; the packages are many, so CI does
// without.

var programs = flag.Bool("programs", false, "record the programs that `just programs` installs")

const pythonNumbers = `
from decimal import Decimal, getcontext
from fractions import Fraction
import math, cmath, statistics
s = 0.0
for i in range(1, 60000):
    s += math.sin(i) * math.sqrt(i) / (i + 0.5) - math.log(i) ** 0.25
print(repr(s), repr(math.fsum(1 / k ** 2 for k in range(1, 4000))))
x = [[(i * j) % 7 + 0.25 for j in range(40)] for i in range(40)]
print(repr(sum(sum(a * b for a, b in zip(r, c)) for r in x for c in zip(*x))))
getcontext().prec = 200
print(Decimal(2).sqrt(), Decimal(1).exp(), Decimal(10).ln())
print(sum(Fraction(1, k) for k in range(1, 90)), cmath.exp(1j), statistics.pstdev([1.5, 2.5, 9]))
`

const perlRegex = `my $t = join " ", map { chr(97 + $_ * 7 % 26) x ($_ % 5 + 1) . $_ } 1..6000; my %n;
$n{lc $1}++ while $t =~ /\b(([a-m])\2+)\d*[13579]\b/gi; print join(",", map { "$_=$n{$_}" } sort keys %n), "\n";
(my $u = $t) =~ s/(?<x>[aeiou])(\d+)/$2 . uc $+{x}/ge; print length $u, " ", $u =~ tr/A-Z//, "\n";
print "$1 $2\n" if $t =~ /(?:(\w+)\s+){40}(?=n{3}\d{3} )(\w+)/; my @w = sort { $b cmp $a } split /\s*\d+\s*/, $t; print scalar @w, " $w[0]\n";
my $re = qr/^(\((?:[^()]|(?1))*\))$/; print +("(a(b)(c(d)))" =~ $re) ? "nested" : "no", "\n";`

const luaScript = `local s, t = 0, {}
for i = 1, 3e6 do s = (s + i * i) % 1000003 end
for i = 1, 2e5 do t[#t + 1] = string.format("%d", i * 7 % 1013) end
table.sort(t) local x = 0.5 for i = 1, 2e6 do x = 3.7 * x * (1 - x) end
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print(s, #t, t[100], string.format("%.17g", x), fib(27), ("abc"):rep(3):gsub("b", "BB"))`

const gawkNumbers = `BEGIN { for (i = 1; i < 200000; i++) { x += sin(i) / sqrt(i); y += exp(-i / 1e4) * log(i) } printf "%.17g %.17g %.12e %d\n", x, y, atan2(y, x), 2 ** 53; while (n++ < 3000) a[n] = (n * 7919) % 3001 / 3; m = asort(a, b); printf "%d %.15g %.15g %s\n", m, b[1], b[m], strtonum("0x1p") }`

const postscript = `%!PS
/Times-Roman findfont 24 scalefont setfont
72 700 moveto (The quick brown fox jumps over the lazy dog) show
0 5 355 { gsave 300 400 translate dup rotate 0 0 moveto 150 0 20 40 100 120 curveto 360 div 1 0.8 sethsbcolor 3 setlinewidth stroke grestore } for
newpath 300 400 60 0 360 arc 0.5 setgray fill showpage
`

func moreCases(t *testing.T, dir string) []programCase {
	write := func(name, s string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("big.c", bigC())
	write("page.ps", postscript)
	write("page.tr", ".TH X 1\n.SH NAME\n"+strings.Repeat("The \\fBquick\\fP brown fox \\(em x\\u2\\d jumps over it.\n", 300))
	if out, err := exec.Command(need.Program(t, "openssl"), "genrsa", "-traditional", "2048").Output(); err == nil {
		write("key.pem", string(out))
	}
	cc1, err := exec.Command(need.Program(t, "gcc"), "-print-prog-name=cc1").Output()
	need.Installed(t, "cc1", err == nil)
	key, iv := strings.Repeat("0123456789abcdef", 4), strings.Repeat("5a", 16)
	static := filepath.Join(dir, "musl")
	musl := exec.Command(need.Program(t, "musl-gcc"), "-static", "-O2", "-w", "-o", static, filepath.Join(dir, "big.c"))
	if b, err := musl.CombinedOutput(); err != nil {
		t.Fatalf("musl-gcc: %v\n%s", err, b)
	}
	return []programCase{
		{name: "openssl sha256", args: []string{"openssl", "dgst", "-sha256", "text"}},
		{name: "openssl sha512", args: []string{"openssl", "dgst", "-sha512", "text"}},
		{name: "openssl chacha20", args: []string{"openssl", "enc", "-chacha20", "-K", key, "-iv", iv, "-in", "small", "-a"}},
		{name: "openssl aes-ctr", args: []string{"openssl", "enc", "-aes-256-ctr", "-K", key, "-iv", iv, "-in", "text", "-a"}},
		{name: "openssl aes-gcm", args: []string{"openssl", "cms", "-encrypt", "-aes-256-gcm", "-secretkey", key, "-secretkeyid", "01", "-in", "text", "-outform", "DER", "-binary"}, loose: true},
		{name: "openssl rsa sign", args: []string{"openssl", "dgst", "-sha256", "-sign", "key.pem", "text"}},
		{name: "openssl rsa key", args: []string{"openssl", "genrsa", "-traditional", "1024"}, loose: true},
		{name: "imagemagick", args: []string{"convert-im6.q16", "-limit", "thread", "1", "-seed", "7", "-size", "120x90", "plasma:fractal", "-blur", "0x2", "-resize", "150%", "-rotate", "12", "-quality", "80", "jpg:-"}},
		{name: "python3 numbers", args: []string{"python3", "-c", pythonNumbers}},
		{name: "perl regex", args: []string{"perl", "-e", perlRegex}},
		{name: "cc1", args: []string{strings.TrimSpace(string(cc1)), "-quiet", "-O0", "big.c", "-o", "-"}},
		{name: "luajit", args: []string{"luajit", "-e", luaScript}},
		{name: "zstd", args: []string{"zstd", "--single-thread", "--no-asyncio", "-f", "-9", "-c", "text"}},
		{name: "ghostscript", args: []string{"gs", "-q", "-dNOPAUSE", "-dBATCH", "-dSAFER", "-r50", "-sDEVICE=png16m", "-sOutputFile=-", "page.ps"}},
		{name: "groff", args: []string{"env", "SOURCE_DATE_EPOCH=0", "groff", "-Tps", "-man", "page.tr"}},
		{name: "gawk", args: []string{"gawk", gawkNumbers}},
		{name: "static musl", args: []string{static}},
	}
}

// bigC is a program of 2,000 lines.
func bigC() string {
	var b strings.Builder
	b.WriteString("#define M(a, b) ((a) > (b) ? (a) : (b))\ntypedef struct { int n; double d[8]; char *s; } S;\nint printf(const char *, ...);\n")
	for i := range 180 {
		fmt.Fprintf(&b, `static double f%d(S *s, unsigned k)
{
	double x = %d.5;
	for (unsigned i = 0; i < k; i++) {
		s->d[i & 7] += x * i / (k + 1);
		if (s->n %% %d == 0 && s->s)
			x -= s->s[i %% 3] ^ %d;
		switch (i %% 5) { case 0: s->n++; break; case 3: s->n -= 2; default: x *= 1.01; }
	}
	return M(x, s->d[%d]);
}
`, i, i, i%11+2, i*37%251, i%8)
	}
	b.WriteString("int main(void)\n{\n\tS s = {0};\n\tdouble t = 0;\n")
	for i := range 180 {
		fmt.Fprintf(&b, "\tt += f%d(&s, %d);\n", i, i%9+1)
	}
	b.WriteString("\tprintf(\"%g\\n\", t);\n\treturn 0;\n}\n")
	return b.String()
}

// TestMorePrograms records them whole and verifies every interval.
func TestMorePrograms(t *testing.T) {
	if !*programs {
		return
	}
	dir := inputs(t)
	for _, c := range moreCases(t, dir) {
		t.Run(c.name, func(t *testing.T) { c.check(t, dir) })
	}
}
