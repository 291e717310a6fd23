package replay

import (
	"errors"
	"runtime"
	"slices"
	"unsafe"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// FinalImage is the state at the end of a process, taken from the file
// without replaying anything: what a debugger shows first.
type FinalImage struct {
	PID     int32
	Mem     *mem.Space
	Threads []Thread // of the process, by number; there is at least one
	Signo   int32    // of the signal that ended it
	Siginfo []byte
	Maps    []checkpoint.Mapping

	src      *finalSource
	contexts []checkpoint.Context // of the threads
	current  checkpoint.TID       // the number of the thread that ran
}

// Current returns the thread that ran at the end: the one that the signal was for.
func (f *FinalImage) Current() *Thread {
	i, _ := slices.BinarySearchFunc(f.Threads, Thread{TID: f.current}, byTID)
	return &f.Threads[i]
}

// Record returns what the recording says of the page at page-aligned address a at
// its end; ok is false where it says nothing.
func (f *FinalImage) Record(a uint64) (ref checkpoint.PageRef, ok bool) { return f.src.record(a) }

// Written reports whether the page at page-aligned address a was written in the last
// interval.
func (f *FinalImage) Written(a uint64) bool {
	ref, ok := checkpoint.PageTable(f.src.pages).Find(a)
	return ok && (ref.Kind == checkpoint.PageFull || ref.Kind == checkpoint.PageZero || ref.Kind == checkpoint.PagePartial)
}

// finalSource lays the final pages over those of the last interval's start.
type finalSource struct {
	*loader.Source
	rec   *checkpoint.Recording
	pages []checkpoint.PageEntry
}

func (f *finalSource) record(a uint64) (checkpoint.PageRef, bool) {
	if ref, ok := checkpoint.PageTable(f.pages).Find(a); ok {
		return ref, ref.Kind != checkpoint.PageRemoved
	}
	return f.Source.Record(a)
}

func (f *finalSource) PageAt(a uint64, page *mem.Page, mask *mem.Mask) (mem.Content, bool) {
	ref, ok := f.record(a)
	if !ok {
		return mem.Zero, false
	}
	return loader.Content(f.rec, ref, page, mask), true
}

// Pages implements mem.PageLister. Nobody moves pages of a final image: they need no names.
func (f *finalSource) Pages(start, end uint64, list func(a uint64, name mem.PageName)) {
	f.Source.Pages(start, end, func(a uint64, _ mem.PageName) { list(a, mem.PageName{}) })
	for _, e := range f.pages {
		if e.Addr >= start && e.Addr < end {
			list(e.Addr, mem.PageName{})
		}
	}
}

// Final opens the final image of the process that the recording is about. The error says
// that the recording has none. Close its Mem when done.
func (s *Session) Final() (*FinalImage, error) {
	list := s.Rec.Processes()
	if len(list) == 0 {
		return nil, errors.New("replay: the recording holds no interval")
	}
	return s.FinalOf(list[0].PID)
}

// FinalOf is Final for any process.
func (s *Session) FinalOf(pid int32) (*FinalImage, error) {
	f, err := s.Rec.FinalOf(pid)
	if err != nil {
		return nil, err
	}
	infos := s.Rec.LastImageOf(pid)
	if f == nil || len(f.Contexts) == 0 || len(infos) == 0 {
		return nil, errors.New("replay: the recording has no final image")
	}
	src, err := loader.NewSource(s.Rec, infos[len(infos)-1].ID)
	if err != nil {
		return nil, err
	}
	img := &FinalImage{
		PID: pid, Signo: f.Signo, Siginfo: f.Siginfo, Maps: f.Maps, contexts: f.Contexts, current: checkpoint.Running(f.Contexts).TID,
	}
	img.src = &finalSource{Source: src, rec: s.Rec, pages: f.Pages}
	img.Mem = mem.NewSpace(s.Pool, img.src)
	img.Mem.MapAll(loader.Regions(f.Maps, s.objects))
	size := int64(len(f.Contexts)) * int64(unsafe.Sizeof(Thread{}))
	if err := s.Rec.Budget().Take(size, "the final image: its threads"); err != nil {
		img.Mem.Close()
		return nil, err
	}
	img.Threads = make([]Thread, 0, len(f.Contexts))
	if b := s.Rec.Budget(); b != nil {
		runtime.AddCleanup(img, b.Give, size)
	}
	for i := range f.Contexts {
		var st x86.State
		loader.SetRegs(&st, &f.Contexts[i].Regs)
		if len(f.Contexts[i].XState) > 0 {
			if err := st.SetXState(f.Contexts[i].XState, s.layout); err != nil {
				img.Mem.Close()
				return nil, &checkpoint.FormatError{File: s.Rec.File(), Member: "the final image", Offset: -1, What: err.Error()}
			}
		}
		img.Threads = append(img.Threads, Thread{f.Contexts[i].TID, f.Contexts[i].Name, st, f.Contexts[i].InCall})
	}
	slices.SortFunc(img.Threads, byTID)
	return img, nil
}
