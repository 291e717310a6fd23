//go:build linux && amd64

package record

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// A program inherits which signals are ignored and which are blocked: nohup and
// shells count on it. Go's runtime has put its own handlers in the place of
// SIG_IGN, and has unblocked signals, before any code of ours runs. It keeps what
// it found, and does not tell, so that is read where the linker's symbols say that
// it stands. In an executable without symbols only what os/signal tells is
// known: SIGHUP and SIGINT.

// signalSet is a set of signals as the kernel has it: bit n-1 is signal n.
type signalSet uint64

func (s signalSet) has(sig int) bool { return s>>(sig-1)&1 != 0 }

// inheritance is what the recorder found at its start and the program gets.
type inheritance struct{ ignored, blocked signalSet }

// inherited returns what this process has inherited. It must be called before
// receive, which replaces the actions that the runtime has left alone.
var inherited = sync.OnceValue(func() inheritance {
	var in inheritance
	ignore := func(sig int, is bool) {
		if is {
			in.ignored |= 1 << (sig - 1)
		}
	}
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT} {
		ignore(int(sig), signal.Ignored(sig))
	}
	// The runtime has no handlers for these.
	for _, sig := range []unix.Signal{unix.SIGCONT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, 32, 34} {
		var act kernelAction
		ignore(int(sig), sigaction(int(sig), nil, &act) == nil && act.handler == sigIgn)
	}
	var actions [lastSignal + 1]uint64
	var mask [1]uint64
	if !readRuntime(map[string][]uint64{"runtime.fwdSig": actions[:], "runtime.initSigmask": mask[:]}) {
		if b, err := os.ReadFile("/proc/self/status"); err == nil {
			in.blocked = signalSet(statusMask(b, "SigBlk:"))
		}
		return in
	}
	for sig := 1; sig <= lastSignal; sig++ {
		ignore(sig, actions[sig] == sigIgn)
	}
	in.blocked = signalSet(mask[0])
	return in
})

// readRuntime reads variables of Go's runtime into the words given for their
// symbols. It fails when the executable lacks one of these or has it in another
// size, or may be loaded anywhere.
func readRuntime(vars map[string][]uint64) bool {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	list, err := f.Symbols()
	if err != nil || f.Type != elf.ET_EXEC {
		return false
	}
	found := 0
	for i := range list {
		if b, ok := vars[list[i].Name]; ok && list[i].Size == uint64(8*len(b)) {
			ownWords(uintptr(list[i].Value), b)
			found++
		}
	}
	return found == len(vars)
}

// inheritanceSize is the size of an encoded inheritance, in bytes.
const inheritanceSize = 16

func (in inheritance) encode() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(in.ignored)), uint64(in.blocked))
}

func decodeInheritance(b []byte) inheritance {
	return inheritance{signalSet(le64(b)), signalSet(le64(b[8:]))}
}

// apply makes it the state of the calling thread, which executes a program next.
// Signals that have handlers get their default action by execve.
func (in inheritance) apply() {
	ignore := kernelAction{handler: sigIgn}
	for sig := 1; sig <= lastSignal; sig++ {
		if in.ignored.has(sig) {
			_ = sigaction(sig, &ignore, nil) // SIGKILL and SIGSTOP are not ignored
		}
	}
	threadMask(uint64(in.blocked))
}
