//go:build linux && amd64

package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// What the agent logs is what is logged without it.

// TestAgentLogs records each guest and each program of `just programs` with the agent and without it: the logs are equal, thread
// by thread. Some programs make other calls each time they run: those of which recordings without the agent
// differ from each other.
func TestAgentLogs(t *testing.T) {
	if !*programs {
		return
	}
	dir := inputs(t)
	t.Setenv("PYTHONHASHSEED", "0")
	type logged struct {
		name string
		run  run
	}
	var list []logged
	for _, c := range guestCases {
		r := run{args: []string{compile(t, c.name, c.flags...)}, noAgent: c.noAgent}
		if c.opt != nil {
			c.opt(&r.opt)
		}
		list = append(list, logged{c.name, r})
	}
	for _, c := range slices.Concat(programCases(dir), moreCases(t, dir), threadPrograms(t, dir), treePrograms(t, dir)) {
		if c.kill == 0 {
			list = append(list, logged{c.name, run{args: installed(t, c.args), dir: dir}})
		}
	}
	for _, c := range list {
		if c.run.noAgent || *underAgent || notAlike[c.name] != "" {
			continue // there is nothing to compare
		}
		// Without address space randomization most of what a program does is the same each time.
		c.run.args = append(installed(t, []string{"setarch", "-R"}), c.run.args...)
		t.Run(c.name, func(t *testing.T) { sameLogs(t, &c.run) })
	}
}

// notAlike are the programs whose calls are others with the agent, and why.
var notAlike = map[string]string{
	"awk":             "it reads /proc/self/maps, which has the agent's memory",
	"gawk":            "likewise",
	"grep":            "likewise",
	"crash python3":   "how many arenas it takes depends on where they lie: it uses what is aligned to 16 KiB",
	"python3 numbers": "likewise",
	"deepcwd":         "its folder is removed meanwhile, sooner or later",
	"filters":         "a thread makes calls until another forbids them",
	"python3 asyncio": "how often it looks at the clock depends on when its timers are due",
	"orphans":         "processes end sooner or later than their parents",
	"bash jobs":       "a child has executed its program when its parent moves it to a process group, or not",
	"make -j2":        "its jobs end sooner or later than it looks",
}

// logTries is how often a program is recorded in each way where its logs differ.
const logTries = 4

// sameLogs wants the logs of a program to be equal with the agent and without it, unless it makes other
// calls each time.
func sameLogs(t *testing.T, r *run) {
	var with, without [][][]made
	record := func(agent bool) [][]made {
		r.opt.Agent, r.opt.AgentAfter = agent, 1
		_, res := r.recorded(t)
		if agent {
			t.Logf("%d of %d calls by the agent", res.Stats.AgentCalls, res.Stats.Calls)
		}
		return logOf(t, res.Path)
	}
	why := ""
	for range logTries {
		with, without = append(with, record(true)), append(without, record(false))
		for _, log := range without {
			if why = logsDiffer(with[len(with)-1], log); why == "" {
				return
			}
		}
	}
	for i := 1; i < len(without); i++ {
		if logsDiffer(without[0], without[i]) == "" {
			t.Fatalf("%d recordings with the agent are none of %d without it, of which two are equal: %s", len(with), len(without), why)
		}
	}
	t.Logf("it makes other calls each time: %s", logsDiffer(without[0], without[1]))
}

// made is a system call that was made to its end.
type made struct {
	nr     int64
	args   [6]uint64
	result int64
	writes []checkpoint.MemWrite
	maps   int
}

// logOf returns the calls of a recording by thread, in the order in which threads come: without those that were
// interrupted to be made again, and up to the one with which a thread asks for signals, as how many it makes from then on is chance.
func logOf(t *testing.T, path string) (out [][]made) {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	type thread struct {
		at      int // in out
		call    made
		signals bool
	}
	threads := map[checkpoint.TID]*thread{}
	for _, info := range rec.Intervals() {
		iv, err := rec.Interval(info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range iv.Events {
			th := threads[e.TID]
			if th == nil {
				th = &thread{at: len(out)}
				threads[e.TID] = th
				out = append(out, nil)
			}
			if th.signals {
				continue
			}
			switch e.Kind {
			case checkpoint.EventEnter:
				th.signals = e.NR == abi.SYS_SETITIMER
				th.call = made{nr: e.NR, args: e.Args}
			case checkpoint.EventExit:
				if !e.Restart {
					th.call.result, th.call.writes, th.call.maps = e.Result, slices.Clone(e.Writes), len(e.Maps)
					out[th.at] = append(out[th.at], th.call)
				}
			default:
			}
		}
	}
	return out
}

// isAddress reports whether a number looks like an address of user memory.
func isAddress(v uint64) bool { return v >= 1<<16 && v < abi.TaskSize }

// equalLogs compares two logs of a program, thread by thread.
func equalLogs(t *testing.T, agent, stops [][]made) {
	t.Helper()
	if why := logsDiffer(agent, stops); why != "" {
		t.Errorf("the logs by the agent and without it: %s", why)
	}
}

// logsDiffer says where two logs differ, "" where they do not.
func logsDiffer(a, b [][]made) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d threads and %d", len(a), len(b))
	}
	for i := range a {
		x, y := joinListings(a[i]), joinListings(b[i])
		for k := range min(len(x), len(y)) {
			if why := differs(&x[k], &y[k]); why != "" {
				return fmt.Sprintf("thread %d, call %d, %s and %s: %s\n%+v\n%+v", i, k, abi.Name(x[k].nr), abi.Name(y[k].nr), why, x[k], y[k])
			}
		}
		if len(x) != len(y) {
			return fmt.Sprintf("thread %d: %d calls and %d", i, len(x), len(y))
		}
	}
	return ""
}

// joinListings makes one call of the getdents64 calls that list one folder. The kernel ends such a call
// early where a signal is pending, as it is when the recorder ends an interval by force: how many calls a listing
// takes is chance, what they return together is not.
func joinListings(calls []made) (out []made) {
	open := map[uint64]int{} // index in out of a listing that has not reached its end, by descriptor
	for _, c := range calls {
		fd := c.args[0]
		switch at, ok := open[fd]; {
		case c.nr != abi.SYS_GETDENTS64:
			out = append(out, c)
		case c.result <= 0:
			delete(open, fd)
			out = append(out, c)
		case ok && len(out[at].writes) == 1 && len(c.writes) == 1:
			out[at].result += c.result
			w := &out[at].writes[0]
			w.Data = slices.Concat(w.Data, c.writes[0].Data)
		default:
			open[fd] = len(out)
			out = append(out, c)
		}
	}
	return out
}

// TestJoinListings: a listing in two calls equals the one in one call, and only that.
func TestJoinListings(t *testing.T) {
	list := func(fd uint64, names string) made {
		c := made{nr: abi.SYS_GETDENTS64, args: [6]uint64{fd}, result: int64(len(names))}
		if names != "" {
			c.writes = []checkpoint.MemWrite{{Data: []byte(names)}}
		}
		return c
	}
	stat := made{nr: abi.SYS_NEWFSTATAT}
	short := joinListings([]made{list(3, "a"), stat, list(3, "bc"), list(4, "x"), list(3, ""), list(4, ""), list(3, "d")})
	whole := []made{list(3, "abc"), stat, list(4, "x"), list(3, ""), list(4, ""), list(3, "d")}
	equalLogs(t, [][]made{short}, [][]made{whole})
	if len(short) != len(whole) {
		t.Errorf("%d calls, not %d", len(short), len(whole))
	}
}

// timed are the calls that return or write times, or random bytes.
var timed = map[int64]bool{
	abi.SYS_CLOCK_GETTIME: true, abi.SYS_GETTIMEOFDAY: true, abi.SYS_GETRANDOM: true, abi.SYS_GETRUSAGE: true, abi.SYS_TIMES: true,
	abi.SYS_SYSINFO: true, abi.SYS_TIME: true, abi.SYS_STATFS: true, abi.SYS_FSTATFS: true,
}

// counted are those that return numbers that the kernel counts up.
var counted = map[int64]bool{abi.SYS_SEMGET: true, abi.SYS_SHMGET: true, abi.SYS_MSGGET: true}

// writesChance are those that write what is another each time: a file's number and times, files of /proc, a CPU, a process number in siginfo_t.
var writesChance = map[int64]bool{
	abi.SYS_FSTAT: true, abi.SYS_NEWFSTATAT: true, abi.SYS_STATX: true, abi.SYS_READ: true, abi.SYS_GETCPU: true, abi.SYS_WAITID: true,
}

// differs says in what two calls differ, apart from addresses, process numbers and chance.
func differs(a, b *made) string {
	if a.nr != b.nr || len(a.writes) != len(b.writes) || a.maps != b.maps {
		return "number, count of writes or of mappings"
	}
	row, _ := abi.Lookup(a.nr)
	for i := range row.Args {
		if x, y := a.args[i], b.args[i]; x != y && row.Args[i].Kind != abi.KindPID && !(isAddress(x) && isAddress(y)) {
			return fmt.Sprintf("argument %d: %#x and %#x", i, x, y)
		}
	}
	// rt_sigreturn(2) returns what the program had.
	process := row.Ret == abi.KindPID || a.nr == abi.SYS_SET_TID_ADDRESS || a.nr == abi.SYS_RT_SIGRETURN
	if x, y := a.result, b.result; x != y && !process && !timed[a.nr] && !counted[a.nr] && !(isAddress(uint64(x)) && isAddress(uint64(y))) {
		return fmt.Sprintf("result %d and %d", x, y)
	}
	for i := range a.writes {
		if a.result < 0 || process {
			continue // what stood there before, or a number
		}
		if x, y := a.writes[i].Data, b.writes[i].Data; len(x) != len(y) || !timed[a.nr] && !writesChance[a.nr] && !sameBytes(a.nr, x, y) {
			return fmt.Sprintf("write %d: %d bytes and %d", i, len(x), len(y))
		}
	}
	return ""
}

// sameBytes reports whether a call has written the same twice, but for addresses in the action of a signal, and for what stood
// behind the names of a listing before.
func sameBytes(nr int64, x, y []byte) bool {
	switch nr {
	case abi.SYS_RT_SIGACTION:
		for len(x) >= 8 && len(y) >= 8 {
			if v, w := binary.LittleEndian.Uint64(x), binary.LittleEndian.Uint64(y); v != w && !(isAddress(v) && isAddress(w)) {
				return false
			}
			x, y = x[8:], y[8:]
		}
	case abi.SYS_GETDENTS64:
		x, y = withoutPadding(x), withoutPadding(y)
	}
	return bytes.Equal(x, y)
}

// withoutPadding returns a listing with zeros behind each name: the kernel writes nothing there (man 2 getdents64).
func withoutPadding(list []byte) []byte {
	list = bytes.Clone(list)
	const length, name = 16, 19 // offsets of d_reclen and d_name
	for b := list; len(b) > name; {
		n := int(binary.LittleEndian.Uint16(b[length:]))
		if n <= name || n > len(b) {
			break
		}
		_, behind, _ := bytes.Cut(b[name:n], []byte{0})
		clear(behind)
		b = b[n:]
	}
	return list
}
