package abi

// What the calls write that wait for many descriptors: select, poll and epoll. These are rows
// of the table that need a function.

var pollRows = rowFuncs{
	SYS_SELECT:       (*outputs).selectSets,
	SYS_PSELECT6:     (*outputs).selectSets,
	SYS_EPOLL_WAIT:   (*outputs).epoll,
	SYS_EPOLL_PWAIT:  (*outputs).epoll,
	SYS_EPOLL_PWAIT2: (*outputs).epoll,
}

// selectSets: three bit sets in whole 64-bit words (fs/select.c, FDS_BYTES), and
// the remaining time, which is written even when a signal ended the wait.
func (o *outputs) selectSets() {
	o.arg(4, 16)
	n := int32(o.args[0])
	if n <= 0 {
		return
	}
	size := (uint64(n) + 63) / 64 * 8
	for i := 1; i <= 3; i++ {
		o.arg(i, size)
	}
}

// epoll: events are copied one by one (fs/eventpoll.c, ep_send_events); only
// the one after the last may have been copied in part.
func (o *outputs) epoll() {
	const sizeofEvent = 12
	room := uint64(max(int32(o.args[2]), 0))
	switch {
	case o.errno == 0 && o.ret > 0:
		room = min(room, uint64(o.ret)+1)
		o.filled(o.args[1], uint64(o.ret)*sizeofEvent, room*sizeofEvent)
	case o.errno == EFAULT:
		o.addArray(o.args[1], min(room, 1), sizeofEvent)
	}
}
