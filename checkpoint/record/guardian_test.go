//go:build linux && amd64

package record

import (
	"encoding/binary"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// TestWardIsLeft: a process that the guardian has stopped, and may not trace, goes on.
func TestWardIsLeft(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}()
	pid := cmd.Process.Pid
	await := func(stopped bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); (stateOf(pid) == 'T') != stopped; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("its state is %c", stateOf(pid))
			}
		}
	}
	if err := unix.Tgkill(pid, pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(true)
	w := ward{tid: pid, pid: pid, undo: &undo{}}
	w.leave()
	await(false)
}

// TestStopIsPrograms: a SIGSTOP that the recorder, the guardian or its herald has sent is not sent to the program again, which
// would stop for ever. Any other is.
func TestStopIsPrograms(t *testing.T) {
	const recorder, herald, other = 1 << 23, 1<<23 + 1, 1<<23 + 2 // above all that a process has
	g := guardian{journal: &journal{}}
	g.journal.recorder.Store(recorder)
	g.journal.herald.Store(herald)
	for _, c := range []struct {
		from int
		code int32
		want bool
	}{
		{recorder, siTkill, false},
		{unix.Getpid(), siTkill, false},
		{herald, siTkill, false},
		{0, siTkill, false}, // from another PID namespace
		{other, siTkill, true},
		{other, 0, true}, // by kill(2)
		{recorder, 0, true},
	} {
		var si ptrace.Siginfo
		binary.LittleEndian.PutUint32(si[0:], uint32(unix.SIGSTOP))
		binary.LittleEndian.PutUint32(si[8:], uint32(c.code))
		binary.LittleEndian.PutUint32(si[16:], uint32(c.from))
		if got := g.isPrograms(int(unix.SIGSTOP), &si); got != c.want {
			t.Errorf("a SIGSTOP of process %d with code %d is the program's: %v", c.from, c.code, got)
		}
	}
}

// TestIsOther: a process that has executed another program since the journal was written has not the recorder's code where that
// says. Its registers are not to be those of the old program.
func TestIsOther(t *testing.T) {
	const site = 0x7000 + siteInPage
	withCode := make([]byte, checkpoint.PageSize)
	copy(withCode[siteInPage:], callSite)
	for _, c := range []struct {
		name string
		site uint64
		page []byte
		want bool
	}{
		{"the same", site, withCode, false},
		{"another, at the same address", site, make([]byte, checkpoint.PageSize), true},
		{"another, elsewhere", site, nil, true},
		{"not known", 0, nil, false},
	} {
		f := &fakeSource{t: t, pages: map[uint64][]byte{}}
		if c.page != nil {
			f.pages[0x7000] = c.page
		}
		u := undo{site: c.site}
		if got := u.isOther((*fakeMemory)(f)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// siteInPage is where callSite is in its page.
const siteInPage = checkpoint.PageSize - vdsoStubSize

// TestHasMade: a thread that was lent before its call, and has made that since, is not put before it again: it would make
// a second child.
func TestHasMade(t *testing.T) {
	const before = 0x1000
	u := undo{regs: ptrace.Regs{Rip: before, Rax: unix.SYS_CLONE, Orig_rax: ^uint64(0)}}
	for _, c := range []struct {
		name string
		regs ptrace.Regs
		want bool
	}{
		{"behind it", ptrace.Regs{Rip: before + syscallInsnLen, Rax: 99, Orig_rax: unix.SYS_CLONE}, true},
		{"before it", u.regs, false},
		{"kept from it", ptrace.Regs{Rip: before + syscallInsnLen, Rax: 99, Orig_rax: ^uint64(0)}, false},
		{"in another", ptrace.Regs{Rip: siteInPage, Orig_rax: unix.SYS_PRCTL}, false},
	} {
		if got := u.hasMade(&c.regs); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
