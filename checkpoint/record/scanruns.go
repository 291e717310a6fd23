//go:build linux && amd64

package record

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// What a shadow executes to show its pages. The code is in scanruns_amd64.s; it is copied to
// the window's file, as much of it as codeOfScan copies.

// scanSize is how much of the code is copied, in bytes. The last is an INT3 there, where the
// scan ends.
const scanSize = 256

// copyCode copies len(to) bytes of this process's code, or of what stands behind it, from an address. scanCode returns that of
// the scan. They and scanHere are in scanruns_amd64.s. scanHere is the scan with n pages and room slots, each
// at addresses that are multiples of 16, in this process; it returns how many pages it has looked at.
func copyCode(to []byte, from uint64)
func scanCode() uint64
func scanHere(pages, slots *byte, counts *uint32, n, room uint64) (done uint64)

// codeOfScan returns the code.
func codeOfScan(b *[scanSize]byte) { copyCode(b[:], scanCode()) }

// scanPages bounds how many pages are looked at in one go, in which the recorder waits.
const scanPages = 1 << 16

// prepareScan has the shadow map the window, with the scan's code. It reports whether that
// worked.
func (w *window) prepareScan() bool {
	at, err := w.in.do(unix.SYS_MMAP, 0, windowSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED, w.fd, 0)
	if err != nil || at < 0 {
		return false
	}
	code := (*[scanSize]byte)(w.file)
	codeOfScan(code)
	code[scanSize-1] = 0xcc
	if ret, err := w.in.do(unix.SYS_MPROTECT, uint64(at), checkpoint.PageSize, unix.PROT_READ|unix.PROT_EXEC); err != nil || ret != 0 {
		_, _ = w.in.do(unix.SYS_MUNMAP, uint64(at), windowSize) // it may be a helper, which has the program's memory
		return false
	}
	w.at, w.runs = uint64(at), make([]uint32, 0, windowPages)
	return true
}

// scan returns pages from addr on, at most n, up to the first that cannot be read.
func (w *window) scan(addr, n uint64) pageRuns {
	r := w.in.saved
	r.Rip, r.Orig_rax, r.Eflags = w.at, ^uint64(0), r.Eflags&^0x100
	r.Rsi, r.Rdx, r.Rbx = addr, min(n, scanPages), 0
	r.Rdi, r.R9, r.R10 = w.at+windowSlots, w.at+windowCounts, windowPages
	r.R11 = w.at + scanSize - 1
	want := r.Rdx
	if err := w.in.execute(&r); err != nil || r.Rbx > want {
		return pageRuns{}
	}
	out := pageRuns{counts: w.runs[:0]}
	for left := r.Rbx; left > 0; {
		slot := uint64(len(out.counts))
		if slot == windowPages {
			return pageRuns{}
		}
		count := uint64(binary.LittleEndian.Uint32(w.file[windowCounts+4*slot:]))
		if count == 0 || count > left {
			return pageRuns{}
		}
		out.counts = append(out.counts, uint32(count))
		left -= count
	}
	out.pages = w.file[windowSlots:][:len(out.counts)*checkpoint.PageSize]
	return out
}

// execute has the thread, which is not to be given back, execute code from r.Rip on up to an
// INT3 or a fault. r becomes the registers there.
func (in *injector) execute(r *ptrace.Regs) error {
	if err := ptrace.SetRegs(in.tid, r); err != nil {
		return err
	}
	for {
		ws, err := in.run()
		if err != nil {
			return err
		}
		if err := diesAt(ws); err != nil {
			return err
		}
		switch ptrace.StopSignal(ws) {
		case unix.SIGTRAP, unix.SIGSEGV, unix.SIGBUS:
			return ptrace.GetRegs(in.tid, r)
		case unix.SIGILL, unix.SIGFPE:
			return errScan
		}
	}
}

// errScan says that the scan did what it cannot do.
var errScan = errors.New("a shadow did not execute what it was given")
