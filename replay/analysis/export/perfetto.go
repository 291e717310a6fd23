package export

import (
	"io"
	"regexp"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// Perfetto's trace format (perfetto.dev, protos/perfetto/trace: trace.proto, trace_packet.proto, track_event/*.proto, which have the numbers
// of the fields). Its time is nanoseconds; here it is instructions, one for each, for those are exact: a recording knows no times but those of its
// intervals. A system call takes no time but that in which other threads run.

// Fields of TracePacket and of the messages in it.
const (
	packetTimestamp  = 8
	packetSequence   = 10
	packetTrackEvent = 11
	packetInterned   = 12
	packetFlags      = 13
	packetTrack      = 60

	trackUUID    = 1
	trackName    = 2
	trackProcess = 3
	trackThread  = 4
	trackParent  = 5
	trackCounter = 8

	eventAnnotation = 4
	eventType       = 9
	eventNameID     = 10
	eventTrack      = 11
	eventCategory   = 22
	eventName       = 23
	eventCounter    = 30

	sliceBegin   = 1
	sliceEnd     = 2
	instant      = 3
	counterValue = 4
)

// Tracks that are no thread's.
const (
	trackOfProcess = 1 + iota
	trackOfRunning
	trackOfHeap
	trackOfMapped
	trackOfTouched
	trackOfThreads // and above: by number of the thread
)

// Defaults of what is listed: what is shorter, or deeper, is left out where nothing else is asked for.
const (
	defaultDepth = 16
	leastSlice   = 1000 // instructions
	leastStep    = 1000 // between two values of a counter
)

// perfetto writes a trace. All packets are of one sequence.
type perfetto struct {
	w       *walk
	out     io.Writer
	err     error
	only    *regexp.Regexp // nil: all functions
	depth   int32
	least   uint64
	names   map[int32]bool // functions whose names were written
	threads map[int32]bool
	packet  message
	body    message
	wanted  map[int32]bool // by function, whether only matches
	first   bool

	runs    int32
	heapAt  uint64
	heapNow uint64
	isLate  bool // heapNow was not written
	dropped uint64
}

func writePerfetto(w *walk, out io.Writer) error {
	p := &perfetto{w: w, out: out, depth: int32(w.o.Depth), least: leastSlice, names: map[int32]bool{}, threads: map[int32]bool{}, wanted: map[int32]bool{}}
	if w.o.Functions != "" {
		p.only, p.least = regexp.MustCompile(w.o.Functions), 0
	} else if p.depth == 0 {
		p.depth = defaultDepth
	}
	p.head()
	if err := w.follow(p); err != nil {
		return err
	}
	if p.isLate {
		p.counter(trackOfHeap, p.heapNow, w.sum)
	}
	if p.runs != 0 {
		p.event(sliceEnd, trackOfRunning, w.sum)
		p.flush()
	}
	switch {
	case p.only != nil:
	default:
		w.note("calls shorter than %d instructions or deeper than %d are left out (%d of them): --functions PATTERN has all of some functions, --depth others", p.least, p.depth, p.dropped)
	}
	return p.err
}

// flush writes the packet.
func (p *perfetto) flush() {
	var whole message
	p.packet.uint(packetSequence, 1)
	whole.message(1, &p.packet)
	if p.err == nil {
		_, p.err = p.out.Write(whole.b)
	}
	p.packet.reset()
}

// track writes the description of a track, made by f.
func (p *perfetto) track(uuid uint64, f func(t *message)) {
	var t message
	t.uint(trackUUID, uuid)
	f(&t)
	p.packet.message(packetTrack, &t)
	if !p.first {
		p.first = true
		p.packet.uint(packetFlags, 1) // names have no numbers yet
	}
	p.flush()
}

func (p *perfetto) head() {
	process, _ := p.w.s.Rec.Process(p.w.o.PID)
	p.track(trackOfProcess, func(t *message) {
		var d message
		d.uint(1, uint64(process.PID))
		for _, a := range process.Args {
			d.string(2, printable(a))
		}
		d.string(6, printable(process.Program))
		t.message(trackProcess, &d)
	})
	p.track(trackOfRunning, func(t *message) {
		t.string(trackName, "thread that runs")
		t.uint(trackParent, trackOfProcess)
	})
	for i, name := range []string{"heap (malloc)", "mapped memory", "RSS touched"} {
		p.track(trackOfHeap+uint64(i), func(t *message) {
			var d message
			d.uint(3, 3) // bytes
			t.string(trackName, name)
			t.uint(trackParent, trackOfProcess)
			t.message(trackCounter, &d)
		})
	}
}

// of returns the track of a thread.
func (p *perfetto) of(tid int32) uint64 {
	uuid := trackOfThreads + uint64(uint32(tid))
	if !p.threads[tid] {
		p.threads[tid] = true
		kept := p.packet.b
		p.packet.b = nil
		p.track(uuid, func(t *message) {
			var d message
			d.uint(1, uint64(uint32(p.w.o.PID)))
			d.uint(2, uint64(uint32(tid)))
			t.message(trackThread, &d)
			t.uint(trackParent, trackOfProcess)
		})
		p.packet.b = kept
	}
	return uuid
}

// event begins the packet of an event; more, in body, may be added before flush.
func (p *perfetto) event(kind, track, now uint64, more ...func(e *message)) {
	p.packet.always(packetTimestamp, now)
	p.body.reset()
	p.body.uint(eventType, kind)
	p.body.uint(eventTrack, track)
	for _, f := range more {
		f(&p.body)
	}
	p.packet.message(packetTrackEvent, &p.body)
	p.packet.uint(packetFlags, 2) // names are known by their numbers
}

// text is an argument of an event.
func annotate(e *message, name, value string) {
	var a message
	a.string(10, name)
	a.string(6, printable(value))
	e.message(eventAnnotation, &a)
}

// isWanted reports whether calls of a function are asked for.
func (p *perfetto) isWanted(fn int32) bool {
	if p.only == nil {
		return true
	}
	is, ok := p.wanted[fn]
	if !ok {
		is = p.only.MatchString(p.w.code.functions[fn].name)
		p.wanted[fn] = is
	}
	return is
}

func (p *perfetto) fits(c *listed) bool {
	return (p.depth == 0 || c.depth <= p.depth) && p.isWanted(c.fn)
}

// called implements list: nothing is written before it is known how long the call is.
func (p *perfetto) called(int32, *listed) {}

// begin writes the beginning of a call.
func (p *perfetto) begin(track uint64, c *listed) {
	c.isOut = true
	f := &p.w.code.functions[c.fn]
	p.event(sliceBegin, track, c.begin, func(e *message) {
		e.uint(eventNameID, uint64(c.fn)+1)
		e.string(eventCategory, "call")
		annotate(e, "position", c.at.String())
		if c.isOld {
			annotate(e, "note", "it began before")
		}
	})
	if !p.names[c.fn] {
		p.names[c.fn] = true
		var name, list message
		name.uint(1, uint64(c.fn)+1)
		name.string(2, printable(f.name))
		list.message(2, &name)
		p.packet.message(packetInterned, &list)
	}
	p.flush()
}

// returned implements list.
func (p *perfetto) returned(tid int32, c *listed, now uint64) {
	if !p.fits(c) || now-c.begin < p.least {
		p.dropped++
		return
	}
	track := p.of(tid)
	p.begin(track, c)
	p.event(sliceEnd, track, now)
	p.flush()
}

// syscall implements list.
func (p *perfetto) syscall(tid int32, s *syscall, now uint64) {
	track := p.of(tid)
	p.event(sliceBegin, track, s.begin, func(e *message) {
		e.string(eventName, s.name)
		e.string(eventCategory, "syscall")
		annotate(e, "position", s.at.String())
		annotate(e, "call", s.text)
		if s.result != "" {
			annotate(e, "result", s.result)
		}
	})
	p.flush()
	p.event(sliceEnd, track, max(now, s.begin))
	p.flush()
}

// signal implements list.
func (p *perfetto) signal(tid int32, e *checkpoint.Event, at checkpoint.Position, now uint64) {
	p.event(instant, p.of(tid), now, func(m *message) {
		m.string(eventName, abi.Signal(e.Signo).String())
		m.string(eventCategory, "signal")
		annotate(m, "position", at.String())
	})
	p.flush()
}

// running implements list.
func (p *perfetto) running(tid int32, now uint64) {
	if p.runs != 0 {
		p.event(sliceEnd, trackOfRunning, now)
		p.flush()
	}
	p.runs = tid
	p.event(sliceBegin, trackOfRunning, now, func(e *message) {
		e.string(eventName, "thread "+decimal(tid))
		e.string(eventCategory, "scheduling")
	})
	p.flush()
}

func (p *perfetto) counter(track, value, now uint64) {
	p.event(counterValue, track, now, func(e *message) { e.always(eventCounter, value) })
	p.flush()
}

// heap implements list.
func (p *perfetto) heap(bytes, now uint64) {
	if p.heapNow, p.isLate = bytes, now-p.heapAt < leastStep && p.heapAt != 0; !p.isLate {
		p.heapAt = now
		p.counter(trackOfHeap, bytes, now)
	}
}

// mapped implements list.
func (p *perfetto) mapped(bytes, now uint64) { p.counter(trackOfMapped, bytes, now) }

// touched implements touchedList.
func (p *perfetto) touched(bytes, now uint64) { p.counter(trackOfTouched, bytes, now) }

// ended implements list.
func (p *perfetto) ended(int32, uint64) {}
