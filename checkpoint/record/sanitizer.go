//go:build linux && amd64

package record

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// LeakSanitizer attaches to its own program by ptrace when that exits, which fails
// under a tracer, and then the program fails too. It is part of AddressSanitizer.
// A program that has it is started with an option that leaves it out; nothing
// else of its options changes. The runtimes read /proc/self/environ, so that this
// cannot be added behind execve as the limits are: a program that another
// one executes is not helped, but the recording says so.

// lsanOptions is read by LeakSanitizer alone and in AddressSanitizer, after
// ASAN_OPTIONS; the last of a key's values counts (compiler-rt,
// asan_flags.cpp, lsan.cpp).
const (
	lsanOptions = "LSAN_OPTIONS"
	noLeaks     = "detect_leaks=0"
)

// startEnv is the environment that the program at path is started with.
func (s *session) startEnv(path string) []string {
	if !strings.HasPrefix(path, "/") && s.opt.Dir != "" {
		path = s.opt.Dir + "/" + path
	}
	if !hasLeakSanitizer(path) {
		return s.opt.Env
	}
	i, add := withoutLeaks(s.opt.Env)
	if add == "" {
		return s.opt.Env
	}
	s.noteOnce("LeakSanitizer does not work under a tracer: " + noLeaks + " was added to " + lsanOptions)
	env := slices.Clone(s.opt.Env)
	if i < 0 {
		return append(env, add)
	}
	env[i] = add
	return env
}

// noteSanitizer looks, at an execve, for a program that LeakSanitizer will make
// fail.
func (p *process) noteSanitizer(env []string) {
	p.session.result.Sanitizer = hasLeakSanitizer(fmt.Sprintf("/proc/%d/exe", p.pid))
	_, add := withoutLeaks(env)
	p.session.result.LeakCheck = p.session.result.Sanitizer && add != ""
	if p.session.result.LeakCheck {
		p.session.noteOnce("LeakSanitizer does not work under a tracer and fails at exit: set " + lsanOptions + "=" + noLeaks)
	}
}

// hasLeakSanitizer reports whether the executable at path was linked with
// LeakSanitizer or AddressSanitizer.
func hasLeakSanitizer(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	libs, err := f.ImportedLibraries()
	if err != nil {
		return false
	}
	for _, l := range libs {
		for _, part := range []string{"libasan.so", "liblsan.so", "libclang_rt.asan", "libclang_rt.lsan"} {
			if strings.HasPrefix(l, part) {
				return true
			}
		}
	}
	// A runtime that is linked statically is exported, for plug-ins.
	syms, err := f.DynamicSymbols()
	if err != nil {
		return false
	}
	for i := range syms {
		if n := syms[i].Name; syms[i].Section != elf.SHN_UNDEF && (n == "__asan_init" || n == "__lsan_init" || n == "__lsan_do_leak_check") {
			return true
		}
	}
	return false
}

// withoutLeaks returns the variable that leaves leak detection out, and the index
// of the one that it replaces, -1 when there is none; "" when there is nothing to do.
func withoutLeaks(given []string) (replaced int, add string) {
	for i, e := range given {
		if v, ok := strings.CutPrefix(e, lsanOptions+"="); ok {
			if v == noLeaks || strings.HasSuffix(v, ":"+noLeaks) {
				return -1, ""
			}
			return i, e + ":" + noLeaks
		}
	}
	return -1, lsanOptions + "=" + noLeaks
}
