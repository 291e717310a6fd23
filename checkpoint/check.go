package checkpoint

import (
	"errors"
	"fmt"
)

// A check of a whole recording: everything in the file is read, and what is damaged is
// listed. How a part is read is in reader.go and pages.go, and whether a recording
// replays is for package replay.

// Check reads all of a recording and returns what is damaged, nothing for a
// whole one: a *FormatError for each damaged member, one for each damaged
// block of pages, and one for each page that a table names and the file lacks.
// The first most errors are returned; 0 stands for all.
func (r *Recording) Check(most int) []error {
	c := &checker{r: r, most: most, seen: make(map[string]bool)}
	for i := range r.store.packs {
		c.add(r.store.packs[i].err)
	}
	for i := range r.store.records {
		if c.full() {
			return c.errs
		}
		_, err := r.record(&r.store.records[i])
		c.add(err)
	}
	for _, in := range r.Intervals() {
		if c.full() {
			return c.errs
		}
		iv, err := r.Interval(in.ID)
		c.add(err)
		if err == nil {
			c.table(iv.Pages, fmt.Sprintf("interval %d", in.ID))
		}
	}
	c.final(r.Final())
	for _, p := range r.Processes() {
		if p.PID != r.mainPID() {
			c.final(r.FinalOf(p.PID))
		}
	}
	for _, p := range r.objPages {
		c.table([]PageEntry{{p.Index * PageSize, p.Ref}}, fmt.Sprintf("object %d", p.Object))
	}
	return c.errs
}

// checker gathers errors, each text once.
type checker struct {
	r    *Recording
	most int
	errs []error
	seen map[string]bool
}

func (c *checker) full() bool { return c.most > 0 && len(c.errs) >= c.most }

func (c *checker) add(err error) {
	if err == nil || c.full() || c.seen[err.Error()] {
		return
	}
	c.seen[err.Error()] = true
	c.errs = append(c.errs, err)
}

// final checks a final image, which may be missing.
func (c *checker) final(f *Final, err error) {
	if err == nil {
		c.table(f.Pages, "final image")
	} else if !errors.Is(err, ErrNoFinal) {
		c.add(err)
	}
}

// table checks that the pages of a table can be asked for.
func (c *checker) table(t []PageEntry, what string) {
	for _, e := range t {
		if (e.Ref.Kind == PageFull || e.Ref.Kind == PagePartial) && !c.r.HasPage(e.Ref) {
			c.add(&FormatError{File: c.r.file, Offset: -1, What: fmt.Sprintf("%s: page %#x is not in the store", what, e.Addr)})
		}
	}
}
