package race

import "vplay/checkpoint"

// Access is an access of a thread to bytes of memory by one instruction.
type Access struct {
	TID   int32
	PC    uint64
	Addr  uint64
	Size  int // bytes
	Store bool
	At    checkpoint.Position
}

// Race is a pair of accesses that nothing orders. First was executed before Second. Addr and Size of First are the
// bytes of it in the word of 8 bytes that both have accessed.
type Race struct{ First, Second Access }

// Options are what a Detector needs to know.
type Options struct {
	// Report is called with each race, once for each pair of instructions.
	Report func(r *Race)
	// IsAtomic, when set, is asked before a race is reported whether what both have accessed is an atomic variable: then
	// its loads acquire and its stores release, whatever instructions they are.
	IsAtomic func(r *Race) bool
	// MaxBytes bounds shadow memory, in bytes; 0: 192 MiB. When it is full all is forgotten.
	MaxBytes int
}

// Key names something that synchronises: a lock or the like by its address, and which of
// several things there it is.
type Key struct {
	Addr uint64
	Kind string
}

// Detector finds races. It is not for use by several goroutines at once.
type Detector struct {
	o       Options
	threads map[int32]*thread // those that have not been joined
	slots   []uint32          // by slot, the last time that a thread of it that was joined has had
	free    []uint16          // slots of threads that were joined
	last    *thread           // found last
	several bool              // there has been more than one thread
	syncs   map[Key]clock     // what was released
	shadow  shadow
	told    map[pair]bool

	forgotten int
}

// pair is two instructions that race.
type pair struct {
	first, second uint64
	stores        [2]bool
}

// Bounds of what is kept, for recordings that are made to do harm.
const (
	defaultBytes = 192 << 20
	maxSyncs     = 1 << 18
	maxTold      = 1 << 16
)

// New returns a Detector that knows of no thread.
func New(o Options) *Detector {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultBytes
	}
	d := &Detector{o: o, told: map[pair]bool{}}
	d.Reset()
	return d
}

// Reset forgets all threads and accesses: the process has become another program.
func (d *Detector) Reset() {
	d.threads, d.slots, d.free, d.last, d.several = map[int32]*thread{}, nil, nil, nil, false
	d.forget()
	d.forgotten = 0
}

// forget forgets accesses and what was released. Accesses from now on are ordered by what is acquired and released from
// now on, so that this makes no race that there is not.
func (d *Detector) forget() {
	d.syncs = map[Key]clock{}
	d.shadow = shadow{lines: map[uint64]*line{}}
	d.forgotten++
}

// Forgotten returns how often all accesses were forgotten because there were too many to keep.
func (d *Detector) Forgotten() int { return d.forgotten }

// Several reports whether there has been more than one thread.
func (d *Detector) Several() bool { return d.several }

// Knows reports whether the thread is known.
func (d *Detector) Knows(tid int32) bool { return d.threads[tid] != nil }

// Begin adds a thread that was there when the recording began.
func (d *Detector) Begin(tid int32) {
	if d.threads[tid] == nil {
		d.newThread(tid)
	}
}

// AcquireAll orders what a thread does from now on behind all that was done: it may have waited for anything.
func (d *Detector) AcquireAll(tid int32) { d.acquireAll(d.thread(tid)) }

// Fork tells that parent has created child, which has not run.
func (d *Detector) Fork(parent, child int32) {
	p := d.thread(parent)
	if old := d.threads[child]; old != nil {
		d.end(old) // the kernel has used its number again
	}
	c := d.newThread(child)
	own := c.now()
	c.knows = c.knows.join(p.knows)
	c.knows[c.slot] = own
	p.tick()
}

// Join tells that waiter has waited for the end of child. One that is not known has no effect.
func (d *Detector) Join(waiter, child int32) {
	w, c := d.thread(waiter), d.threads[child]
	if c == nil || c == w {
		return
	}
	w.knows = w.knows.join(c.knows)
	d.end(c)
}

// end forgets a thread that has ended.
func (d *Detector) end(t *thread) {
	d.slots[t.slot] = max(d.slots[t.slot], t.now())
	d.free = append(d.free, t.slot)
	delete(d.threads, t.tid)
	d.last = nil
}

// Release tells that a thread lets others who acquire k know what it has done.
func (d *Detector) Release(tid int32, k Key) {
	if len(d.syncs) >= maxSyncs {
		d.forget()
	}
	t := d.thread(tid)
	d.syncs[k] = d.syncs[k].join(t.knows)
	t.tick()
}

// Acquire orders what a thread does from now on behind what was released to k.
func (d *Detector) Acquire(tid int32, k Key) {
	if c, ok := d.syncs[k]; ok {
		t := d.thread(tid)
		t.knows = t.knows.join(c)
	}
}

// Drop forgets what was released to k: it is no more.
func (d *Detector) Drop(k Key) { delete(d.syncs, k) }

// Clear tells that the bytes from start up to end are new memory, or none any more.
func (d *Detector) Clear(start, end uint64) { d.shadow.clear(start, end) }

// IsShared reports whether accesses near an address were kept. Who knows that memory is one thread's own
// need tell its accesses only where another thread's were.
func (d *Detector) IsShared(addr uint64) bool { return d.shadow.find(addr) != nil }

// Access tells an access; locks says that the instruction has the bus locked.
func (d *Detector) Access(a *Access, locks bool) {
	if !d.several || a.Size <= 0 {
		return
	}
	t := d.thread(a.TID)
	for addr, left := a.Addr, uint64(a.Size); left > 0; {
		off := addr % wordSize
		n := min(wordSize-off, left)
		mask := uint8(1<<n-1) << off
		l := d.shadow.make(addr)
		d.word(t, &l[addr%lineBytes/wordSize], a, addr-off, mask, locks)
		addr += n
		left -= n
	}
	if d.shadow.bytes > d.o.MaxBytes && d.shadow.weigh() > d.o.MaxBytes/2 {
		d.forget()
	}
}

// word is Access for the bytes of one word, at base.
func (d *Detector) word(t *thread, w *word, a *Access, base uint64, mask uint8, locks bool) {
	if locks {
		w.makeAtomic(d, t, mask)
	}
	if w.atomic != nil && w.atomic.mask&mask != 0 {
		t.sync(w.atomic, !a.Store || locks, a.Store || locks)
		return
	}
	if e := &w.first; len(w.more) == 0 && e.time == t.now() && e.slot == t.slot && e.mask&mask == mask && (e.store || !a.Store) {
		return // an access at the same time is kept, and nobody else was here since
	}
	isKept := false
	if w.first.mask&mask != 0 {
		isKept = d.compare(t, w, &w.first, a, base, mask)
	}
	if len(w.more) > 0 && (w.atomic == nil || w.atomic.mask&mask == 0) {
		isKept = d.compareMore(t, w, a, base, mask) || isKept
	}
	switch {
	case w.atomic != nil && w.atomic.mask&mask != 0: // as was found out now
		t.sync(w.atomic, !a.Store, a.Store)
	case !isKept:
		d.shadow.bytes += w.add(entry{a.PC, a.At.Instr, a.At.Interval, t.now(), t.tid, t.slot, mask, a.Store})
	}
}

// compareMore is compare for the entries behind the first one.
func (d *Detector) compareMore(t *thread, w *word, a *Access, base uint64, mask uint8) (isKept bool) {
	for i := range w.more {
		if e := &w.more[i]; e.mask&mask != 0 && d.compare(t, w, e, a, base, mask) {
			isKept = true
		}
		if w.atomic != nil && w.atomic.mask&mask != 0 { // as was found out now; entries are gone
			return isKept
		}
	}
	kept := w.more[:0]
	for i := range w.more {
		if w.more[i].mask != 0 {
			kept = append(kept, w.more[i])
		}
	}
	w.more = kept
	return isKept
}

// compare compares an access with an earlier one to some of the same bytes. It reports a race, and empties
// the entry where whoever races with it races with a, too. isKept says that the entry says all that a does.
func (d *Detector) compare(t *thread, w *word, e *entry, a *Access, base uint64, mask uint8) (isKept bool) {
	isOwn := e.slot == t.slot
	if isOwn && e.time == t.now() && e.mask&mask == mask && (e.store || !a.Store) {
		return true
	}
	if isOwn || e.time <= t.knows.at(e.slot) {
		if a.Store || !e.store {
			e.mask &^= mask
		}
		return false
	}
	if !a.Store && !e.store {
		return false
	}
	p := pairOf(e, a)
	if d.told[p] || len(d.told) >= maxTold {
		return false
	}
	r := raceOf(e, a, base)
	if d.o.IsAtomic != nil && d.o.IsAtomic(r) {
		w.makeAtomic(d, t, mask|e.mask)
		return false
	}
	d.told[p] = true
	d.o.Report(r)
	return false
}

// pairOf is the pair of an access and an earlier one.
func pairOf(e *entry, a *Access) pair { return pair{e.pc, a.PC, [2]bool{e.store, a.Store}} }

// raceOf is the race of an access to the word at base with an earlier one.
func raceOf(e *entry, a *Access, base uint64) *Race {
	off, n := extent(e.mask)
	return &Race{
		First:  Access{e.tid, e.pc, base + uint64(off), n, e.store, checkpoint.Position{Interval: e.interval, Instr: e.instr}},
		Second: *a,
	}
}

// makeAtomic makes bytes of a word an atomic variable. Stores to them so far have been releases, though no
// instruction said so: what their threads had done then is taken for released.
func (w *word) makeAtomic(d *Detector, t *thread, mask uint8) {
	if w.atomic == nil {
		w.atomic = &atomicBytes{}
	}
	if w.atomic.mask&mask == mask {
		return
	}
	w.atomic.mask |= mask
	released := func(e *entry) {
		if e.mask&mask == 0 || !e.store {
			return
		}
		if o := d.threads[e.tid]; o != nil && o != t {
			w.atomic.knows = w.atomic.knows.join(o.knows)
			o.tick()
		}
	}
	released(&w.first)
	for i := range w.more {
		released(&w.more[i])
	}
	a := w.atomic
	w.atomic = nil // forget leaves it
	w.forget(mask)
	w.atomic = a
}

// sync is an access to an atomic variable.
func (t *thread) sync(a *atomicBytes, acquires, releases bool) {
	if acquires {
		t.knows = t.knows.join(a.knows)
	}
	if releases {
		a.knows = a.knows.join(t.knows)
		t.tick()
	}
}
