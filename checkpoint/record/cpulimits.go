//go:build linux && amd64

package record

import (
	"debug/buildinfo"
	"fmt"
	"go/version"
	"os"
	"path/filepath"
	"strings"
)

// Where CPUID cannot be made to fault, libraries and language runtimes are told
// to use nothing that replay does not know: most by a variable of the environment,
// Java by an argument, for its variables make it print that they are set. env.go puts
// both on a new program's stack.

// limit is a variable that says what to leave alone.
type limit struct {
	name string
	// value returns the variable's value where the program has been given old, "" for none; it
	// returns old where that will do.
	value func(old string) string
	// needs reports whether the executable at path needs it; nil where each may.
	needs func(path string) bool
	// avx512 says that it does nothing on a CPU without AVX-512.
	avx512 bool
}

const (
	tunables   = "GLIBC_TUNABLES"
	opensslCap = "OPENSSL_ia32cap"
	goDebug    = "GODEBUG"
)

// OpenSSL asks the CPU itself, and may be told by OPENSSL_ia32cap(3) what to
// leave alone: of leaf 7 EBX here AVX512F, DQ, IFMA, CD, BW and VL.
const opensslMask = ":~0xd0230000"

// The names of Go's internal/cpu that its garbage collector and runtime need for AVX-512.
const goCaps = "cpu.avx512f=off,cpu.avx512vl=off"

// limitList is all variables.
var limitList = []limit{
	{name: opensslCap, value: unlessGiven(opensslMask)},
	{name: tunables, value: func(old string) string {
		return mergeTunables(old, "glibc.cpu.hwcaps=-"+strings.Join(hwcaps, ",-"))
	}},
	{name: goDebug, value: appended(goCaps), needs: isNewGo, avx512: true},
	// simdutf, which is part of Node.js: the code for AVX2.
	{name: "SIMDUTF_FORCE_IMPLEMENTATION", value: unlessGiven("haswell"), avx512: true},
}

// unlessGiven is a variable whose value the program's own stands for.
func unlessGiven(mine string) func(string) string {
	return func(old string) string {
		if old != "" {
			return old
		}
		return mine
	}
}

// appended is a variable whose value is a list with commas, of which the last counts.
func appended(mine string) func(string) string {
	return func(old string) string {
		switch {
		case old == "":
			return mine
		case strings.Contains(old, mine):
			return old
		}
		return old + "," + mine
	}
}

// mergeTunables joins two values of GLIBC_TUNABLES; a later hwcaps list would
// replace an earlier one, so ours is appended to the program's own. One that has
// ours, as a program inherits it, stays.
func mergeTunables(old, mine string) string {
	if old == "" {
		return mine
	}
	name, list, _ := strings.Cut(mine, "=")
	if strings.Contains(old, list) {
		return old
	}
	parts := strings.Split(old, ":")
	for i, p := range parts {
		if n, v, ok := strings.Cut(p, "="); ok && n == name {
			parts[i] = n + "=" + v + "," + list
			return strings.Join(parts, ":")
		}
	}
	return old + ":" + mine
}

// limits returns the change to an environment that the executable at path needs, on a CPU that
// has AVX-512 or has it not. There is nothing to change in one that has it.
func limits(given []string, path string, avx512 bool) stackChange {
	c := stackChange{gone: map[int]bool{}}
	for _, l := range limitList {
		if l.avx512 && !avx512 || l.needs != nil && !l.needs(path) {
			continue
		}
		at, old := -1, ""
		for i, e := range given {
			if v, ok := strings.CutPrefix(e, l.name+"="); ok && at < 0 {
				at, old = i, v
			}
		}
		v := l.value(old)
		if at >= 0 && v == old {
			continue
		}
		c.gone[at] = true
		c.add = append(c.add, l.name+"="+v)
	}
	return c
}

// goWithAVX512 is the first version of Go whose runtime uses AVX-512. Versions before 1.21 print
// that they do not know what goCaps names.
const goWithAVX512 = "go1.25"

// isNewGo reports whether the executable at path is a Go program whose runtime uses AVX-512.
func isNewGo(path string) bool {
	b, err := buildinfo.ReadFile(path)
	return err == nil && version.Compare(strings.TrimPrefix(b.GoVersion, "devel "), goWithAVX512) >= 0
}

// javaCap is the option of Java's virtual machine that keeps it to AVX2.
const javaCap = "-XX:UseAVX=2"

// javaLimit returns the argument that limits the executable at path, where it is a launcher of
// the JDK: java, or, where the virtual machine's options have a prefix, another one like javac.
// args are those that it has: it may have been executed by itself.
func javaLimit(path string, args []string) string {
	link, err := os.Readlink(path)
	if err != nil {
		link = path
	}
	bin := filepath.Dir(filepath.Dir(link))
	add := javaCap
	if filepath.Base(link) != "java" {
		add = "-J" + javaCap
	}
	if len(args) == 0 || len(args) > 1 && args[1] == add {
		return ""
	}
	for _, lib := range []string{"lib/libjli.so", "lib/jli/libjli.so", "lib/amd64/jli/libjli.so"} { // from Java 11 on, of 9, of 8
		if _, err := os.Stat(filepath.Join(rootOf(path), bin, lib)); err == nil {
			return add
		}
	}
	return ""
}

// rootOf returns the root folder of the process of which path is /proc/PID/exe.
func rootOf(path string) string {
	if strings.HasPrefix(path, "/proc/") {
		return filepath.Join(filepath.Dir(path), "root")
	}
	return "/"
}

// limitsOf is limits, and the argument, for a program that has been executed.
func (p *process) limitsOf(args, env []string) stackChange {
	path := fmt.Sprintf("/proc/%d/exe", p.pid)
	avx512 := hasCPUFlag("avx512f")
	c := limits(env, path, avx512)
	if avx512 {
		c.arg = javaLimit(path, args)
	}
	return c
}
