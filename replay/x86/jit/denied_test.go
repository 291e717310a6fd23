//go:build linux && amd64

package jit

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// The test starts itself again, with a system call that is refused as SELinux, a container or vm.memfd_noexec
// would refuse it. There Open must say why, and nothing may die.

const deniedVariable = "VPLAY_JIT_DENIED"

func TestMain(m *testing.M) {
	if name := os.Getenv(deniedVariable); name != "" {
		openDenied(denials[name])
		return
	}
	os.Exit(m.Run())
}

// denial refuses a system call with an error number, with set when that bit of argument 2 is set.
type denial struct {
	nr, errno, set uint32
	says           string // what Open says of it
}

var denials = map[string]denial{
	"no files of memory":      {sysMemfdCreate, uint32(syscall.EPERM), 0, "memfd_create: operation not permitted"},
	"none in this kernel":     {sysMemfdCreate, uint32(syscall.ENOSYS), 0, "memfd_create: function not implemented"},
	"no executable mappings":  {syscall.SYS_MMAP, uint32(syscall.EACCES), syscall.PROT_EXEC, "executable memory: mmap: permission denied"},
	"no file can grow":        {syscall.SYS_FTRUNCATE, uint32(syscall.EPERM), 0, "ftruncate: operation not permitted"},
	"no handlers for signals": {syscall.SYS_RT_SIGACTION, uint32(syscall.EPERM), 0, "rt_sigaction: operation not permitted"},
}

// Of seccomp and classic BPF (linux include/uapi/linux/{prctl,seccomp,filter}.h).
const (
	prSetNoNewPrivs = 38
	prSetSeccomp    = 22
	seccompFilter   = 2
	loadWord        = 0x20 // BPF_LD | BPF_W | BPF_ABS
	ifEqual         = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	ifSet           = 0x45 // BPF_JMP | BPF_JSET | BPF_K
	answer          = 0x06 // BPF_RET | BPF_K
	allow           = 0x7fff0000
	fail            = 0x00050000
	argument2       = 32 // of struct seccomp_data
)

type filter struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// openDenied enters the filter and prints what Open says.
func openDenied(d denial) {
	runtime.LockOSThread()
	program := []filter{
		{code: loadWord}, {code: ifEqual, jf: 3, k: d.nr},
		{code: loadWord, k: argument2}, {code: ifSet, jf: 1, k: d.set},
		{code: answer, k: fail | d.errno}, {code: answer, k: allow},
	}
	if d.set == 0 {
		program = []filter{{code: loadWord}, {code: ifEqual, jf: 1, k: d.nr}, {code: answer, k: fail | d.errno}, {code: answer, k: allow}}
	}
	list := struct {
		n    uint16
		code *filter
	}{uint16(len(program)), &program[0]}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		panic(errno)
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetSeccomp, seccompFilter, uintptr(unsafe.Pointer(&list))); errno != 0 {
		panic(errno)
	}
	_, err := Open()
	os.Stdout.WriteString(strconv.Quote(errorText(err)))
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// TestDenied: where a system call is refused there is no pool, and Open says which.
func TestDenied(t *testing.T) {
	for name, d := range denials {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), deniedVariable+"="+name)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if said, _ := strconv.Unquote(strings.TrimSpace(string(out))); !strings.HasPrefix(said, "jit: "+d.says) {
				t.Errorf("Open said %q, want %q", out, d.says)
			}
		})
	}
}
