//go:build linux && amd64

package abi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"vplay/tests/need"
)

// The program of the system call fuzzer has no code of its own but one SYSCALL
// instruction: this process, its tracer, sets the registers for each call and
// writes the memory that the call gets. So all its memory is known, and nothing
// but the kernel changes it.
//
// It runs in namespaces of its own (user, mount, process, network, host name,
// IPC, control group) under a user that owns nothing, with its root in an empty
// folder, and has no descriptors but those made for it: what it may do to the
// machine is nothing.

// Where the program and its memory are.
const (
	childCode  = 0x400000
	childSite  = childCode + 64 + 56 // the SYSCALL instruction, behind the ELF headers
	arenaBase  = 0x10_0000_0000
	blockPages = 2
	blockSize  = blockPages * PageSize
	blockPitch = blockSize + PageSize // a guard page behind each
	numBlocks  = 16
	halfBlock  = numBlocks - 2 // its second page is read-only
	readBlock  = numBlocks - 1 // read-only
)

func blockAddr(i int) uint64 { return arenaBase + uint64(i)*blockPitch }

// childELF is the program: syscall; int3.
func childELF() []byte {
	var b bytes.Buffer
	le := func(v ...any) {
		for _, x := range v {
			_ = binary.Write(&b, binary.LittleEndian, x) // a bytes.Buffer takes everything
		}
	}
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	le(uint16(2), uint16(62), uint32(1), uint64(childSite), uint64(64), uint64(0), uint32(0))
	le(uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0))
	le(uint32(1), uint32(5), uint64(0), uint64(childCode), uint64(childCode), uint64(childSite-childCode+3), uint64(childSite-childCode+3), uint64(PageSize))
	b.WriteString("\x0f\x05\xcc")
	return b.Bytes()
}

// child is a traced process of the fuzzer.
type child struct {
	t      *testing.T
	pid    int
	mem    *os.File
	dead   bool
	areas  []area // all its memory, as it was after the last call
	kill   func()
	inside int // its process id in its own namespace
	script *script
}

// area is a range of the child's memory and its last known content.
type area struct {
	addr uint64
	data []byte
}

// errDead says that the child has gone.
var errDead = errors.New("the child has gone")

// startChild starts the program in its namespaces, stopped at its first
// instruction. The caller's thread is its tracer.
func startChild(t *testing.T) *child {
	t.Helper()
	dir, err := os.MkdirTemp("", "vplay-calls")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, err := range []error{
		os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "t"), 0o777), os.Mkdir(filepath.Join(dir, "proc"), 0o755),
		os.WriteFile(filepath.Join(dir, "child"), childELF(), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 65534, 65534 // nobody: files of root are not its own
	}
	cmd := exec.Command("/child")
	cmd.Dir, cmd.Env = "/t", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Ptrace: true, Pdeathsig: syscall.SIGKILL, Setsid: true, Chroot: dir,
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | CLONE_NEWCGROUP,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}},
		Credential:  &syscall.Credential{NoSetGroups: true},
	}
	err = cmd.Start()
	if err != nil {
		t.Log(err)
	}
	need.Machine(t, "user namespaces for whoever runs the tests", err == nil)
	c := &child{t: t, pid: cmd.Process.Pid, inside: 1}
	c.kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if ws, err := c.wait(); err != nil || !ws.Stopped() {
		t.Fatalf("the child did not start: %v", ws)
	}
	c.checkNamespace()
	const options = syscall.PTRACE_O_TRACESYSGOOD | syscall.PTRACE_O_TRACEFORK | syscall.PTRACE_O_TRACEVFORK | syscall.PTRACE_O_TRACECLONE | 0x100000 // EXITKILL
	if err := syscall.PtraceSetOptions(c.pid, options); err != nil {
		t.Fatal(err)
	}
	c.open()
	return c
}

// checkNamespace refuses to go on with a child that is in the machine's own
// namespaces.
func (c *child) checkNamespace() {
	for _, ns := range []string{"user", "mnt", "pid", "net", "uts", "ipc", "cgroup"} {
		own, err1 := os.Readlink("/proc/self/ns/" + ns)
		its, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", c.pid, ns))
		if err1 != nil || err2 != nil || own == its {
			c.kill()
			c.t.Fatalf("the child is not in a %s namespace of its own: %v %v", ns, err1, err2)
		}
	}
}

func (c *child) open() {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", c.pid), os.O_RDWR, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mem = f
}

func (c *child) wait() (syscall.WaitStatus, error) {
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(c.pid, &ws, 0x40000000, nil) // __WALL
		if !errors.Is(err, syscall.EINTR) {
			return ws, err
		}
	}
}

// How long a call may block: then a signal ends it, and later the child's life.
const (
	blockLimit = 2 * time.Millisecond
	hangLimit  = time.Second
)

// call makes one system call in the child.
func (c *child) call(nr int64, args [6]uint64) (int64, error) {
	if c.dead {
		return 0, errDead
	}
	r := syscall.PtraceRegs{
		Orig_rax: ^uint64(0), Rax: uint64(nr), Rip: childSite, Cs: 0x33, Ss: 0x2b, Eflags: 0x202, Rsp: blockAddr(0) - 4*PageSize,
		Rdi: args[0], Rsi: args[1], Rdx: args[2], R10: args[3], R8: args[4], R9: args[5],
	}
	if err := syscall.PtraceSetRegs(c.pid, &r); err != nil {
		return 0, c.lost()
	}
	if err := c.stop(); err != nil { // its entry
		return 0, err
	}
	pid := c.pid
	interrupt := time.AfterFunc(blockLimit, func() { _ = syscall.Kill(pid, syscall.SIGURG) })
	hang := time.AfterFunc(hangLimit, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	err := c.stop()
	interrupt.Stop()
	hang.Stop()
	if err != nil {
		return 0, err
	}
	if err := syscall.PtraceGetRegs(c.pid, &r); err != nil {
		return 0, c.lost()
	}
	if ret := Errno(-int64(r.Rax)); ret != EINTR && (ret < ERESTARTSYS || ret > ERESTART_RESTARTBLOCK) {
		c.script.add(scriptCall, append([]uint64{uint64(nr)}, args[:]...)...)
	}
	return int64(r.Rax), nil
}

// stop lets the child run to the next end of a call's entry or exit. Signals are
// swallowed, new processes killed.
func (c *child) stop() error {
	for {
		if err := syscall.PtraceSyscall(c.pid, 0); err != nil {
			return c.lost()
		}
		ws, err := c.wait()
		switch {
		case err != nil || !ws.Stopped():
			c.dead = true
			return errDead
		case ws.StopSignal() == syscall.SIGTRAP|0x80:
			return nil
		case ws.StopSignal() == syscall.SIGTRAP && ws.TrapCause() > 0:
			if pid, err := syscall.PtraceGetEventMsg(c.pid); err == nil {
				reap(int(pid))
			}
		}
	}
}

// reap kills a new process or thread at its first stop.
func reap(pid int) {
	var ws syscall.WaitStatus
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
	for range 4 {
		if _, err := syscall.Wait4(pid, &ws, 0x40000000, nil); err != nil || ws.Exited() || ws.Signaled() {
			return
		}
		_ = syscall.PtraceDetach(pid) // it dies then
	}
}

// lost is for a child that answers no more.
func (c *child) lost() error {
	if c.dead {
		return errDead
	}
	c.dead = true
	_ = syscall.Kill(c.pid, syscall.SIGKILL)
	_, _ = c.wait()
	return errDead
}

// fork returns a copy of the child, which the caller ends.
func (c *child) fork() (*child, error) {
	r := syscall.PtraceRegs{Orig_rax: ^uint64(0), Rax: SYS_FORK, Rip: childSite, Cs: 0x33, Ss: 0x2b, Eflags: 0x202}
	if err := syscall.PtraceSetRegs(c.pid, &r); err != nil {
		return nil, c.lost()
	}
	var f *child
	for stops := 0; stops < 2; {
		if err := syscall.PtraceSyscall(c.pid, 0); err != nil {
			return nil, c.lost()
		}
		ws, err := c.wait()
		switch {
		case err != nil || !ws.Stopped():
			c.dead = true
			return nil, errDead
		case ws.StopSignal() == syscall.SIGTRAP|0x80:
			stops++
		case ws.TrapCause() == syscall.PTRACE_EVENT_FORK:
			pid, err := syscall.PtraceGetEventMsg(c.pid)
			if err != nil {
				return nil, err
			}
			f = &child{t: c.t, pid: int(pid)}
		}
	}
	if f == nil {
		return nil, errors.New("the child could not be forked")
	}
	if err := syscall.PtraceGetRegs(c.pid, &r); err != nil {
		return nil, c.lost()
	}
	f.inside = int(r.Rax)
	if ws, err := f.wait(); err != nil || !ws.Stopped() {
		return nil, fmt.Errorf("the forked child did not stop: %v %w", ws, err)
	}
	f.kill = func() {
		f.mem.Close()
		if !f.dead {
			_ = syscall.Kill(f.pid, syscall.SIGKILL)
			for {
				if ws, err := f.wait(); err != nil || ws.Exited() || ws.Signaled() {
					break
				}
			}
		}
		// The template is its parent: the tracer reaps it first, then init.
		_, _ = c.call(SYS_WAIT4, [6]uint64{^uint64(0), 0, 1, 0}) // WNOHANG
	}
	f.open()
	for i := range c.areas {
		f.areas = append(f.areas, area{c.areas[i].addr, bytes.Clone(c.areas[i].data)})
	}
	return f, nil
}

// must makes a call that prepares the child, and returns its result.
func (c *child) must(nr int64, args ...uint64) uint64 {
	c.t.Helper()
	ret, err := c.call(nr, argv(args...))
	if err != nil || ret < 0 && ret > -4096 {
		c.t.Fatalf("%s in the child: %s %v", Name(nr), FormatResult(nr, ret), err)
	}
	return uint64(ret)
}

// may is must for what a kernel need not have: -1 stands for it then.
func (c *child) may(nr int64, args ...uint64) uint64 {
	c.t.Helper()
	ret, err := c.call(nr, argv(args...))
	if err != nil || ret < 0 && ret > -4096 {
		return ^uint64(0)
	}
	return uint64(ret)
}

// layout maps the arena and looks at all memory there is.
func (c *child) layout() {
	for i := range numBlocks {
		c.must(SYS_MMAP, blockAddr(i), blockSize, 3, MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED, ^uint64(0), 0)
	}
	c.must(SYS_MPROTECT, blockAddr(halfBlock)+PageSize, PageSize, 1)
	c.must(SYS_MPROTECT, blockAddr(readBlock), blockSize, 1)
}

// readAreas makes all memory the child has its areas: all but what the kernel
// itself keeps writing.
func (c *child) readAreas() {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.pid))
	if err != nil {
		c.t.Fatal(err)
	}
	c.areas = nil
	for line := range bytes.Lines(text) {
		var start, end uint64
		if n, _ := fmt.Sscanf(string(line), "%x-%x", &start, &end); n != 2 || bytes.Contains(line, []byte("[vvar")) || start >= TaskSize {
			continue
		}
		a := area{start, make([]byte, end-start)}
		if _, err := c.mem.ReadAt(a.data, int64(start)); err != nil {
			c.t.Fatalf("%s: %v", line, err)
		}
		c.areas = append(c.areas, a)
	}
}

// fill writes noise that a number tells to a block.
func (c *child) fill(addr, seed uint64) {
	noise, start := make([]byte, blockSize), seed
	for i := 0; i < len(noise); i += 8 {
		seed = seed*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
		binary.LittleEndian.PutUint64(noise[i:], seed^seed>>29)
	}
	c.script.add(scriptFill, addr, start)
	log := c.script
	c.script = nil
	c.put(addr, noise)
	c.script = log
}

// put writes to the child's memory, also where it is read-only.
func (c *child) put(addr uint64, b []byte) {
	if c.script != nil { // A script's program cannot write where it may only read.
		end := blockAddr(halfBlock) + PageSize
		b = b[:min(uint64(len(b)), end-min(addr, end))]
		c.script.add(scriptPut, append([]uint64{addr, uint64(len(b))}, words(b)...)...)
	}
	for i := range c.areas {
		a := &c.areas[i]
		end := min(addr+uint64(len(b)), a.addr+uint64(len(a.data)))
		if start := max(addr, a.addr); start < end {
			copy(a.data[start-a.addr:end-a.addr], b[start-addr:])
		}
	}
	if _, err := c.mem.WriteAt(b, int64(addr)); err != nil {
		_ = c.lost() // killed, by a call before: the next call says so
	}
}

// text writes a string and returns its address.
func (c *child) text(addr uint64, s string) uint64 {
	c.put(addr, append([]byte(s), 0))
	return addr
}

// changes returns the addresses of the bytes that are not what they were, and
// takes the present content for known.
func (c *child) changes() ([]uint64, error) {
	var out []uint64
	var buf [64 * PageSize]byte
	for i := range c.areas {
		a := &c.areas[i]
		for off := 0; off < len(a.data); off += len(buf) {
			old := a.data[off:min(off+len(buf), len(a.data))]
			now := buf[:len(old)]
			if n, err := c.mem.ReadAt(now, int64(a.addr)+int64(off)); n != len(now) {
				return out, err
			}
			if bytes.Equal(old, now) {
				continue
			}
			for k := range now {
				if now[k] != old[k] {
					out = append(out, a.addr+uint64(off+k))
				}
			}
			copy(old, now)
		}
	}
	return out, nil
}

// ReadAt implements Memory.
func (c *child) ReadAt(addr uint64, b []byte) int {
	n, _ := c.mem.ReadAt(b, int64(addr))
	return n
}

// Writable implements Hints.
func (c *child) Writable(addr, n uint64) bool {
	if addr < arenaBase || addr >= blockAddr(numBlocks) {
		return false
	}
	i := int((addr - arenaBase) / blockPitch)
	room := uint64(blockSize)
	switch i {
	case halfBlock:
		room = PageSize
	case readBlock:
		return false
	}
	off := addr - blockAddr(i)
	return off <= room && n <= room-off
}

// Datagram implements Hints as the recorder does: any socket may be one.
func (c *child) Datagram(fd int32) bool {
	fi, err := os.Stat(fmt.Sprintf("/proc/%d/fd/%d", c.pid, fd))
	return err == nil && fi.Mode()&os.ModeSocket != 0
}
