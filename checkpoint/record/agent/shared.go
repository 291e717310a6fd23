package agent

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"

	"vplay/checkpoint/abi"
)

// What the agent and the supervisor share, as the supervisor sees it. It may look at all of it
// while the thread is stopped, and at the phase, and set attention, at any time.

// Shared is the agent's mapping as the supervisor has it mapped.
type Shared []byte

// Phase is how far the agent is with the call that is in progress.
type Phase uint32

// The phases.
const (
	None    Phase = iota // no call is in progress
	Entered              // the program's registers are saved, the call is not made
	Made                 // Result is the call's
	Waits                // as Entered, and the call may wait, which a signal may end
	Tells                // the call returns 0, and some of the time that it asks for is in memory: Time has it all
)

// regWords is how many registers are saved: RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15,
// RIP, RFLAGS, and the base of FS.
const regWords = 19

// Regs are the registers of a program at the entry of a call, in the order of regWords. RIP is
// behind the SYSCALL instruction, and RCX and R11 are what that leaves there.
type Regs [regWords]uint64

// Registers by number. Those below RIP have the numbers of the instruction set.
const (
	regRAX = 0
	regRCX = 1
	regRDX = 2
	regR11 = 11
	RIP    = 16
	RFLAGS = 17
	FS     = 18 // the base
)

// argRegs are the registers of a call's arguments.
var argRegs = [6]uint8{7, 6, 2, 10, 8, 9}

// Arg returns an argument of the call, by number from 0 to 5.
func (r *Regs) Arg(i int) uint64 { return r[argRegs[i]] }

// Args returns the arguments of the call.
func (r *Regs) Args() (args [6]uint64) {
	for i := range args {
		args[i] = r.Arg(i)
	}
	return args
}

// Init prepares new memory for an agent whose mapping begins at base in the program. What all threads
// have in common is where the first agent's mapping begins.
func (s Shared) Init(base, common uint64) {
	copy(s, blob)
	putRows(s[rows : rows+rowCount*rowSize])
	s.put(blockEntry, base+Places().Entry)
	s.put(blockSelf, base+Block)
	s.put(blockCommon, common+Block)
}

func (s Shared) at(offset int) uint64     { return binary.LittleEndian.Uint64(s[Block+offset:]) }
func (s Shared) put(offset int, v uint64) { binary.LittleEndian.PutUint64(s[Block+offset:], v) }

// say sets a word of the block to 1 or 0.
func (s Shared) say(offset int, yes bool) {
	n := uint32(0)
	if yes {
		n = 1
	}
	s.word(offset).Store(n)
}

// Phase returns how far the agent is.
func (s Shared) Phase() Phase { return Phase(s.word(blockPhase).Load()) }

// Attend has the agent leave the next call to the supervisor, and those after it until it is
// told not to.
func (s Shared) Attend(on bool) {
	s.say(blockAttention, on)
}

// Result returns the result of the call in progress, in phase Made.
func (s Shared) Result() int64 { return int64(s.at(blockResult)) }

// timeSize is the size of struct timespec, and of struct timeval.
const timeSize = 16

// Time returns what the call in progress stores in memory, and where, in phase Tells. It stays the agent's.
func (s Shared) Time() (b []byte, addr uint64) {
	r := s.Regs()
	addr = r.Arg(1)
	if r[regRAX] == abi.SYS_GETTIMEOFDAY {
		addr = r.Arg(0)
	}
	return s[Block+blockProbe:][:timeSize], addr
}

// Regs returns the program's registers at the entry of the call in progress.
func (s Shared) Regs() (r Regs) {
	for i := range r {
		r[i] = s.at(blockRegs + 8*i)
	}
	return r
}

// Tried reports whether the call in progress, with this result, counts as not made: a wait for
// events that was tried without waiting, and there were none.
func (s Shared) Tried(result int64) bool {
	return result == 0 && s.at(blockFourth) != s.at(blockRegs+8*10)
}

// Insn returns the size of the RDTSC or RDTSCP instruction with which the thread has come to the agent; 0 where it is a call. Regs are then
// those behind the instruction, but for RAX, RDX, RCX and R11: what the last two were says OwnRegs.
func (s Shared) Insn() uint64 { return s.at(blockSize) }

// OwnRegs returns the program's RCX and R11 before RDTSC or RDTSCP.
func (s Shared) OwnRegs() (rcx, r11 uint64) { return s.at(blockOwnRCX), s.at(blockOwnR11) }

// TSC returns what that has given, where Noted: the time-stamp counter, and what RDTSCP has in RCX.
func (s Shared) TSC() (tsc, aux uint64) { return s.at(blockTSC), s.at(blockTSCAux) }

// Aux says what RDTSCP gives in RCX.
func (s Shared) Aux(aux uint32) { s.put(blockTSCAux, uint64(aux)) }

// TSCIs says, of all threads, what the time-stamp counter is: tsc at a time, in nanoseconds of CLOCK_MONOTONIC, and rate / 2^32 more in
// each nanosecond from there on.
func (s Shared) TSCIs(tsc uint64, time int64, rate uint64) {
	s.put(blockTSCBegan, tsc)
	s.put(blockTSCTime, uint64(time))
	s.put(blockTSCRate, rate)
}

// Patient says whether the thread may wait in a call, because no other is ready. What Phase returns afterwards is what
// the agent has decided: in phase Waits it may do so all the same.
func (s Shared) Patient(on bool) {
	s.say(blockPatient, on)
}

// Hope says until when by CLOCK_MONOTONIC, in nanoseconds, the thread may wait for a little at each call that would wait, though another
// process that shares its memory is ready; 0 says that it may not.
func (s Shared) Hope(until int64) { s.put(blockUntil, uint64(until)) }

// Clock says where the vDSO's clock_gettime is, which the thread may call in the place of the kernel; 0 for that it may not. A thread in
// a phase but None that is found there is in the agent.
func (s Shared) Clock(at uint64) { s.put(blockClock, at) }

// Together says which signals, as a mask, the thread blocks all of, if closed is set, or none. The agent changes the mask so that it stays
// so, and not at all where there are none such.
func (s Shared) Together(signals uint64, closed bool) {
	s.put(blockTogether, signals)
	s.say(blockMasked, false)
	s.say(blockClosed, closed)
}

// Masked reports whether the agent may have changed the signal mask since Together.
func (s Shared) Masked() bool { return s.word(blockMasked).Load() != 0 }

// Closed reports whether the signals of Together may be blocked. Attend is to come first: then they are blocked at no call from here on.
func (s Shared) Closed() bool { return s.word(blockClosed).Load() != 0 }

// Began returns the time, by CLOCK_MONOTONIC in nanoseconds, at which the call in progress began, if it has a
// time-out and waits; 0 for others.
func (s Shared) Began() int64 { return int64(s.at(blockBegan)) }

// Noted reports whether the call in progress is in the ring.
func (s Shared) Noted() bool { return s.at(blockHead) != s.at(blockHead0) }

// Rest says that the thread is in no call.
func (s Shared) Rest() { binary.LittleEndian.PutUint32(s[Block+blockPhase:], uint32(None)) }

// Empty empties the ring. Other threads may make calls from then on, until the thread goes on.
func (s Shared) Empty() {
	s.word(blockStood).Store(0)
	s.put(blockReferred, 0)
	s.put(blockHead, 0)
	s.put(blockHead0, 0)
	clear(s[Block+blockLast : Block+blockLast+8*regWords])
}

// FSBase says what the thread's base of FS is, for a CPU that has no FSGSBASE: it is so until the supervisor says otherwise.
func (s Shared) FSBase(base uint64) {
	s.put(blockFS, base)
	s.say(blockFSByStops, true)
}

// Supervise says whether the thread runs under the eyes of the supervisor. When it runs and does not,
// the supervisor is gone, and the agent leaves the program.
func (s Shared) Supervise(on bool) {
	s.say(blockSupervised, on)
}

// Unsupervised returns what is to be written where in the memory of a program whose recorder is gone, for a thread with that base of
// GS, to have the agent leave it.
func Unsupervised(gsBase uint64) (at uint64, word []byte) {
	return gsBase + blockSupervised, make([]byte, 4)
}

// OwnAction returns where the program's action for SIGSYS is that Guest was given, of a program whose recorder is gone, and which has the
// agent of all threads at an address.
func OwnAction(at uint64) uint64 { return at + Block + blockGuest }

// Native says what the thread would be without a recorder: the CPUs that it would have, as
// sched_setaffinity(2) has them, and which instructions would not fault.
func (s Shared) Native(affinity []byte, tsc, cpuid bool) {
	copy(s[Block+blockAffinity:Block+blockAffinity+affinitySize], affinity)
	s[Block+blockTraps] = 0
	if tsc {
		s[Block+blockTraps] |= 1
	}
	if cpuid {
		s[Block+blockTraps] |= 2
	}
}

// What follows is said of all threads, in the first agent's memory.

// Action is what rt_sigaction(2) takes: handler, flags, restorer and mask.
type Action [4]uint64

// Guest writes down the action for SIGSYS that the program wants, and returns its offset in the mapping.
func (s Shared) Guest(a Action) (offset uint64) { return s.putAction(blockGuest, a) }

// Healer writes down the agent's own action for SIGSYS, and returns its offset in the mapping, which begins at
// base in the program.
func (s Shared) Healer(base uint64) (offset uint64) {
	const saSiginfo, saRestorer, saOnstack, saNodefer = 4, 0x04000000, 0x08000000, 0x40000000
	p := Places()
	return s.putAction(blockAction, Action{base + p.Handler, saSiginfo | saRestorer | saOnstack | saNodefer, base + p.Restorer, 0})
}

func (s Shared) putAction(at int, a Action) (offset uint64) {
	for i, v := range a {
		s.put(at+8*i, v)
	}
	return Block + uint64(at)
}

// Many says whether there are other threads.
func (s Shared) Many(are bool) {
	s.say(blockMany, are)
}

// Timed says whether each record is to have the time of its call.
func (s Shared) Timed(on bool) {
	s.say(blockTimed, on)
}

// mappedNowhere is a bit of what is known of a descriptor, as agent.c has it.
const mappedNowhere = 1

// AllowWrites says that writing to a descriptor changes no mapped file, as long as it is not
// closed.
func (s Shared) AllowWrites(fd int32) {
	if fd >= 0 && fd < descriptors {
		s[Block+blockAbout+int(fd)] |= mappedNowhere
	}
}

// File is a file, by what stat(2) says of it.
type File struct{ Dev, Inode uint64 }

// ListMapped says which files are mapped, and that no other process maps any, until ForbidWrites. The agent finds out by itself then
// which writes change memory. Where there are more than it has room for, it takes any file for mapped.
func (s Shared) ListMapped(files []File) {
	if len(files) > mappedCount {
		s.AnyMapped()
		return
	}
	for i, f := range files {
		s.put(blockMapped+16*i, f.Dev)
		s.put(blockMapped+16*i+8, f.Inode)
	}
	s.word(blockListed).Store(uint32(len(files)) + 1)
}

// anyFile is in the place of the number of files.
const anyFile = mappedCount + 2

// AnyMapped says that any file may be mapped, until ForbidWrites. Pipes and sockets are not.
func (s Shared) AnyMapped() { s.word(blockListed).Store(anyFile) }

// HasList reports whether ListMapped holds.
func (s Shared) HasList() bool {
	n := s.word(blockListed).Load()
	return n != 0 && n != anyFile
}

// ForbidWrites takes back what AllowWrites, ListMapped and AnyMapped have said, and what the agent knows of which descriptors wait.
func (s Shared) ForbidWrites() {
	s.word(blockListed).Store(0)
	clear(s[Block+blockAbout : Block+blockAbout+descriptors])
}

// LeastReferred is how many bytes a call must have read for the agent to refer to them.
const LeastReferred = 1024

// Refer says that what is read from a descriptor is in a file that does not change, so that the log need only say where. It holds until the
// descriptor is closed, or Forget is called.
func (s Shared) Refer(fd int32) {
	if CanRefer(fd) {
		s[referred+int(fd)] = 1
		s.say(blockReferring, true)
	}
}

// CanRefer reports whether the agent has room for what Refer says of a descriptor.
func CanRefer(fd int32) bool { return fd >= 0 && fd < descriptors }

// Forget takes back what Refer has said of a descriptor, which must be one that CanRefer. Any thread may call it, at any time: the agent
// looks when it has read, so what it refers to was read before.
func (s Shared) Forget(fd int32) { s[referred+int(fd)] = 0 }

// ForgetAll takes back all that Refer has said.
func (s Shared) ForgetAll() {
	clear(s[referred : referred+descriptors])
	s.say(blockReferring, false)
}

// AddWritable says that all of [start,end) can be written. It takes the place of what it has in common with, else of what was
// said first.
func (s Shared) AddWritable(start, end uint64) {
	words := s[Block+blockWritable : Block+blockWritable+16*writableCount]
	gap := 16 * (writableCount - 1)
	for at := 0; at < gap; at += 16 {
		if from, to := s.writable(at); from < end && start < to {
			gap = at
		}
	}
	copy(words[16:], words[:gap])
	binary.LittleEndian.PutUint64(words, start)
	binary.LittleEndian.PutUint64(words[8:], end)
}

// writable returns the range at an offset of those that can be written.
func (s Shared) writable(at int) (start, end uint64) {
	return s.at(blockWritable + at), s.at(blockWritable + at + 8)
}

// IsWritable reports whether AddWritable has named a range with all of [start,end).
func (s Shared) IsWritable(start, end uint64) bool {
	for at := 0; at < 16*writableCount; at += 16 {
		if from, to := s.writable(at); from <= start && end <= to {
			return true
		}
	}
	return false
}

// ForgetWritable takes back what AddWritable has said of [start,end). Of a range that has memory on both sides the part before it is kept.
func (s Shared) ForgetWritable(start, end uint64) {
	for at := 0; at < 16*writableCount; at += 16 {
		from, to := s.writable(at)
		switch {
		case from >= end || start >= to:
			continue
		case from < start:
			to = start
		case to > end:
			from = end
		default:
			from, to = 0, 0
		}
		s.put(blockWritable+at, from)
		s.put(blockWritable+at+8, to)
	}
}

// Jumps is how many jumps the agent can take out of the program when the supervisor is gone.
const Jumps = jumpSlots

// PutJump says that the program's code at addr is written over, and what it has there, at most
// 8 bytes; with addr 0 that it is not. The slot is a number below Jumps.
func (s Shared) PutJump(slot int, addr uint64, own []byte) {
	b := s[jumps+jumpSlotSize*slot:]
	copy(b[8:jumpSlotSize], own)
	binary.LittleEndian.PutUint64(b, addr)
}

// Jump is where a program's code is written over, and what it has there.
type Jump struct {
	Addr uint64
	Own  []byte // 8 bytes, of which PutJump was given the first
}

// JumpsOf returns the jumps of a program whose recorder is gone, and which has the agent of all threads at an address. read
// fills its argument with the program's memory, or returns false. There are none where no agent is at that address.
func JumpsOf(at uint64, read func(addr uint64, b []byte) bool) (list []Jump) {
	var self [8]byte
	table := make([]byte, jumpSlotSize*jumpSlots)
	if !read(at+Block+blockSelf, self[:]) || binary.LittleEndian.Uint64(self[:]) != at+Block || !read(at+jumps, table) {
		return nil
	}
	for ; len(table) > 0; table = table[jumpSlotSize:] {
		if addr := binary.LittleEndian.Uint64(table); addr != 0 {
			list = append(list, Jump{addr, table[8:jumpSlotSize:jumpSlotSize]})
		}
	}
	return list
}

// Output is bytes that the kernel has written for a call.
type Output struct {
	Addr uint64
	Data []byte // of the log
}

// Reference is bytes of a file that were read, from a descriptor that Refer has named.
type Reference struct {
	Addr, Len uint64
	Offset    int64
	FD        int32
}

// Record is a call that the agent has made, or RDTSC or RDTSCP that it has done.
type Record struct {
	Regs    Regs // at its entry
	Result  int64
	Insn    uint64    // the size of RDTSC or RDTSCP, 0 for a call. RIP is behind it, Result the time-stamp counter
	Aux     uint32    // what RDTSCP gave in RCX
	Time    int64     // of CLOCK_MONOTONIC, in nanoseconds, when the call had been made; 0 where it was not asked for
	Outs    []Output  // valid until the next record
	Refers  bool      // what the kernel has written is not here
	Written Reference // but there
}

// errRing says that the ring is damaged, which a program that writes where it should not can do.
var errRing = errors.New("the agent's log is damaged")

// Take returns a copy of the records in the ring, made by clone, for Records, and calls f for each. Where the ring is damaged it
// returns those before the damage, and an error.
func (s Shared) Take(clone func([]byte) []byte, f func(*Record)) ([]byte, error) {
	head := s.at(blockHead)
	if head > ringSize {
		return nil, errRing
	}
	var r Record
	log := clone(s[ring : ring+head]) // the program can write to the ring
	for at := 0; at < len(log); {
		n, ok := r.parse(log[at:])
		if !ok {
			return log[:at], errRing
		}
		f(&r)
		at += n
	}
	return log, nil
}

// Records calls f for each record of what Take has returned, in order. Outs refer to the log.
func Records(log []byte, f func(*Record)) {
	var r Record
	for len(log) > 0 {
		n, ok := r.parse(log)
		if !ok {
			return
		}
		f(&r)
		log = log[n:]
	}
}

// recordHead is the size of what each record has, of which agent.c tells.
const recordHead = 16

// What a record has, above a bit for each register that is there, as agent.c has it.
const (
	outsShift  = regWords // 3 bits
	refers     = 1 << 23
	timed      = 1 << 24
	wideResult = 1 << 25
	insnShift  = 26 // 2 bits
)

// parse reads the record at the start of b, the one before which r has, and returns its size.
func (r *Record) parse(b []byte) (size int, ok bool) {
	if len(b) < recordHead {
		return 0, false
	}
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	size, what, wide, result := int(word(0)), word(4), word(8), word(12)
	narrow := what & (1<<regWords - 1) &^ wide
	at := recordHead + 8*bits.OnesCount32(what&(wideResult|timed)) + 8*bits.OnesCount32(wide) + 4*bits.OnesCount32(narrow)
	r.Insn, r.Aux = uint64(what>>insnShift&3), result
	if r.Insn != 0 {
		at += 16
	}
	if at = (at + 7) &^ 7; size < at || size > len(b) || wide>>regWords != 0 {
		return 0, false
	}
	from := b[recordHead:]
	next := func() (v uint64) {
		v, from = binary.LittleEndian.Uint64(from), from[8:]
		return v
	}
	if r.Result = int64(int32(result)); what&wideResult != 0 {
		r.Result = int64(next())
	}
	if r.Time = 0; what&timed != 0 {
		r.Time = int64(next())
	}
	var rcx, r11 uint64
	if r.Insn != 0 {
		rcx, r11 = next(), next()
	}
	for ; wide != 0; wide &= wide - 1 {
		r.Regs[bits.TrailingZeros32(wide)] = next()
	}
	for ; narrow != 0; narrow &= narrow - 1 {
		reg := &r.Regs[bits.TrailingZeros32(narrow)]
		*reg, from = *reg&^math.MaxUint32|uint64(binary.LittleEndian.Uint32(from)), from[4:]
	}
	if r.Regs[regRCX], r.Regs[regR11] = r.Regs[RIP], r.Regs[RFLAGS]; r.Insn != 0 {
		r.Regs[regRCX], r.Regs[regR11] = rcx, r11
	}
	return size, r.parseOuts(b[at:size], what)
}

// parseOuts reads the outputs of a record.
func (r *Record) parseOuts(b []byte, what uint32) bool {
	r.Outs, r.Refers = r.Outs[:0], what&refers != 0
	for outs := what >> outsShift & 7; outs > 0; outs-- {
		if len(b) < 8 {
			return false
		}
		n, arg := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if b = b[8:]; arg >= uint32(len(argRegs)) {
			return false
		}
		addr := r.Regs.Arg(int(arg))
		if r.Refers {
			if len(b) != 8 {
				return false
			}
			r.Written = Reference{Addr: addr, Len: uint64(n), Offset: int64(binary.LittleEndian.Uint64(b)), FD: int32(r.Regs.Arg(0))}
			return r.Written.Offset >= 0
		}
		padded := (uint64(n) + 7) &^ 7
		if padded > uint64(len(b)) {
			return false
		}
		r.Outs = append(r.Outs, Output{addr, b[:n:n]})
		b = b[padded:]
	}
	return !r.Refers
}
