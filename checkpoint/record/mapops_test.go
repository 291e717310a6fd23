//go:build linux && amd64

package record

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// opsText writes changes of the map in pages, as START-END of what happens there.
func opsText(ops []checkpoint.MapOp) string {
	var out []string
	pages := func(start, end uint64) string {
		if (start|end)&pageMask != 0 {
			return fmt.Sprintf("%#x-%#x", start, end)
		}
		return fmt.Sprintf("%d-%d", start/checkpoint.PageSize, end/checkpoint.PageSize)
	}
	for _, op := range ops {
		switch at := pages(op.Start, op.End); op.Kind {
		case checkpoint.MapOpMap:
			out = append(out, fmt.Sprintf("map %s prot %d flags %d object %d %s", at, op.Map.Prot, op.Map.Flags, op.Map.Object, op.Map.Name))
		case checkpoint.MapOpUnmap:
			out = append(out, "unmap "+at)
		case checkpoint.MapOpProtect:
			out = append(out, fmt.Sprintf("protect %s %d", at, op.Prot))
		case checkpoint.MapOpMove:
			out = append(out, "move "+at+" to "+pages(op.New, op.NewEnd))
		case checkpoint.MapOpDrop:
			out = append(out, "drop "+at)
		}
	}
	return strings.Join(out, ", ")
}

// TestMapOps: what calls did to the map, from their arguments and results. Memory is mapped at
// the pages 16 to 20 and 22 to 24. A segment is attached at 32, of which two pages and the fifth
// are left, and once more at 40. The break is within page 48.
func TestMapOps(t *testing.T) {
	const page = checkpoint.PageSize
	at := func(start, end uint64, object uint32, offset uint64) mapping {
		return mapping{Mapping: checkpoint.Mapping{Start: start * page, End: end * page, Prot: 3, Object: object, Offset: offset * page}}
	}
	none := -int64(unix.ENOMEM)
	for _, c := range []struct {
		what string
		nr   int64
		args []uint64
		ret  int64
		want string
	}{
		{"private memory", unix.SYS_MMAP, []uint64{0, 2*page + 1, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, 64 * page, "map 64-67 prot 3 flags 0 object 0 "},
		{"memory that grows down", unix.SYS_MMAP, []uint64{0, page, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_GROWSDOWN}, 64 * page, "map 64-65 prot 3 flags 2 object 0 "},
		{"no memory", unix.SYS_MMAP, []uint64{0, page, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, none, ""},
		{"a length that is no number of pages", unix.SYS_MUNMAP, []uint64{16 * page, page + 1}, 0, "unmap 16-18"},
		{"a failed munmap", unix.SYS_MUNMAP, []uint64{16*page + 1, page}, -int64(unix.EINVAL), ""},
		{"mprotect, with bits that are no protection", unix.SYS_MPROTECT, []uint64{16 * page, page, unix.PROT_GROWSDOWN | 8 | 1}, 0, "protect 16-17 1"},
		{"mprotect of nothing", unix.SYS_MPROTECT, []uint64{16 * page, 0, 1}, 0, ""},
		{"a key with the protection", unix.SYS_PKEY_MPROTECT, []uint64{16 * page, page, 5, 7}, 0, "protect 16-17 5"},
		{"a question for the break", unix.SYS_BRK, []uint64{0}, 48*page + 8, ""},
		{"a break on the same page", unix.SYS_BRK, []uint64{49 * page}, 49 * page, ""},
		{"a break on the next page", unix.SYS_BRK, []uint64{49*page + 1}, 49*page + 1, "map 49-50 prot 3 flags 8 object 0 [heap]"},
		{"a lower break", unix.SYS_BRK, []uint64{47*page + 1}, 47*page + 1, "unmap 48-49"},
		{"growth in place", unix.SYS_MREMAP, []uint64{18 * page, 2 * page, 4 * page, 0}, 18 * page, "move 18-20 to 18-22"},
		{"growth elsewhere", unix.SYS_MREMAP, []uint64{18 * page, 2 * page, 4 * page, unix.MREMAP_MAYMOVE}, 64 * page, "move 18-20 to 64-68"},
		{"less in place", unix.SYS_MREMAP, []uint64{16 * page, 4 * page, page, 0}, 16 * page, "unmap 17-20"},
		{"less elsewhere", unix.SYS_MREMAP, []uint64{16 * page, 4 * page, 2 * page, unix.MREMAP_MAYMOVE | unix.MREMAP_FIXED, 64 * page}, 64 * page, "unmap 18-20, move 16-18 to 64-66"},
		{"a range with a hole, downwards", unix.SYS_MREMAP, []uint64{18 * page, 6 * page, 6 * page, unix.MREMAP_MAYMOVE | unix.MREMAP_FIXED, 2 * page}, 2 * page, "move 18-20 to 2-4, move 22-24 to 6-8"},
		{"what stays mapped", unix.SYS_MREMAP, []uint64{18 * page, 2 * page, 2 * page, unix.MREMAP_MAYMOVE | mremapDontUnmap}, 64 * page, "move 18-20 to 64-66, map 18-20 prot 3 flags 0 object 0 "},
		{"another view of shared memory", unix.SYS_MREMAP, []uint64{32 * page, 0, 2 * page, unix.MREMAP_MAYMOVE}, 64 * page, ""},
		{"pages given up", unix.SYS_MADVISE, []uint64{16 * page, page + 1, madvDontNeed}, 0, "drop 16-18"},
		{"advice that changes nothing", unix.SYS_MADVISE, []uint64{16 * page, page, unix.MADV_SEQUENTIAL}, 0, ""},
		{"a segment in two parts", unix.SYS_SHMDT, []uint64{32 * page}, 0, "unmap 32-34, unmap 36-37"},
		{"a failed shmdt", unix.SYS_SHMDT, []uint64{33 * page}, -int64(unix.EINVAL), ""},
	} {
		sp := newSpace(&group{session: newSession(t.Context(), Options{})}, 1)
		sp.maps = newMapModel([]mapping{at(16, 20, 0, 0), at(22, 24, 0, 0), at(32, 34, 1, 0), at(36, 37, 1, 4), at(40, 41, 1, 0)})
		sp.brk = 48*page + 8
		cl := call{nr: c.nr}
		copy(cl.args[:], c.args)
		ops, err := sp.mapOps(&cl, c.ret)
		if got := opsText(ops); err != nil || got != c.want {
			t.Errorf("%s: %q (%v), want %q", c.what, got, err, c.want)
		}
	}

	// With READ_IMPLIES_EXEC the heap is executed, too, and the kernel's list is not read for it: a program that asks for
	// memory page by page (GCL, and so maxima, 25,000 times) would wait a minute for that.
	sp := newSpace(&group{session: newSession(t.Context(), Options{})}, 1)
	sp.brk, sp.readExec = 48*page, true
	cl := call{nr: unix.SYS_BRK}
	ops, err := sp.mapOps(&cl, 49*page)
	if got, want := opsText(ops), "map 48-49 prot 7 flags 8 object 0 [heap]"; err != nil || got != want || sp.asksKernel(&cl, 49*page) {
		t.Errorf("a break where reading implies executing: %q (%v), want %q, and no look at the kernel's list", got, err, want)
	}
}
