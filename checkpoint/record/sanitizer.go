//go:build linux && amd64

package record

import (
	"bytes"
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
	return exportsLeaks(f)
}

// leakNames are functions of a runtime that is linked statically: they are exported, for plug-ins.
var leakNames = []string{"__asan_init", "__lsan_init", "__lsan_do_leak_check"}

// exportsLeaks reports whether an executable defines one of them. The symbols are read only where such a name is among theirs: GHC's
// programs export hundreds of thousands.
func exportsLeaks(f *elf.File) bool {
	if !namesLeaks(f) {
		return false
	}
	syms, err := f.DynamicSymbols()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(syms, func(s elf.Symbol) bool {
		return s.Section != elf.SHN_UNDEF && slices.Contains(leakNames, s.Name)
	})
}

// leakPiece is how many bytes of the names are looked through at once. Two pieces have the length of the longest name in common.
const leakPiece = 1 << 18

// namesLeaks reports whether one of them is among the names of an executable's dynamic symbols.
func namesLeaks(f *elf.File) bool {
	symbols := f.SectionByType(elf.SHT_DYNSYM)
	if symbols == nil || int(symbols.Link) >= len(f.Sections) {
		return false
	}
	names := f.Sections[symbols.Link]
	if names.ReaderAt == nil { // compressed, which ld.so could not read either
		return false
	}
	const common = len("\x00__lsan_do_leak_check\x00")
	b := make([]byte, leakPiece)
	for at := int64(0); ; at += leakPiece - int64(common) {
		n, err := names.ReadAt(b, at)
		for _, name := range leakNames {
			if bytes.Contains(b[:n], []byte("\x00"+name+"\x00")) {
				return true
			}
		}
		if err != nil {
			return false // its end, or nothing that can be read
		}
	}
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
