package abi

// Sockets: messages with their vectors and control data, and options.

var netRows = rowFuncs{
	SYS_RECVFROM:   (*outputs).recvfrom,
	SYS_RECVMSG:    (*outputs).recvmsg,
	SYS_RECVMMSG:   (*outputs).recvmmsg,
	SYS_SENDMMSG:   (*outputs).sendmmsg,
	SYS_GETSOCKOPT: (*outputs).getsockopt,
	SYS_SETSOCKOPT: (*outputs).setsockopt,
}

func (o *outputs) recvfrom() {
	if o.untouched(true) {
		return
	}
	o.received(o.args[1], o.args[2])
	if !o.clean() {
		o.sockaddr(4, 5)
	}
}

func (o *outputs) recvmsg() {
	if o.clean() || o.untouched(true) {
		return
	}
	o.message(o.args[1], o.ret)
}

// message lists what a receive writes through the struct msghdr at addr, whose
// data have got bytes (negative: it failed). After the call msg_namelen and
// msg_controllen are the lengths given back; a name longer than its room and
// control data with a fault in it are listed as far as they say.
func (o *outputs) message(addr uint64, got int64) {
	o.add(addr, sizeofMsghdr)
	name, ok1 := readUint64(o.blocks, addr)
	nameLen, ok2 := readUint32(o.m, addr+8)
	iov, ok3 := readUint64(o.blocks, addr+16)
	iovLen, ok4 := readUint64(o.blocks, addr+24)
	control, ok5 := readUint64(o.blocks, addr+32)
	controlLen, ok6 := readUint64(o.m, addr+40)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 {
		return
	}
	o.add(name, min(uint64(nameLen), sizeofSockaddrStorage))
	if iovLen <= MaxIov {
		saved := o.ret
		o.ret = got
		o.iovec(iov, iovLen)
		o.ret = saved
	}
	o.add(control, controlLen)
}

// setsockopt only reads its argument, but for the options that replace a table of
// netfilter: through a pointer in it they give back the old table's counters,
// whose number it says (struct ipt_replace, ip6t_replace, arpt_replace and
// ebt_replace of include/uapi/linux/netfilter*).
func (o *outputs) setsockopt() {
	var count, pointer uint64 // where they are in the struct
	switch level, name := int32(o.args[1]), int32(o.args[2]); {
	case (level == SOL_IP || level == SOL_IPV6) && name == 64: // IPT_SO_SET_REPLACE, IP6T_SO_SET_REPLACE
		count, pointer = 84, 88
	case level == SOL_IP && name == 96: // ARPT_SO_SET_REPLACE
		count, pointer = 68, 72
	case level == SOL_IP && name == 128: // EBT_SO_SET_ENTRIES
		count, pointer = 96, 104
	default:
		return
	}
	n, ok1 := readUint32(o.m, o.args[3]+count)
	counters, ok2 := readUint64(o.m, o.args[3]+pointer)
	if ok1 && ok2 && !o.clean() {
		o.addArray(counters, uint64(n), 16) // struct xt_counters
	}
}

const (
	sizeofMsghdr  = 56
	sizeofMmsghdr = 64 // struct msghdr, msg_len and padding
	offMsgLen     = 56
)

// recvmmsg: ret messages were received; the one after them may have failed half
// way, its error is kept for the next call. With a timeout the remaining
// time is written back.
func (o *outputs) recvmmsg() {
	o.arg(4, 16)
	if o.clean() || o.untouched(true) {
		return
	}
	count := min(uint64(uint32(o.args[2])), MaxIov)
	if o.errno == 0 {
		count = min(uint64(o.ret)+1, count)
	}
	for i := range count {
		if o.opaque {
			return
		}
		addr := o.args[1] + i*sizeofMmsghdr
		got := int64(-1)
		if n, ok := readUint32(o.m, addr+offMsgLen); ok && o.errno == 0 && int64(i) < o.ret {
			got = int64(n)
		}
		o.add(addr+offMsgLen, 4)
		o.messageOf(addr, got)
	}
}

// messageOf lists one message of a batch, by its own count.
func (o *outputs) messageOf(addr uint64, got int64) {
	errno := o.errno
	o.errno = 0
	if got < 0 {
		o.errno = EFAULT // any that means "listed whole"
	}
	o.message(addr, got)
	o.errno = errno
}

// sendmmsg writes the msg_len of each message sent.
func (o *outputs) sendmmsg() {
	if o.errno == 0 {
		for i := range min(uint64(o.ret)+1, MaxIov) {
			o.add(o.args[1]+i*sizeofMmsghdr+offMsgLen, 4)
		}
	}
}

// getsockopt: after the call *optlen is the length of the answer, or the room
// when it failed. Two options are not bytes: a socket filter is counted in
// instructions, and TCP_ZEROCOPY_RECEIVE maps pages of the network.
func (o *outputs) getsockopt() {
	const tcpZerocopyReceive, soGetFilter = 35, 26
	if o.clean() {
		return
	}
	level, name := int32(o.args[1]), int32(o.args[2])
	if level == 6 && name == tcpZerocopyReceive {
		o.opaque = true
		return
	}
	o.arg(4, 4)
	n, ok := readUint32(o.m, o.args[4])
	if !ok || int32(n) < 0 {
		return
	}
	size := uint64(n)
	if level == SOL_SOCKET && name == soGetFilter {
		size *= 8
	}
	o.arg(3, size)
}
