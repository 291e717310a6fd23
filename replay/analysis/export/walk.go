package export

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/observe"
)

// The walk over a recording that all formats have in common: its intervals, the programs that the process was, and how
// what is known of each interval comes together.

var errTooMuchCode = errors.New("export: the program executes more code in more ways than can be counted")

// walk is one export.
type walk struct {
	ctx    context.Context
	s      *replay.Session
	o      *Options
	ids    []uint32
	begins map[uint32]bool // intervals that go on from nothing: the first of a program, or of one behind a gap
	images []program
	code   *code

	tree    *tree
	threads map[int32]*thread // as they are behind the intervals that were joined
	totals  map[runKey]uint64
	runs    map[place]*runInfo
	sum     uint64                // instructions
	limit   atomic.Pointer[error] // why names are missing
	notes   []string              // of Result
}

// program is one of those that the process was: one from each execve to the next.
type program struct {
	last  uint32 // interval
	files *loader.ModuleFiles
}

// runKey is what counts are kept by: the first n instructions at a place, in a node.
type runKey struct {
	node int32
	n    int32
	at   place
}

func newWalk(ctx context.Context, s *replay.Session, o *Options) (*walk, error) {
	w := &walk{
		ctx: ctx, s: s, o: o, begins: map[uint32]bool{}, code: newCode(), tree: newTree(),
		threads: map[int32]*thread{}, totals: map[runKey]uint64{}, runs: map[place]*runInfo{},
	}
	first, last := uint32(0), ^uint32(0)
	if o.Some {
		first, last = o.First, o.Last
	}
	for _, infos := range s.Rec.ImagesOf(o.PID) {
		files := loader.NewModuleFiles(o.Symbols)
		files.Keep = true
		w.images = append(w.images, program{infos[len(infos)-1].ID, files})
		isFirst := true
		for _, i := range infos {
			if i.ID < first || i.ID > last {
				isFirst = true
				continue
			}
			w.ids = append(w.ids, i.ID)
			w.begins[i.ID] = isFirst
			isFirst = w.endsInGap(i.ID)
		}
		if n := len(w.ids); n > 0 {
			if err := w.open(w.ids[n-1]); err != nil {
				return nil, err
			}
		}
	}
	if len(w.ids) == 0 {
		return nil, fmt.Errorf("%w: %d in %s, or no interval of it from %d to %d", checkpoint.ErrNoProcess, o.PID, s.Rec.File(), first, last)
	}
	return w, nil
}

// open opens the files of the modules at the beginning of an interval, the last of a program. What the dynamic linker has chosen for IFUNCs is known
// there, and names do not depend on which interval is looked at first.
func (w *walk) open(id uint32) error {
	k, err := w.s.Start(id)
	if err != nil {
		return err
	}
	defer k.Release()
	m := w.s.Viewer(k)
	defer m.Close()
	n := w.namesOf(m, debug.Regions(w.s.Rec, m.Mem))
	n.entries()
	return nil
}

// endsInGap reports whether an interval ends with a call whose effects were not recorded.
func (w *walk) endsInGap(id uint32) bool {
	events, err := w.s.Events(id)
	return err == nil && len(events) > 0 && events[len(events)-1].Kind == checkpoint.EventGap
}

// isFirst reports whether nothing is known of what led to an interval.
func (w *walk) isFirst(id uint32) bool { return w.begins[id] }

// program returns the program that an interval is of.
func (w *walk) program(id uint32) *program {
	return &w.images[sort.Search(len(w.images)-1, func(i int) bool { return w.images[i].last >= id })]
}

// mainModule returns the number of the program's own module, 0 where that is not known.
func (w *walk) mainModule() int {
	p, _ := w.s.Rec.Process(w.o.PID)
	return max(slices.IndexFunc(w.code.modules, func(m module) bool { return m.path == p.Program }), 0)
}

// memory is that of a machine, for a resolver.
type memory struct{ debug.Memory }

// namesOf returns the names of a machine's modules.
func (w *walk) namesOf(m *replay.Machine, maps []checkpoint.Mapping) names {
	res := loader.NewResolver(maps, memory{debug.Memory{Space: m.Mem}}, w.program(m.Interval()).files)
	return names{code: w.code, budget: w.s.Rec.Budget(), res: res, modules: map[*image.Module]int32{}}
}

// newPass returns what walks through an interval: with a tree of its own, or with that of the walk, which all intervals before are in.
func (w *walk) newPass(id uint32, isOwn bool) *pass {
	p := &pass{w: w, isOwn: isOwn, tree: w.tree, threads: w.threads, index: map[uint64]uint32{}, infos: []*runInfo{nil}}
	if isOwn {
		p.tree, p.threads = newTree(), map[int32]*thread{}
	} else if w.isFirst(id) {
		clear(w.threads)
	}
	return p
}

// count replays the intervals, several at once, and counts all that they execute by calls.
func (w *walk) count() error {
	passes := newShared[*pass]()
	err := w.run(observe.Options{
		Begin: func(v *observe.View) (*observe.Observer, error) {
			id := v.Position().Interval
			p := w.newPass(id, true)
			passes.put(id, p)
			return p.observer(), nil
		},
		End: func(id uint32) error { return w.join(id, passes.take(id)) },
	})
	if err == nil && w.tree.full {
		err = errTooManyCalls
	}
	return err
}

// run replays the intervals.
func (w *walk) run(o observe.Options) error {
	end := o.End
	o.Intervals, o.Workers, o.Progress = w.ids, w.o.Workers, w.o.Progress
	o.End = func(id uint32) error {
		if end != nil {
			if err := end(id); err != nil {
				return err
			}
		}
		if w.o.Done != nil {
			w.o.Done()
		}
		return nil
	}
	return observe.Run(w.ctx, w.s, o)
}

// observer returns what tells p of its interval.
func (p *pass) observer() *observe.Observer {
	return &observe.Observer{
		Start: p.begin, Run: p.ran, Event: p.before, Applied: p.applied,
		Done: func(v *observe.View) { p.finish(v.CPU().Retired) },
	}
}

// limited notes that names are missing because their files need more memory than they may take.
func (w *walk) limited(err error) {
	if err != nil {
		w.limit.Store(&err)
	}
}

// finish checks that every instruction was counted.
func (p *pass) finish(retired uint64) {
	p.catchUp(retired)
	if p.retired != retired {
		p.stop(fmt.Errorf("export: %d of %d instructions of interval %d were counted: this is a bug in vplayd", p.retired, retired, p.view.Position().Interval))
	}
	p.w.limited(p.names.res.Limited())
	p.view, p.names = nil, names{}
}
