package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	recorder "vplay/checkpoint/record"
	"vplay/replay"
)

// What doctor looks at where there is a recorder: CPU, kernel, ptrace, traps, page map,
// disk, and a trial with a tiny program. Each function returns what it has found and
// what helps. The verb, and what it looks at everywhere, is in doctor.go.

// machineFindings looks at what recording needs here.
func machineFindings(ctx context.Context) []finding {
	return append([]finding{
		cpuFinding(), kernelFinding(), yamaFinding(), attachFinding(), seccompFinding(), tscFinding(), cpuidFinding(), pagemapFinding(), sharedFinding(), diskFinding(),
	}, trialFindings(ctx)...)
}

func cpuFinding() finding {
	id := recorder.HostCPU()
	return ok("CPU", "%s", id.Name())
}

func kernelFinding() finding {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return lack("kernel", err.Error(), "")
	}
	return ok("kernel", "%s %s", unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]))
}

// readText returns a small file of /proc, "" when it cannot be read.
func readText(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// yamaFinding reads kernel.yama.ptrace_scope (Documentation/admin-guide/LSM/Yama.rst):
// the recorder traces its own child, which 0 and 1 allow to all.
func yamaFinding() finding {
	switch s := readText("/proc/sys/kernel/yama/ptrace_scope"); s {
	case "":
		return ok("ptrace scope", "no restriction by Yama")
	case "0", "1":
		return ok("ptrace scope", "kernel.yama.ptrace_scope = %s", s)
	case "2":
		return lack("ptrace scope", "kernel.yama.ptrace_scope = 2: only with CAP_SYS_PTRACE", "record as root, or sysctl kernel.yama.ptrace_scope=1")
	default:
		return lack("ptrace scope", "kernel.yama.ptrace_scope = "+s+": nobody may trace", "set it to 1 in /etc/sysctl.d and start the machine again")
	}
}

// attachFinding says to which running processes attach may attach: those of the same user, unless
// Yama leaves that to CAP_SYS_PTRACE.
func attachFinding() finding {
	const all, own = "any process, with the privilege CAP_SYS_PTRACE", "processes of this user"
	const capSysPtrace = 19 // linux/capability.h
	may := abi.ProcStatus(readText("/proc/self/status")).Mask("CapEff")>>capSysPtrace&1 != 0
	switch scope := readText("/proc/sys/kernel/yama/ptrace_scope"); {
	case scope == "3":
		return lack("attach", "to nobody: kernel.yama.ptrace_scope = 3", "set it to 1 in /etc/sysctl.d and start the machine again; vplayd record needs it too")
	case may:
		return ok("attach", "to %s", all)
	case scope == "1", scope == "2":
		return lack("attach", "to nobody but as root: kernel.yama.ptrace_scope = "+scope, "attach as root, or sudo sysctl kernel.yama.ptrace_scope=0; vplayd record needs neither where it is 1")
	}
	return ok("attach", "to %s", own)
}

// statusField returns a field of /proc/self/status.
func statusField(name string) string {
	return abi.ProcStatus(readText("/proc/self/status")).Field(name)
}

func seccompFinding() finding {
	if statusField("Seccomp") == "2" {
		return ok("seccomp", "a filter is in force here, as in a container: the trial below tells whether it allows ptrace")
	}
	return ok("seccomp", "no filter")
}

func tscFinding() finding {
	var mode int32
	if err := prctlGetTSC(&mode); err != nil {
		return fail("RDTSC", "cannot be trapped: PR_GET_TSC: "+err.Error(), "a kernel for x86 has it since 2.6.26; is this an emulator, such as qemu-user?")
	}
	if !recorder.TSCFaults() {
		return lack("RDTSC", "does not fault where PR_SET_TSC says so: this virtual machine ignores it", "it is looked for in the program's files instead; where it is not found, as in code that is made at run time, replay stops")
	}
	return ok("RDTSC", "can be trapped (PR_SET_TSC)")
}

func cpuidFinding() finding {
	for line := range strings.Lines(readText("/proc/cpuinfo")) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != "flags" {
			continue
		}
		for f := range strings.FieldsSeq(value) {
			if f == "cpuid_fault" {
				return ok("CPUID", "can be trapped (CPUID faulting)")
			}
		}
		break
	}
	return lack("CPUID", "cannot be trapped: no CPUID faulting on this CPU, or none in this virtual machine",
		"glibc, OpenSSL, Go, Node.js and Java are told by variables and an option instead; another program that asks the CPU itself may use instructions that replay refuses by name")
}

// sharedFinding says whether the kernel tells the recorder in which pages processes that share memory have stored.
func sharedFinding() finding {
	if err := recorder.CanWatchStores(); err != nil {
		return lack("shared memory", "the kernel does not tell which pages are stored to: "+err.Error(),
			"processes that share memory, as PostgreSQL's, are recorded, and slower; it takes Linux 6.7 and userfaultfd(2), which a container's seccomp profile may forbid")
	}
	return ok("shared memory", "the kernel tells which pages are stored to")
}

// pagemapFinding reads this process's own page map (Documentation/admin-guide/mm/pagemap.rst).
func pagemapFinding() finding {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return fail("page map", err.Error(), "is /proc mounted, without hidepid and with a kernel that has CONFIG_PROC_PAGE_MONITOR?")
	}
	defer func() { _ = f.Close() }() // only read
	const present, exclusive = 1 << 63, 1 << 56
	var b [8]byte
	for line := range strings.Lines(readText("/proc/self/maps")) {
		lo, rest, _ := strings.Cut(line, "-")
		hi, _, _ := strings.Cut(rest, " ")
		start, err1 := strconv.ParseUint(lo, 16, 64)
		end, err2 := strconv.ParseUint(hi, 16, 64)
		if err1 != nil || err2 != nil || !strings.Contains(rest, " rw-p ") {
			continue
		}
		for a := start; a < end && a < start+256*4096; a += 4096 {
			if _, err := f.ReadAt(b[:], int64(a/4096*8)); err != nil {
				break
			}
			if e := binary.LittleEndian.Uint64(b[:]); e&present != 0 && e&exclusive != 0 {
				return ok("page map", "tells present and exclusive pages")
			}
		}
	}
	return fail("page map", "shows no exclusive page (bit 56)", "the kernel needs to be 4.2 or newer, with CONFIG_PROC_PAGE_MONITOR")
}

func diskFinding() finding {
	var st unix.Statfs_t
	if err := unix.Statfs(".", &st); err != nil {
		return lack("disk", err.Error(), "record into another folder with -o")
	}
	free := int64(st.Bavail) * st.Bsize
	const little = 200 << 20
	if free < little {
		return lack("disk", size(free)+" free in this folder", "a fat recording takes as much as the program's memory: record into another folder with -o")
	}
	return ok("disk", "%s free in this folder", size(free))
}

// trialProgram is a static ELF file: MOV EAX, 39 (getpid); SYSCALL; XOR EDI, EDI; MOV EAX, 60 (exit); SYSCALL.
func trialProgram() []byte {
	const base, head, phdr = 0x400000, 64, 56
	code := []byte{0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05}
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01")
	b.Write(make([]byte, 9))
	for _, v := range []any{
		uint16(2), uint16(62), uint32(1), uint64(base + head + phdr), uint64(head), uint64(0), uint32(0),
		uint16(head), uint16(phdr), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), uint64(head + phdr + len(code)), uint64(head + phdr + len(code)), uint64(0x1000),
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // a buffer takes everything
	}
	b.Write(code)
	return b.Bytes()
}

// trialFindings records a tiny program and replays the recording.
func trialFindings(ctx context.Context) []finding {
	dir, err := os.MkdirTemp("", "vplay-doctor")
	if err != nil {
		return []finding{fail("trial", err.Error(), "make room in the temporary folder, or name another with $TMPDIR")}
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is in the temporary folder
	prog, rec := filepath.Join(dir, "trial"), filepath.Join(dir, "trial.vplay")
	if err := os.WriteFile(prog, trialProgram(), 0o700); err != nil {
		return []finding{fail("trial", err.Error(), "make room in the temporary folder, or name another with $TMPDIR")}
	}
	res, err := recorder.Run(ctx, recorder.Options{Path: rec, Keep: recorder.KeepAlways, Agent: true, Args: []string{prog}})
	if err == nil {
		err = res.Err
	}
	switch {
	case err != nil:
		return []finding{fail("trial", err.Error(), trialHint(err))}
	case !res.Recorded:
		return []finding{fail("trial", "nothing recorded: "+res.Reason, "please report it, with this output")}
	}
	shadow := ok("shadows", "memory is kept by a copy-on-write clone of the program")
	if res.Stats.Shadows == 0 {
		shadow = lack("shadows", "clone is refused: memory is copied instead", "raise the limit on processes (ulimit -u): recording is slower without")
	}
	calls := ok("system calls", "frequent ones are made by code in the program, without stops")
	if res.Stats.AgentCalls == 0 {
		calls = lack("system calls", "each costs two stops, 50 microseconds or more", "code in the program makes them without stops on Linux 6.4 and later")
	}
	n, err := replayTrial(ctx, rec)
	if err != nil {
		return []finding{shadow, calls, fail("trial", "recorded, but the replay failed: "+err.Error(), "please report it, with this output")}
	}
	return []finding{shadow, calls, ok("trial", "a program of %d instructions was recorded and replayed exactly", n)}
}

// trialHint says what helps when the trial could not be recorded.
func trialHint(err error) string {
	var start *recorder.StartError
	if errors.As(err, &start) && start.Hint != "" && start.Code == exitRecorder {
		return start.Hint + "; docker run --cap-add=SYS_PTRACE --security-opt seccomp=unconfined allows it"
	}
	if errors.Is(err, unix.EACCES) || start != nil && start.Code == 126 {
		return "is the temporary folder mounted noexec? Name another with $TMPDIR"
	}
	return "please report it, with this output"
}

func replayTrial(ctx context.Context, path string) (uint64, error) {
	rec, err := checkpoint.Open(path)
	if err != nil {
		return 0, err
	}
	defer rec.Close()
	s, err := replay.NewSession(rec)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	results, err := replay.Verify(ctx, s, replay.VerifyOptions{})
	var n uint64
	for _, r := range results {
		n += r.Instructions
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}
