package replay

import (
	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// SIGBUS for a page that the kernel could not give: mostly one behind the end of its file. Replay does not know how long a file
// is, since any process may cut it or have it grow while it is mapped, nor whether a file system is full. But the log knows
// where the fault came, and at which address. From the event before it on, accesses to that page fail, and the one that
// fails with the recorded registers is it. Most often that is the first: while a thread has its turn no recorded process changes a file.

// expectBusError is called when another event has become the next.
func (m *Machine) expectBusError() {
	if m.next < len(m.iv.Events) && isBusError(&m.iv.Events[m.next]) {
		m.Mem.SetBusError(m.iv.Events[m.next].Addr)
		return
	}
	m.Mem.ClearBusError()
}

// isBusError reports whether an event is the fault of an access to a page that the kernel could not give.
func isBusError(e *checkpoint.Event) bool {
	return e.Kind == checkpoint.EventFault && abi.Signal(e.Signo) == abi.SIGBUS && abi.Siginfo(e.Siginfo).Code() == abi.BUS_ADRERR
}

// allowAccess has the next access at the present place go on, to the page that fails: it is not the recorded one. It came before the
// file was cut, by somebody who is not recorded, or it is a load, and the fault was that of a store for which no room was left.
func (m *Machine) allowAccess() { m.allowed = true }

// takeAllowance reports whether an access may go on here, for the one instruction, or iteration of a REP instruction, that
// is executed next. expectBusError ends that.
func (m *Machine) takeAllowance() bool {
	if !m.allowed {
		return false
	}
	m.allowed = false
	m.Mem.ClearBusError()
	return true
}
