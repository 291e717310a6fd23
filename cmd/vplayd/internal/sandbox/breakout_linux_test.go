//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vplay/tests/need"
)

// The test starts itself again. That process enters the sandbox and tries to break out,
// on a thread that was there before, on the one that entered, and on a new one.

// plan is what the process is told, in the environment.
type plan struct {
	Enter   bool
	Access  Access
	Outside string // a folder with a file "secret", outside of Access
	Inside  string // a folder with a file "known", in Access.Read or Access.Write
	Gone    string // a folder with a file "socket", in Access.Remove
	Port    int    // something listens there, on 127.0.0.1
	Victim  int    // a process of the same user
	Connect int    // a socket that was made before
}

const (
	planVariable   = "VPLAY_SANDBOX_PLAN"
	victimVariable = "VPLAY_SANDBOX_VICTIM"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		fmt.Println("ready")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends
		return
	}
	if text := os.Getenv(planVariable); text != "" {
		var p plan
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			panic(err)
		}
		if err := p.run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// outcome is what came of an attempt on a thread.
type outcome struct {
	Thread, Attempt string
	Errno           unix.Errno
}

// onThread runs f on a thread of its own whenever something is sent.
func onThread(f func()) (start chan<- bool, done <-chan bool) {
	s, d := make(chan bool), make(chan bool)
	ready := make(chan bool)
	go func() {
		runtime.LockOSThread()
		ready <- true
		<-s
		f()
		d <- true
	}()
	<-ready
	return s, d
}

func (p *plan) run() error {
	var err error
	if p.Connect, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	var all []outcome
	try := func(thread string) func() {
		return func() {
			for _, a := range attempts {
				if !p.Enter && !a.free {
					continue
				}
				all = append(all, outcome{thread, a.name, errnoOf(a.try(p))})
			}
		}
	}
	start, done := onThread(try("before"))
	if p.Enter {
		state, err := Enter(p.Access)
		if err != nil {
			return err
		}
		if state.Seccomp != nil {
			return state.Seccomp
		}
	}
	start <- true
	<-done
	if p.Enter {
		try("main")()
		start, done = onThread(try("after"))
		start <- true
		<-done
		if err := p.works(); err != nil {
			return fmt.Errorf("what is allowed does not work: %w", err)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// errnoOf returns the number of an error, 0 for nil.
func errnoOf(err error) unix.Errno {
	var e unix.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e
	}
	return unix.ERANGE // none of ours
}

// works does what is allowed: files are read and replaced, threads and timers run.
func (p *plan) works() error {
	time.Sleep(time.Millisecond)
	if len(p.Access.Read) > 0 {
		b, err := os.ReadFile(filepath.Join(p.Inside, "known"))
		if err != nil || string(b) != "known" {
			return fmt.Errorf("%q: %w", b, err)
		}
		_, err = os.ReadDir(p.Inside)
		return err
	}
	for _, f := range []string{"new", "known"} {
		name := filepath.Join(p.Inside, f)
		temp, err := os.CreateTemp(p.Inside, "*")
		if err != nil {
			return err
		}
		_, err = temp.WriteString(f)
		if err := errors.Join(err, temp.Chmod(0o600), temp.Sync(), temp.Close(), os.Rename(temp.Name(), name)); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte("written again"), 0o600); err != nil {
			return err
		}
	}
	return errors.Join(os.Remove(filepath.Join(p.Inside, "new")), os.Remove(filepath.Join(p.Gone, "socket")))
}

// attempt tries to break out. What is free works without a sandbox.
type attempt struct {
	name string
	free bool
	// by is Landlock where seccomp lets it pass when the process may write.
	by  mechanism
	try func(p *plan) error
}

type mechanism int

const (
	bySeccomp mechanism = iota
	byLandlock
)

// call makes a system call by its number.
func call(nr uintptr, args ...uintptr) func(*plan) error {
	var a [6]uintptr
	copy(a[:], args)
	return func(*plan) error {
		if _, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
			return e
		}
		return nil
	}
}

// opened opens a file, and closes it when that works.
func opened(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// inVictim is a word that can be read in another process of this program: the address
// of a variable is the same in all, or nothing is there.
var inVictim uint64

var attempts = []attempt{
	{"read /etc/passwd", true, byLandlock, func(*plan) error { return opened("/etc/passwd", unix.O_RDONLY) }},
	{"read a file outside", true, byLandlock, func(p *plan) error { return opened(p.Outside+"/secret", unix.O_RDONLY) }},
	{"read it through /proc", true, byLandlock, func(p *plan) error { return opened("/proc/self/root"+p.Outside+"/secret", unix.O_RDONLY) }},
	{"list a folder outside", true, byLandlock, func(p *plan) error { return opened(p.Outside, unix.O_RDONLY|unix.O_DIRECTORY) }},
	{"read memory of another by /proc", false, byLandlock, func(p *plan) error { return opened(fmt.Sprintf("/proc/%d/mem", p.Victim), unix.O_RDONLY) }},
	{"make a file outside", true, byLandlock, func(p *plan) error { return opened(p.Outside+"/new", unix.O_WRONLY|unix.O_CREAT) }},
	{"write a file outside", true, byLandlock, func(p *plan) error { return opened(p.Outside+"/secret", unix.O_WRONLY) }},
	{"empty a file outside", false, byLandlock, func(p *plan) error { return opened(p.Outside+"/secret", unix.O_RDONLY|unix.O_TRUNC) }},
	{"make a folder outside", false, byLandlock, func(p *plan) error { return unix.Mkdirat(unix.AT_FDCWD, p.Outside+"/folder", 0o700) }},
	{"remove a file outside", false, byLandlock, func(p *plan) error { return unix.Unlinkat(unix.AT_FDCWD, p.Outside+"/secret", 0) }},
	{"rename a file outside", false, byLandlock, func(p *plan) error {
		return unix.Renameat(unix.AT_FDCWD, p.Outside+"/secret", unix.AT_FDCWD, p.Outside+"/moved")
	}},
	{"make a symbolic link", false, bySeccomp, func(p *plan) error { return unix.Symlinkat("/etc/passwd", unix.AT_FDCWD, p.Inside+"/link") }},
	{"make a device", false, bySeccomp, func(p *plan) error { return unix.Mknod(p.Inside+"/null", unix.S_IFCHR|0o600, 0x103) }},

	{"start a program", true, bySeccomp, func(*plan) error {
		proc, err := os.StartProcess("/bin/sh", []string{"sh", "-c", ":"}, &os.ProcAttr{})
		if err == nil {
			_, err = proc.Wait()
		}
		return err
	}},
	{"become a program", false, bySeccomp, func(*plan) error { return unix.Exec("/bin/sh", []string{"sh", "-c", "echo out"}, nil) }},
	{"execveat", false, bySeccomp, call(unix.SYS_EXECVEAT, ^uintptr(0), 0, 0, 0, 0)},
	{"fork", false, bySeccomp, call(unix.SYS_CLONE, uintptr(unix.SIGCHLD))},
	{"a thread in another namespace", false, bySeccomp, call(unix.SYS_CLONE, unix.CLONE_THREAD|unix.CLONE_NEWUSER)},

	{"make a socket", true, bySeccomp, func(*plan) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}},
	{"connect", true, bySeccomp, func(p *plan) error {
		return unix.Connect(p.Connect, &unix.SockaddrInet4{Port: p.Port, Addr: [4]byte{127, 0, 0, 1}})
	}},
	{"listen", false, bySeccomp, func(p *plan) error { return unix.Listen(p.Connect, 1) }},
	{"make a pair of sockets", false, bySeccomp, call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM)},

	{"kill 1", false, bySeccomp, func(*plan) error { return unix.Kill(1, 0) }},
	{"kill another", true, bySeccomp, func(p *plan) error { return unix.Kill(p.Victim, 0) }},
	{"signal a thread of another", true, bySeccomp, func(p *plan) error { return unix.Tgkill(p.Victim, p.Victim, 0) }},
	{"hold another", true, bySeccomp, func(p *plan) error {
		fd, err := unix.PidfdOpen(p.Victim, 0)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}},
	{"signals by F_SETOWN", false, bySeccomp, func(p *plan) error {
		_, err := unix.FcntlInt(uintptr(p.Connect), unix.F_SETOWN, p.Victim)
		return err
	}},
	{"trace another", false, bySeccomp, func(p *plan) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(p.Victim))(p) }},
	{"be traced", false, bySeccomp, call(unix.SYS_PTRACE, unix.PTRACE_TRACEME)},
	{"read memory of another", false, bySeccomp, func(p *plan) error {
		var b [8]byte
		local := unix.Iovec{Base: &b[0]}
		local.SetLen(len(b))
		_, err := unix.ProcessVMReadv(p.Victim, []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&inVictim)), Len: len(b)}}, 0)
		return err
	}},
	{"write memory of another", false, bySeccomp, call(unix.SYS_PROCESS_VM_WRITEV)},
	{"set limits of another", false, bySeccomp, func(p *plan) error { return unix.Prlimit(p.Victim, unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) }},
	{"set own limits", false, bySeccomp, func(*plan) error { return unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) }},

	{"make code", true, bySeccomp, func(*plan) error {
		b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err == nil {
			err = unix.Munmap(b)
		}
		return err
	}},
	{"make memory executable", true, bySeccomp, func(*plan) error {
		b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return unix.ERANGE
		}
		return errors.Join(unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC), unix.Munmap(b))
	}},
	{"a file in memory", true, bySeccomp, func(*plan) error {
		fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}},

	{"unshare", false, bySeccomp, call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)},
	{"setns", false, bySeccomp, call(unix.SYS_SETNS)},
	{"mount", false, bySeccomp, call(unix.SYS_MOUNT)},
	{"chroot", false, bySeccomp, call(unix.SYS_CHROOT)},
	{"bpf", false, bySeccomp, call(unix.SYS_BPF)},
	{"io_uring", false, bySeccomp, call(unix.SYS_IO_URING_SETUP)},
	{"perf", false, bySeccomp, call(unix.SYS_PERF_EVENT_OPEN)},
	{"keys", false, bySeccomp, call(unix.SYS_KEYCTL)},
	{"userfaultfd", false, bySeccomp, call(unix.SYS_USERFAULTFD)},
	{"another filter", false, bySeccomp, call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER)},
	{"prctl", false, bySeccomp, call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1)},
	{"type on the terminal", false, bySeccomp, call(unix.SYS_IOCTL, 0, unix.TIOCSTI)},
	{"no such system call", false, bySeccomp, call(1000)},
	{"x32", false, bySeccomp, call(0x40000000 + unix.SYS_GETPID)},
}

// scene makes what the attempts need.
func scene(t *testing.T) *plan {
	t.Helper()
	dir := t.TempDir()
	p := &plan{Outside: filepath.Join(dir, "outside"), Inside: filepath.Join(dir, "inside"), Gone: filepath.Join(dir, "gone")}
	for folder, file := range map[string]string{p.Outside: "secret", p.Inside: "known", p.Gone: "socket"} {
		if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, file), []byte(file), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(l) })
	if err := errors.Join(unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(l, 5)); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(l)
	if err != nil {
		t.Fatal(err)
	}
	p.Port = at.(*unix.SockaddrInet4).Port
	p.Victim = victim(t)
	return p
}

// victim starts a process of the same user, and ends it with the test.
func victim(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(in.Close(), cmd.Wait()) })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	return cmd.Process.Pid
}

// carryOut starts the process that tries, and returns what came of it.
func carryOut(t *testing.T, p *plan) (all []outcome) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), planVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return all
}

// TestBreakOut tries to break out of the sandbox of a process that only reads, and of
// one that also writes.
func TestBreakOut(t *testing.T) {
	state := Check()
	need.Machine(t, "seccomp: "+strconv.Quote(fmt.Sprint(state.Seccomp)), state.Seccomp == nil)
	for name, access := range map[string]func(*plan) Access{
		"reads":  func(p *plan) Access { return Access{Read: []string{p.Inside, "/no/such/file"}} },
		"writes": func(p *plan) Access { return Access{Write: []string{p.Inside}, Remove: []string{p.Gone}} },
	} {
		t.Run(name, func(t *testing.T) {
			p := scene(t)
			p.Enter, p.Access = true, access(p)
			all := carryOut(t, p)
			if want := 3 * len(attempts); len(all) != want {
				t.Fatalf("%d outcomes, want %d", len(all), want)
			}
			by := map[string]mechanism{}
			for _, a := range attempts {
				by[a.name] = a.by
			}
			for _, o := range all {
				refused := o.Errno == unix.EPERM || o.Errno == unix.EACCES
				if by[o.Attempt] == byLandlock && state.Landlock != nil {
					continue // TestLandlock tells
				}
				if !refused {
					t.Errorf("%s, on the thread of %s: %v (%d)", o.Attempt, o.Thread, o.Errno, o.Errno)
				}
			}
			if b, err := os.ReadFile(filepath.Join(p.Outside, "secret")); err != nil || string(b) != "secret" {
				t.Errorf("the file outside: %q %v", b, err)
			}
		})
	}
}

// TestLandlock wants Landlock where the test is built as vplayd is.
func TestLandlock(t *testing.T) {
	state := Check()
	need.Machine(t, fmt.Sprintf("Landlock (%v)", state.Landlock), state.Landlock == nil)
}

// TestNoSandbox makes sure that the attempts are real: without a sandbox they succeed.
func TestNoSandbox(t *testing.T) {
	for _, o := range carryOut(t, scene(t)) {
		if o.Errno != 0 {
			t.Errorf("%s: %v", o.Attempt, o.Errno)
		}
	}
}
