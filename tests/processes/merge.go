package processes

// Recordings made by the recorder, joined: several processes with the symbols of real programs,
// for tests with a real gdb.

import (
	"testing"

	"vplay/checkpoint"
)

// Merge writes one recording of the processes of several, which is about that of the first
// one, to path. The others end before it begins.
func Merge(t testing.TB, path string, recordings ...string) {
	t.Helper()
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	check(t, err)
	j := &joiner{t: t, w: w}
	for i := len(recordings) - 1; i >= 0; i-- {
		rec, err := checkpoint.Open(recordings[i])
		check(t, err)
		j.add(rec, uint32(i)<<16)
		check(t, rec.Close())
	}
	check(t, w.Finish(j.manifest))
}

// joiner copies recordings into one.
type joiner struct {
	t        testing.TB
	w        *checkpoint.Writer
	manifest checkpoint.Manifest
	next     uint32 // the ID of the next interval
	seq      uint64 // of the last event
}

// add adds a recording; its objects get numbers from an offset on.
func (j *joiner) add(rec *checkpoint.Recording, offset uint32) {
	j.t.Helper()
	for _, o := range rec.Objects() {
		o.ID += offset
		check(j.t, j.w.AddObject(o))
	}
	for p := range rec.ObjectPages() {
		p.Object += offset
		j.page(rec, p.Ref)
		check(j.t, j.w.AddObjectPage(p))
	}
	for _, in := range rec.Intervals() {
		iv, err := rec.Interval(in.ID)
		check(j.t, err)
		table, err := rec.PageTable(in.ID)
		check(j.t, err)
		iv.ID, iv.Pages, iv.Delta = j.next, table, false
		j.next++
		j.pages(rec, iv.Pages)
		move(iv.Maps, offset)
		for i := range iv.Events {
			e := &iv.Events[i]
			j.seq++
			e.Seq = j.seq
			for k := range e.Maps {
				if m := &e.Maps[k].Map; m.Object != 0 {
					m.Object += offset
				}
			}
		}
		check(j.t, j.w.AddInterval(iv))
	}
	f, err := rec.Final()
	check(j.t, err)
	j.pages(rec, f.Pages)
	move(f.Maps, offset)
	m := *rec.Manifest()
	check(j.t, j.w.SetFinalOf(m.PID, f))
	if was := &j.manifest; was.PID != 0 {
		m.Processes = append(was.Processes, checkpoint.Process{
			PID: was.PID, Parent: was.Parent, Program: was.Program, Args: was.Args, Env: was.Env, Cwd: was.Cwd,
			Auxv: was.Auxv, Signo: was.Signo, ExitCode: was.ExitCode,
		})
	}
	j.manifest = m
}

// move adds an offset to the objects' numbers.
func move(maps []checkpoint.Mapping, offset uint32) {
	for i := range maps {
		if maps[i].Object != 0 {
			maps[i].Object += offset
		}
	}
}

func (j *joiner) pages(rec *checkpoint.Recording, table []checkpoint.PageEntry) {
	j.t.Helper()
	for _, e := range table {
		j.page(rec, e.Ref)
	}
}

// page copies a page that is stored.
func (j *joiner) page(rec *checkpoint.Recording, ref checkpoint.PageRef) {
	j.t.Helper()
	if ref.Kind != checkpoint.PageFull && ref.Kind != checkpoint.PagePartial || j.w.HasPage(ref) || !rec.HasPage(ref) {
		return
	}
	var page [checkpoint.PageSize]byte
	mask, err := rec.Page(ref, &page)
	check(j.t, err)
	if mask != nil {
		_, err = j.w.AddPartialPage(mask, page[:])
	} else {
		_, err = j.w.AddPage(page[:])
	}
	check(j.t, err)
}
