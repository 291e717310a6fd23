package abi

import "encoding/binary"

// What the calls that may block write, as a redirection sees it. Regular rows,
// and irregular ones whose kinds say all, go by their kinds.

// redirects has the functions of the rows that need one.
var redirects = map[int64]func(*redirector){
	SYS_READ:         byKinds(SYS_READ),
	SYS_READV:        byKinds(SYS_READV),
	SYS_PREADV:       byKinds(SYS_PREADV),
	SYS_PREADV2:      byKinds(SYS_PREADV2),
	SYS_WAITID:       byKinds(SYS_WAITID),
	SYS_EPOLL_WAIT:   byKinds(SYS_EPOLL_WAIT),
	SYS_EPOLL_PWAIT:  byKinds(SYS_EPOLL_PWAIT),
	SYS_EPOLL_PWAIT2: byKinds(SYS_EPOLL_PWAIT2),
	SYS_POLL:         (*redirector).poll,
	SYS_PPOLL:        (*redirector).ppoll,
	SYS_SELECT:       (*redirector).selectSets,
	SYS_PSELECT6:     (*redirector).selectSets,
	SYS_RECVFROM:     (*redirector).recvfrom,
	SYS_RECVMSG:      (*redirector).recvmsg,
	SYS_RECVMMSG:     (*redirector).recvmmsg,
	SYS_SENDMMSG:     (*redirector).sendmmsg,
	SYS_MSGRCV:       (*redirector).msgrcv,
}

func byKinds(nr int64) func(*redirector) {
	return func(d *redirector) { d.kinds(&syscalls[nr]) }
}

// kinds wants what a row's argument kinds say.
func (d *redirector) kinds(s *Syscall) {
	lengths := outputs{args: d.args}
	for i := range s.Args {
		a := &s.Args[i]
		size := uint64(a.Size)
		switch a.Kind {
		case KindOut, KindInOut:
			count := uint64(1)
			switch a.Len {
			case LenOne:
			case LenN:
				count = uint64(a.N)
			case LenArg, LenRet:
				count = min(lengths.length(s, a.Of), 2*MaxOutput/size)
			}
			if a.Len == LenRet {
				d.buffer(i, count*size, size, 0)
			} else {
				d.arg(i, count*size)
			}
		case KindSockOut:
			d.sockaddr(i, int(a.Of))
		case KindIovOut:
			d.vector(slot{inArgs, i}, d.args[i], d.args[a.Of], moveCounted, d.counted(1, 0))
		default: // not written
		}
	}
}

// sockaddr: the kernel reads the room when it has the address. Without an address
// it does not look at the length.
func (d *redirector) sockaddr(addr, lenPtr int) (room int32) {
	if d.args[addr] == 0 {
		return 0
	}
	n, ok := readUint32(d.m, d.args[lenPtr])
	if !ok {
		d.refuse(whyFault)
		return 0
	}
	d.arg(lenPtr, 4)
	d.arg(addr, uint64(min(max(int32(n), 0), sizeofSockaddrStorage)))
	return int32(n)
}

// vector wants the buffers of an iovec array, and copies the array.
func (d *redirector) vector(at slot, addr, count uint64, rule moveRule, c int) {
	count = uint64(uint32(count)) // import_iovec takes an unsigned int
	if count > MaxIov {
		d.refuse(whyRefused)
	}
	if count == 0 || d.why != "" {
		return
	}
	i, ok := d.block(at, addr, count*16)
	if !ok {
		return
	}
	data := d.blocks[i].data
	for off := 0; off < len(data); off += 16 {
		base, n := binary.LittleEndian.Uint64(data[off:]), binary.LittleEndian.Uint64(data[off+8:])
		if base == 0 && n != 0 {
			d.refuse(whyFault) // the buffers before it are filled
		}
		d.out(want{at: slot{i, off}, addr: base, n: n, rule: rule, count: c})
	}
}

// poll: the kernel writes revents of each descriptor.
func (d *redirector) poll() {
	const sizeofPollfd, maxFiles = 8, 1 << 20 // fs.nr_open
	n := uint64(uint32(d.args[1]))
	if n > maxFiles {
		d.refuse(whyLong)
		return
	}
	d.out(want{at: slot{inArgs, 0}, addr: d.args[0], n: n * sizeofPollfd, stride: sizeofPollfd,
		each: piece{6, 2, moveWhole, d.counted(0, 0)}})
}

func (d *redirector) ppoll() {
	d.poll()
	d.timeLeft(2)
}

// timeLeft: the remaining time, which is not written, without an error, where it
// cannot be (fs/select.c, poll_select_finish). There the kernel gets the program's own.
func (d *redirector) timeLeft(i int) {
	if d.writable(d.args[i], 16) {
		d.arg(i, 16)
	}
}

// selectSets: the kernel takes no more words of the sets than the process has room
// for descriptors, whatever the first argument says; what it did not write did not
// change.
func (d *redirector) selectSets() {
	d.timeLeft(4)
	n := int32(d.args[0])
	if n <= 0 {
		return
	}
	for i := 1; i <= 3; i++ {
		d.arg(i, (uint64(n)+63)/64*8)
	}
}

// msgrcv: the type, and as many bytes as the result says.
func (d *redirector) msgrcv() {
	const sizeofType = 8
	if int64(d.args[2]) < 0 {
		d.refuse(whyRefused)
		return
	}
	d.buffer(1, sizeofType+d.args[2], 1, sizeofType)
}

// The flag of a receive after which the result is the packet's length and not
// what was written; TCP writes nothing at all.
const msgTrunc = 0x20

// receiveRule says how the data of a receive is copied back. Where the result does not
// tell how much there is, the scratch is filled before.
func receiveRule(flags uint64) moveRule {
	if flags&msgTrunc != 0 {
		return moveChanged
	}
	return moveCounted
}

func (d *redirector) recvfrom() {
	rule := receiveRule(d.args[3])
	if d.sockaddr(4, 5) < 0 {
		rule = moveChanged // EINVAL, after the data
	}
	if d.args[4] != 0 && overlap(d.args[1], d.args[2], d.args[5], 4) {
		d.refuse(whyOverlap) // The room is read after the data is there.
	}
	d.out(want{at: slot{inArgs, 1}, addr: d.args[1], n: d.args[2], rule: rule, count: d.counted(1, 0)})
}

func (d *redirector) recvmsg() {
	i, ok := d.block(slot{inArgs, 1}, d.args[1], sizeofMsghdr)
	if !ok {
		return
	}
	d.message(i, 0, receiveRule(d.args[2]), d.counted(1, 0))
	name := binary.LittleEndian.Uint64(d.blocks[i].data)
	if name != 0 && d.overlapsOutput(d.args[1]+offNameLen, 4) {
		d.refuse(whyOverlap) // The room is read after the data is there.
	}
}

// Offsets in struct user_msghdr (include/linux/socket.h).
const (
	offNameLen    = 8
	offIov        = 16
	offControl    = 32
	offControlLen = 40
	offMsgFlags   = 48
)

// message wants what a receive writes through the struct msghdr at off in block i.
// The kernel writes three fields of it.
func (d *redirector) message(i, off int, rule moveRule, c int) {
	h := d.blocks[i].data[off : off+sizeofMsghdr]
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(h[at:]) }
	name, nameLen := word(0), int32(binary.LittleEndian.Uint32(h[offNameLen:]))
	if name != 0 {
		if nameLen < 0 {
			d.refuse(whyRefused)
			return
		}
		d.out(want{at: slot{i, off}, addr: name, n: uint64(min(nameLen, sizeofSockaddrStorage))})
		d.written(i, piece{uint64(off + offNameLen), 4, moveWhole, c})
	}
	d.out(want{at: slot{i, off + offControl}, addr: word(offControl), n: word(offControlLen)})
	d.written(i, piece{uint64(off + offControlLen), 8, moveWhole, c})
	d.written(i, piece{uint64(off + offMsgFlags), 4, moveWhole, c})
	d.vector(slot{i, off + offIov}, word(offIov), word(offIov+8), rule, c)
}

// batch copies the array of a call for many messages.
func (d *redirector) batch() (i, count int, ok bool) {
	n := min(uint64(uint32(d.args[2])), MaxIov)
	if n == 0 {
		return 0, 0, false
	}
	i, ok = d.block(slot{inArgs, 1}, d.args[1], n*sizeofMmsghdr)
	return i, int(n), ok
}

// recvmmsg: the kernel reads each header when it has written the messages before
// it. A message has its own count.
func (d *redirector) recvmmsg() {
	d.arg(4, 16)
	array, n, ok := d.batch()
	for k := 0; ok && k < n && d.why == ""; k++ {
		off := k * sizeofMmsghdr
		c := d.batchCount(slot{array, off + offMsgLen}, k)
		d.written(array, piece{uint64(off + offMsgLen), 4, moveWhole, c})
		d.message(array, off, receiveRule(d.args[3]), c)
	}
	for i := range d.blocks {
		if b := &d.blocks[i]; d.overlapsOutput(b.from, uint64(len(b.data))) || i != array && d.inArray(b.from, uint64(len(b.data))) {
			d.refuse(whyOverlap)
		}
	}
}

// inArray reports whether a byte of a range is in the array of messages.
func (d *redirector) inArray(addr, n uint64) bool {
	return overlap(addr, n, d.blocks[0].from, uint64(len(d.blocks[0].data)))
}

// batchCount returns the count of message k, whose word is at a slot.
func (d *redirector) batchCount(at slot, k int) int {
	d.counts = append(d.counts, moveCount{unit: 1, index: int64(k), batch: true})
	if d.words == nil {
		d.words = map[int]slot{}
	}
	d.words[len(d.counts)-1] = at
	return len(d.counts) - 1
}

// sendmmsg: the kernel writes each message's msg_len, and reads the next message
// then.
func (d *redirector) sendmmsg() {
	array, n, ok := d.batch()
	for k := 0; ok && k < n && d.why == ""; k++ {
		off := k * sizeofMmsghdr
		d.written(array, piece{uint64(off + offMsgLen), 4, moveWhole, d.batchCount(slot{array, off + offMsgLen}, k)})
		if d.sendsArray(d.blocks[array].data[off : off+sizeofMsghdr]) {
			d.refuse(whyOverlap)
		}
	}
}

// sendsArray reports whether a message that is sent contains a part of the array
// of messages.
func (d *redirector) sendsArray(h []byte) bool {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(h[at:]) }
	iov, count := word(offIov), min(word(offIov+8), MaxIov)
	if d.inArray(word(0), uint64(binary.LittleEndian.Uint32(h[offNameLen:]))) || d.inArray(word(offControl), word(offControlLen)) ||
		d.inArray(iov, count*16) {
		return true
	}
	for i := range count {
		base, ok1 := readUint64(d.m, iov+i*16)
		n, ok2 := readUint64(d.m, iov+i*16+8)
		if !ok1 || !ok2 {
			return false // the kernel cannot read it either
		}
		if d.inArray(base, n) {
			return true
		}
	}
	return false
}
