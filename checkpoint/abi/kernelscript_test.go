//go:build linux && amd64

package abi

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"vplay/tests/need"
)

// The fuzzer's calls as a script for a program that makes them by itself
// (tests/guest/record/script.c), so that they can be recorded. tests/record has
// this test write one.

var (
	scriptPath  = flag.String("script", "", "the file that TestWriteScript writes")
	scriptCalls = flag.Int("scriptcalls", 1500, "system calls in it")
)

// A script is made of 64-bit words, little endian: records that begin with one of
// these. All addresses are the fuzzer's.
const (
	scriptEnd  = iota
	scriptPut  // address, bytes, the bytes in whole words
	scriptCall // number, six arguments
	scriptFill // address, seed: a block of noise
)

type script struct{ words []uint64 }

// add appends a record. A nil script takes none.
func (s *script) add(kind uint64, words ...uint64) {
	if s != nil {
		s.words = append(append(s.words, kind), words...)
	}
}

// words returns bytes as whole words.
func words(b []byte) []uint64 {
	b = append(slices.Clone(b), make([]byte, 7)...)
	out := make([]uint64, len(b)/8)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out
}

// notInScript are rows that a program cannot make for itself and go on, or whose
// results others have their part in. It has neither tracer nor init process.
var notInScript = []string{
	"alarm", "arch_prctl", "fork", "vfork", "clone", "clone3", "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
	"pidfd_send_signal", "pause", "ptrace", "rt_sigaction", "rt_sigprocmask", "rt_sigsuspend", "rt_sigtimedwait", "seccomp", "setitimer",
	"sigaltstack", "timer_create", "timer_settime", "process_mrelease", "prctl", "rt_sigpending", "timer_gettime",
}

// memoryCalls are made with arguments in a range of their own.
var memoryCalls = []int64{SYS_MMAP, SYS_MUNMAP, SYS_MPROTECT, SYS_MADVISE, SYS_MREMAP, SYS_REMAP_FILE_PAGES, SYS_SHMAT, SYS_MSYNC, SYS_MLOCK, SYS_MUNLOCK, SYS_BRK}

// The range of the memory calls; script.c looks at its pages after each.
const (
	mapBase  = 0x12_0000_0000
	mapPages = 32
)

// TestWriteScript writes a script, when it is told where.
func TestWriteScript(t *testing.T) {
	if *scriptPath == "" {
		return
	}
	need.Ptrace(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer pin(t)()
	log := &script{}
	w := newWorld(t, log)
	defer w.kill()
	w.must(SYS_MMAP, mapBase, mapPages*PageSize, 3, MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED, ^uint64(0), 0)
	g := newGen(rand.New(rand.NewPCG(*fuzzSeed, 0)), w, w.child)
	var rows []*Syscall
	for _, s := range Table() {
		if whyNot(s) == "" && !slices.Contains(notInScript, s.Name) {
			rows = append(rows, s)
		}
	}
	for range *scriptCalls {
		nr := memoryCalls[g.r.IntN(len(memoryCalls))]
		var args [6]uint64
		if g.chance(30) {
			args = g.memory(nr)
		} else {
			s := rows[g.r.IntN(len(rows))]
			nr, args = s.NR, g.args(s)
		}
		if effect, _ := EffectOf(nr, args); effect == EffectRefuse {
			continue
		}
		if _, err := w.call(nr, args); err != nil {
			break
		}
	}
	log.add(scriptEnd)
	out := make([]byte, 8*len(log.words))
	for i, v := range log.words {
		binary.LittleEndian.PutUint64(out[8*i:], v)
	}
	if err := os.WriteFile(*scriptPath, out, 0o644); err != nil {
		t.Fatal(err)
	}
}

// memory returns the arguments of a memory call. Some run over the range's end,
// where nothing is mapped.
func (g *gen) memory(nr int64) [6]uint64 {
	page := func() uint64 { return mapBase + uint64(g.r.IntN(mapPages))*PageSize }
	length := func() uint64 { return uint64(g.r.IntN(9)) * PageSize }
	prot := pick[uint64](g, 0, 1, 3, 3, 3, 5)
	fd := g.w.byKind[pick(g, "file", "memfd", "memfd", "read-only", "pipe", "udp", "directory")]
	switch nr {
	case SYS_MMAP:
		if g.chance(40) {
			return argv(page(), length(), prot, pick[uint64](g, 1, 2)|MAP_ANONYMOUS|MAP_FIXED, ^uint64(0), 0)
		}
		return argv(page(), length(), prot, pick[uint64](g, 1, 2)|MAP_FIXED, fd, uint64(g.r.IntN(3))*PageSize)
	case SYS_MUNMAP, SYS_MLOCK, SYS_MUNLOCK:
		return argv(page(), length())
	case SYS_MPROTECT:
		return argv(page(), length(), prot)
	case SYS_MADVISE: // Pages freed by MADV_FREE may stay for a while: that is no fixed result.
		return argv(page(), length(), pick[uint64](g, MADV_DONTNEED, MADV_DONTNEED, MADV_DONTNEED, MADV_REMOVE, MADV_DONTNEED_LOCKED, MADV_WILLNEED,
			MADV_DONTFORK, MADV_DOFORK, MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_COLD, MADV_PAGEOUT, 77))
	case SYS_MREMAP:
		old := length()
		return argv(page(), old, pick(g, old, old, length()), pick[uint64](g, 3, 3, 3, 0, 7), page(), 0)
	case SYS_REMAP_FILE_PAGES:
		return argv(page(), length(), 0, uint64(g.r.IntN(3)), 0)
	case SYS_SHMAT:
		return argv(g.w.shm, page(), pick[uint64](g, 0, 0o40000, 0o50000))
	case SYS_BRK:
		return argv(0)
	}
	return argv(page(), length(), pick[uint64](g, 1, 2, 4))
}
