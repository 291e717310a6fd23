//go:build linux && amd64

package record

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// execve: what is looked at before it, and how the recording of the new image begins. What
// is changed on the new stack's environment is in env.go.

// Entries of the auxiliary vector (uapi/linux/auxvec.h) that are edited.
const (
	atIgnore      = 1
	atHWCAP2      = 26
	atSysinfoEhdr = 33

	hwcap2FSGSBase = 1 << 1
)

// beforeExec looks at an execve at its entry. A program that the kernel would
// not give its privileges under a tracer, or that cannot be recorded, is
// executed without one.
func (t *thread) beforeExec() (action, error) {
	c := &t.call
	path, ok := t.execPath()
	c.executes, _ = t.execName()
	if ok {
		if why, _ := unrecordable(path); why != "" {
			return action{}, t.giveUp(why + ": " + path)
		}
		if err := t.letTSCInCall(); err != nil {
			return action{}, err
		}
		if t.group().shares() {
			t.noteExitWords() // of the memory that it leaves, its end
		} else if err := t.group().prepareExec(t); err != nil {
			return action{}, err
		}
	}
	c.exec = true
	t.space().noteStores()
	return action{}, nil
}

// execName returns the name of the file that the call would execute, as the program gives it;
// false when it cannot be read.
func (t *thread) execName() (string, bool) {
	at := t.call.args[0]
	if t.call.nr == unix.SYS_EXECVEAT {
		at = t.call.args[1]
	}
	return t.space().readString(at)
}

// execPath returns a host path of the file that the call would execute; false
// when there is none.
func (t *thread) execPath() (string, bool) {
	dir := uint64(atFDCWD)
	if t.call.nr == unix.SYS_EXECVEAT {
		dir = t.call.args[0]
	}
	name, ok := t.execName()
	if !ok {
		return "", false
	}
	path := t.proc.hostPath(name, dir)
	fi, err := os.Stat(path)
	return path, err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

// atFDCWD is AT_FDCWD of linux/fcntl.h, as an argument.
const atFDCWD = 1<<64 - 100

// hostPath returns the host's path for a name that the program resolves
// relative to directory descriptor dir.
func (p *process) hostPath(name string, dir uint64) string {
	if own, ok := strings.CutPrefix(name, "/proc/self/"); ok { // which is the recorder's for the recorder
		return fmt.Sprintf("/proc/%d/%s", p.live, own)
	}
	if strings.HasPrefix(name, "/") {
		return fmt.Sprintf("/proc/%d/root%s", p.live, name)
	}
	base := fmt.Sprintf("/proc/%d/cwd", p.live)
	if fd := int32(dir); fd != unix.AT_FDCWD {
		base = procPath(p.live, int(fd))
	}
	return filepath.Join(base, name)
}

// unrecordable returns why the file at path cannot be recorded, or "", and
// what can be done about it.
func unrecordable(path string) (why, hint string) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return "", ""
	}
	if st.Mode&unix.S_ISUID != 0 && int(st.Uid) != unix.Geteuid() || st.Mode&unix.S_ISGID != 0 && int(st.Gid) != unix.Getegid() {
		return "a setuid or setgid program cannot be recorded", "record it as the user it runs as, or record a copy without the bit"
	}
	if n, err := unix.Getxattr(path, "security.capability", nil); err == nil && n > 0 && unix.Geteuid() != 0 {
		return "a program with file capabilities cannot be recorded", "record it as root, or record a copy without them"
	}
	f, err := os.Open(path)
	if err != nil {
		return "", ""
	}
	defer func() { _ = f.Close() }() // only read
	var ident [20]byte
	if _, err := f.ReadAt(ident[:], 0); err != nil || string(ident[:4]) != elf.ELFMAG {
		return "", ""
	}
	if elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return "a 32-bit program cannot be recorded", "vplay records x86-64 programs: build it for 64 bits"
	}
	if m := elf.Machine(binary.LittleEndian.Uint16(ident[18:])); m != elf.EM_X86_64 {
		return fmt.Sprintf("a program for %v cannot be recorded", m), "vplay records x86-64 programs"
	}
	return "", ""
}

// wantsExec reports whether a process is to be recorded for the program that it executes: one
// that matches as it was named in execve(2), or as the kernel names the file.
func (s *session) wantsExec(pid int, named string) bool {
	file, err := readLongLink(fmt.Sprintf("/proc/%d/exe", pid))
	return s.opt.Follow.wants(named) || err == nil && s.opt.Follow.wants(file)
}

// onExec is the stop inside execve, with the new image in place: the
// descriptors are opened now, before the program can forbid it.
func (t *thread) onExec() error {
	p := t.proc
	t.block = nil // it was in the old image
	named := t.call.executes
	if p == t.session.first && t.space().image == 0 {
		named = t.session.opt.Args[0]
	}
	wanted := t.session.wantsExec(p.pid, named)
	t.call.replaced = true
	if t.space().image == 0 {
		if err := ptrace.SetOptions(t.tid, t.session.options()); err != nil {
			return err
		}
		t.call = call{in: true, exec: true, replaced: true, nr: unix.SYS_EXECVE, mem: callMem{p}}
	}
	if t.group().shares() {
		if err := t.splitOff(); err != nil {
			return err
		}
		p.unwanted = t.session.hasWritten(p.pid) || !p.wanted && !wanted
	}
	p.wanted = wanted
	t.session.result.Stats.Execs++
	return t.space().open()
}

// beginImage starts the recording of a new image, at the exit of its execve.
func (t *thread) beginImage() error {
	t.call = call{}
	before := t.proc.about
	t.proc.imageBefore = &before
	t.scratch, t.lastRedirection, t.clearTID, t.robust, t.rseq = abi.Range{}, nil, 0, 0, ptrace.Rseq{}
	t.group().dropImage()
	t.proc.space = t.space().successor()
	t.proc.trap.handler = 0 // execve sets the default
	if t.regs.Cs != userCS64 {
		t.session.noteOnce(fmt.Sprintf("process %d: a 32-bit program cannot be recorded", t.proc.pid))
		if t.proc == t.session.first {
			t.session.result.Reason = "a 32-bit program cannot be recorded"
		}
		return t.letProcessGo()
	}
	if err := t.space().readModel(); err != nil {
		return err
	}
	for _, m := range t.space().maps.all() {
		t.space().showShared(&m)
	}
	stat, _ := statOf(t.proc.pid) // it is stopped, so it is there
	t.space().brk = stat.StartBrk
	t.space().noteExecImplied()
	t.readName()
	t.space().artefact = nil
	if err := t.space().findSite(); err != nil {
		return err
	}
	if t.proc.unwanted {
		return t.leaveHere()
	}
	if err := t.editEnv(); err != nil {
		return err
	}
	if err := t.editAuxv(); err != nil {
		return err
	}
	t.sig.held, t.sig.giving, t.sig.repeat, t.sig.syncPending = nil, nil, nil, false
	t.note()
	if err := errors.Join(t.inheritedActions(), t.handleSegv()); err != nil { // before anything is made to fault
		return err
	}
	if err := t.arm(); err != nil {
		return err
	}
	if err := t.armVsyscall(); err != nil {
		return err
	}
	if err := t.proc.describe(); err != nil {
		return err
	}
	if t.session.opt.Keep == KeepAlways && !t.session.out.open() {
		if err := t.session.out.create(t.session.opt.Path); err != nil {
			return err
		}
	}
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	if err := t.group().startInterval(t, m, t.group().contexts(t)); err != nil {
		return err
	}
	t.proc.imageBefore = nil
	return nil
}

// userCS64 is the code segment of 64-bit programs, __USER_CS.
const userCS64 = 0x33

// inheritedActions reads what execve keeps of the signals: the mask, and
// whether SIGSEGV is ignored.
func (t *thread) inheritedActions() error {
	t.proc.segv, t.proc.sigsys = kernelAction{}, kernelAction{}
	status, err := statusOf(t.proc.live)
	if err != nil {
		return err
	}
	if status.Mask("SigIgn")&(1<<(unix.SIGSEGV-1)) != 0 {
		t.proc.segv.handler = 1
	}
	return t.refreshMask()
}

// findSite finds a place for injected calls.
func (sp *space) findSite() error {
	for m := range sp.maps.tree.From(0) {
		if m.Name == vdsoName {
			sp.vdso, sp.vdsoEnd = m.Start, m.End
			return sp.placeSite(m)
		}
	}
	return errors.New("the program has no vdso")
}

// needSite finds the place for injected calls where recording failed before it was found.
func (sp *space) needSite() error {
	if sp.site != 0 || sp.mm == nil {
		return nil
	}
	if err := sp.readModel(); err != nil {
		return err
	}
	return sp.findSite()
}

// editAuxv hides the vdso, whose clocks read the TSC, and the FSGSBASE
// instructions from the program. The vector stands above the environment on
// the new stack.
func (t *thread) editAuxv() error {
	ahead := lookahead{space: t.space()}
	word := func(addr uint64) (uint64, error) {
		v, ok := ahead.word(addr)
		if !ok {
			return 0, fmt.Errorf("the new stack cannot be read at %#x", addr)
		}
		return v, nil
	}
	argc, err := word(t.regs.Rsp)
	if err != nil {
		return err
	}
	at := t.regs.Rsp + 8*(argc+2)
	for v := uint64(1); v != 0; at += 8 {
		if v, err = word(at); err != nil {
			return err
		}
	}
	start := at
	for {
		key, err := word(at)
		if err != nil {
			return err
		}
		if key == 0 {
			break
		}
		val, err := word(at + 8)
		if err != nil {
			return err
		}
		switch key {
		case atSysinfoEhdr:
			err = t.space().edit(at, atIgnore, "AT_SYSINFO_EHDR hidden in the auxiliary vector")
		case atHWCAP2:
			err = t.space().edit(at+8, val&^hwcap2FSGSBase, "FSGSBASE hidden in AT_HWCAP2")
		}
		if err != nil {
			return err
		}
		at += 16
	}
	auxv := make([]byte, at+16-start)
	t.space().readMem(start, auxv)
	t.proc.about.Auxv = auxv
	return nil
}

// edit replaces a word of guest memory and lists it as an artefact.
func (sp *space) edit(addr, v uint64, what string) error {
	var old, now [8]byte
	if sp.readMem(addr, old[:]) != len(old) {
		return fmt.Errorf("%s: %#x cannot be read", what, addr)
	}
	binary.LittleEndian.PutUint64(now[:], v)
	if old == now {
		return nil
	}
	sp.artefact = append(sp.artefact, checkpoint.Artefact{Addr: addr, Old: old[:], What: what})
	_, err := sp.mem.writeAt(now[:], addr)
	return err
}

// readLongLink reads a link of /proc whose target may be longer than a path can
// be, which a folder deep enough is: the kernel does not tell such a one.
func readLongLink(name string) (string, error) {
	s, err := os.Readlink(name)
	if errors.Is(err, unix.ENAMETOOLONG) {
		return "(a path longer than 4095 bytes)", nil
	}
	return s, err
}

// describe says what the process is since its execve, for the manifest.
func (p *process) describe() error {
	proc := fmt.Sprintf("/proc/%d/", p.live)
	a := checkpoint.Process{PID: int32(p.pid), Parent: int32(p.parent), Image: p.space.image, Auxv: p.about.Auxv}
	var err error
	if a.Program, err = readLongLink(proc + "exe"); err != nil {
		return err
	}
	read := func(name string) []string {
		b, rerr := os.ReadFile(proc + name)
		if rerr != nil {
			err = rerr
		}
		return splitNul(b)
	}
	a.Args, a.Env = read("cmdline"), checkpoint.MaskEnvironment(read("environ"), p.session.opt.KeepEnv)
	if a.Cwd, err = readLongLink(proc + "cwd"); err != nil {
		return err
	}
	p.about = a
	return p.session.describeHost(p)
}

// describeHost says what the processes run on, for the manifest.
func (s *session) describeHost(p *process) error {
	m := &s.manifest
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return err
	}
	m.Hostname, m.Kernel = unix.ByteSliceToString(uts.Nodename[:]), unix.ByteSliceToString(uts.Release[:])
	m.Tool, m.Keep = "vplay", string(s.opt.Keep)
	if s.cpuOf = p; p.trap.cpuid { // the answers to the program's CPUID are made of it
		m.CPU, s.cpuOf = p.identity(), nil
	}
	if p == s.first || m.Start.IsZero() {
		m.Start = time.Now()
	}
	return nil
}
