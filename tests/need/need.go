// Package need is where a test says what it needs of the machine, and the only
// place in the repository where one is skipped.
//
// A test that is skipped where something is missing looks like one that passes.
// So every skip is the line "needs X", X being the thing that is missing, and
// tests/run.sh ends with the list of them. There are two kinds of things:
//
//   - what can be had: programs, files of a package, ptrace. Where the environment
//     variable VPLAY_REQUIRE_ALL is set, as tests/run.sh does on x86-64 Linux
//     after installing the packages, the test fails without it.
//   - what the machine is: its system, its processor, its privileges. A test is
//     skipped without it, always.
//
// Every test of the repository may import this package; it imports none of ours.
package need

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// requireAll is the variable that makes a missing thing a failure.
const requireAll = "VPLAY_REQUIRE_ALL"

//go:embed programs.txt
var programList string

// Listed says whether programs.txt names a program, so that tests/run.sh or a
// recipe of the Justfile installs it.
var Listed = sync.OnceValue(func() map[string]bool {
	list := map[string]bool{}
	for line := range strings.Lines(programList) {
		if f := strings.Fields(line); len(f) == 3 && f[0] != "#" {
			list[f[0]] = true
		}
	}
	return list
})

// Program wants programs on PATH and returns the path of the first. A test that
// names a program which programs.txt has not fails: on a machine without that
// program nobody would install it. A name with a slash in it is a file of the test's.
func Program(t testing.TB, names ...string) (path string) {
	t.Helper()
	for i, name := range names {
		if filepath.Base(name) == name && !Listed()[name] {
			t.Fatalf("tests/need/programs.txt does not list %s", name)
		}
		p, err := exec.LookPath(name)
		Installed(t, name, err == nil)
		if i == 0 {
			path = p
		}
	}
	return path
}

// File wants one of several files and returns the first that is there.
func File(t testing.TB, paths ...string) string {
	t.Helper()
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	Installed(t, strings.Join(paths, " or "), false)
	return ""
}

// Python wants python3 and returns the path of the interpreter itself. The
// python3 on PATH may be a shell script that looks for the interpreter, as pyenv's
// shims are: under ptrace one would trace the shell. The interpreter knows where
// it is.
func Python(t testing.TB) string {
	t.Helper()
	path, err := python()
	Installed(t, "python3", err == nil)
	return path
}

var python = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output()
	if err == nil && len(out) == 0 {
		err = errors.New("python3 does not know where it is")
	}
	return string(out), err
})

// Ptrace wants a kernel that lets a process trace its child. Some containers
// refuse it, which whoever starts them can change.
func Ptrace(t testing.TB) {
	t.Helper()
	LinuxAMD64(t)
	Installed(t, "ptrace", canTrace())
}

// Recorder wants a machine on which vplayd record works.
func Recorder(t testing.TB) {
	t.Helper()
	Ptrace(t)
}

// LinuxAMD64 wants the system and the processor whose programs are recorded.
func LinuxAMD64(t testing.TB) {
	t.Helper()
	Machine(t, "linux/amd64", runtime.GOOS == "linux" && runtime.GOARCH == "amd64")
}

// CPU wants features of the processor, by their names in the line flags of
// /proc/cpuinfo (linux arch/x86/include/asm/cpufeatures.h).
func CPU(t testing.TB, flags ...string) {
	t.Helper()
	LinuxAMD64(t)
	for _, f := range flags {
		Machine(t, "a CPU with "+f, slices.Contains(cpuFlags(), f))
	}
}

var cpuFlags = sync.OnceValue(func() []string {
	b, _ := os.ReadFile("/proc/cpuinfo") // no file, no features
	return parseFlags(string(b))
})

// CPUName describes the processor as /proc/cpuinfo does: its name, vendor, family
// and model.
func CPUName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "an unknown CPU, " + runtime.GOARCH
	}
	return parseName(string(b))
}

// parseName describes the first processor in /proc/cpuinfo.
func parseName(cpuinfo string) string {
	fields := map[string]string{}
	for line := range strings.Lines(cpuinfo) {
		k, v, _ := strings.Cut(line, ":")
		if k = strings.TrimSpace(k); k == "" {
			break
		}
		fields[k] = strings.TrimSpace(v)
	}
	return fmt.Sprintf("%s (%s, family %s, model %s)", fields["model name"], fields["vendor_id"], fields["cpu family"], fields["model"])
}

// parseFlags returns the features of the first processor in /proc/cpuinfo.
func parseFlags(cpuinfo string) []string {
	for line := range strings.Lines(cpuinfo) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "flags" {
			return strings.Fields(v)
		}
	}
	return nil
}

// Installed wants a thing that can be had by installing or allowing it; has says
// whether it is there.
func Installed(t testing.TB, what string, has bool) {
	t.Helper()
	if !has && os.Getenv(requireAll) != "" {
		t.Fatalf("needs %s, and %s is set", what, requireAll)
	}
	Machine(t, what, has)
}

// Machine wants a thing that the machine has or has not; has says which.
func Machine(t testing.TB, what string, has bool) {
	t.Helper()
	if !has {
		t.Skip("needs " + what)
	}
}
