//go:build linux && amd64

package record

import (
	"testing"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/record/agent"
)

// TestMemoryOfAgent: calls by the agent that change the memory map are in the model and in the log, and what cannot be
// is refused: a program can write to the agent's memory.
func TestMemoryOfAgent(t *testing.T) {
	const page = checkpoint.PageSize
	_, th := newFake(t, Options{})
	sp := th.space()
	sp.brk = fakeData + 0x10*page
	record := func(nr int64, args [6]uint64, ret uint64) *agent.Record {
		r := &agent.Record{Result: int64(ret)}
		r.Regs[0] = uint64(nr)
		for i, reg := range []int{7, 6, 2, 10, 8, 9} {
			r.Regs[reg] = args[i]
		}
		return r
	}
	const free = 0x7f0000000000
	anonymous := [6]uint64{0, 3*page - 5, unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}
	code, fixed := anonymous, anonymous
	code[2] |= unix.PROT_EXEC
	fixed[3] |= unix.MAP_FIXED
	noMem := -int64(unix.ENOMEM)
	for _, c := range []struct {
		name   string
		r      *agent.Record
		ops    int
		refuse bool
	}{
		{"mmap", record(unix.SYS_MMAP, anonymous, free), 1, false},
		{"mmap that failed", record(unix.SYS_MMAP, anonymous, uint64(noMem)), 0, false},
		{"brk, asked for", record(unix.SYS_BRK, [6]uint64{}, sp.brk), 0, false},
		{"brk, grown", record(unix.SYS_BRK, [6]uint64{sp.brk + page}, sp.brk+page), 1, false},
		{"another call", record(unix.SYS_GETPID, [6]uint64{}, 5), 0, false},
		{"mmap of code", record(unix.SYS_MMAP, code, free), 0, true},
		{"mmap where it says", record(unix.SYS_MMAP, fixed, free), 0, true},
		{"mmap in the midst of a page", record(unix.SYS_MMAP, anonymous, free+8), 0, true},
		{"mmap of the kernel's memory", record(unix.SYS_MMAP, anonymous, abi.TaskSize-page), 0, true},
		{"mmap of everything", record(unix.SYS_MMAP, [6]uint64{0, ^uint64(0), 3, anonymous[3]}, free), 0, true},
		{"brk to elsewhere", record(unix.SYS_BRK, [6]uint64{5 * page}, 6*page), 0, true},
	} {
		l := agentCalls{count: 7}
		err := sp.ofAgent(c.r, &l)
		if ops := len(l.maps[7]); (err != nil) != c.refuse || ops != c.ops {
			t.Errorf("%s: %d changes of the map, %v", c.name, ops, err)
		}
	}
	if m := sp.maps.at(free + 2*page); m == nil || m.Start != free || m.End != free+3*page {
		t.Errorf("the model has %+v", m)
	}
}
