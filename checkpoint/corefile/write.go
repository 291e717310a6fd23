package corefile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader/image"
)

// The recording of a core file: one interval without events, whose start is its end.

// Options say how a core file is imported.
type Options struct {
	// Path is the recording to write; Overwrite allows to replace one.
	Path      string
	Overwrite bool
	// Exe is the program's file, "" to look for it as for the others: below Sysroot, and with
	// Symbols, which may be nil.
	Exe, Sysroot string
	Symbols      *image.Symbols
	// KeepEnv says what the manifest holds of the environment (checkpoint.MaskEnvironment).
	KeepEnv string
	// Start is when the program was at that moment.
	Start time.Time
	// Live is what is known of the process beside the core file, nil when nothing is.
	Live *Live
	// Notes are added to the recording's.
	Notes []string
	// Progress is told now and then how many bytes of memory of how many are written.
	Progress func(done, total int64)
}

// Result says what was imported.
type Result struct {
	Program string
	PID     int32
	Signo   int32 // 0 when the program was not ended by a signal
	Threads int
	Memory  int64    // bytes that the core file has of the program's memory
	Missing []string // what is not in the recording, and why
}

// importer is one run of Import.
type importer struct {
	*memory
	ctx      context.Context
	opt      *Options
	w        *checkpoint.Writer
	manifest checkpoint.Manifest
	byObject map[uint32][]checkpoint.Mapping
	buf      []byte // of pages
	pages    []checkpoint.PageEntry
	kept     map[checkpoint.ObjectPage]bool // of files; Ref is not set
	missing  []string
	// roomForFiles is how many bytes of files with symbols may still be kept whole.
	roomForFiles int64
	since        int // pages since ctx was last asked
	done, total  int64
}

const (
	// maxWhole bounds the files that are kept whole for their symbols, in bytes, of one recording.
	maxWhole = 256 << 20
	// shownMissing is how many files are named that are missing.
	shownMissing = 20
)

// Import writes the recording of a core file. When it fails, nothing is left behind. Errors:
// *checkpoint.LimitError, those of the files, and ctx's.
func Import(ctx context.Context, c *Core, o Options) (*Result, error) {
	im := &importer{
		ctx: ctx, opt: &o, kept: map[checkpoint.ObjectPage]bool{}, roomForFiles: maxWhole,
		byObject: map[uint32][]checkpoint.Mapping{}, buf: make([]byte, pagesPerRead*pageSize),
	}
	areas := c.files
	if o.Live != nil && len(o.Live.Maps) > 0 {
		areas = o.Live.areas()
	}
	m, err := c.newMap(areas)
	if err != nil {
		return nil, err
	}
	for _, g := range m.maps {
		im.byObject[g.Object] = append(im.byObject[g.Object], g)
	}
	im.memory = &memory{Core: c, m: m, files: map[uint32]*mappedFile{}}
	defer im.close()
	im.about()
	if err := im.attach(); err != nil {
		return nil, c.limited(err)
	}
	if im.w, err = checkpoint.Create(o.Path, checkpoint.WriterOptions{Overwrite: o.Overwrite}); err != nil {
		return nil, err
	}
	if err := im.write(); err != nil {
		_ = im.w.Abort() // the error is why
		return nil, c.limited(err)
	}
	return &Result{
		Program: im.manifest.Program, PID: im.manifest.PID, Signo: im.manifest.Signo,
		Threads: len(c.threads), Memory: im.total, Missing: im.missing,
	}, nil
}

func (im *importer) close() {
	for _, f := range im.files {
		_ = f.Close() // it was only read
	}
}

// note adds a note to the recording.
func (im *importer) note(format string, args ...any) {
	im.missing = append(im.missing, fmt.Sprintf(format, args...))
}

// about makes the manifest.
func (im *importer) about() {
	m := &im.manifest
	im.describe(m, im.opt.KeepEnv)
	m.Tool, m.Keep, m.Start = "vplay", checkpoint.KeepCore, im.opt.Start
	if sig := abi.Signal(im.signal()); sig != 0 && sig.DumpsCore() {
		m.Crash, m.Signo = true, int32(sig)
	}
	l := im.opt.Live
	if l == nil {
		return
	}
	m.Hostname, m.Kernel, m.Cwd = l.Hostname, l.Kernel, l.Cwd
	if l.Program != "" {
		m.Program = l.Program
	}
	if len(l.Args) > 0 {
		m.Args = l.Args
	}
	if len(l.Env) > 0 {
		m.Env = checkpoint.MaskEnvironment(l.Env, im.opt.KeepEnv)
	}
}

// write writes all of the recording.
func (im *importer) write() error {
	for i := range im.segments {
		im.total += int64(im.segments[i].stored)
	}
	for i := range im.m.maps {
		if err := im.keepMapping(&im.m.maps[i]); err != nil {
			return err
		}
	}
	if err := im.keepFiles(); err != nil {
		return err
	}
	for i := range im.m.objects {
		if err := im.w.AddObject(im.m.objects[i]); err != nil {
			return err
		}
	}
	if err := im.writeMoment(); err != nil {
		return err
	}
	im.sayMissing()
	return im.w.Finish(im.manifest)
}

// charge charges a page, the way through n bytes, and says how far the work is. The error is the budget's, or
// the context's.
func (im *importer) charge(n int64) error {
	if err := im.budget.Spend(n, "memory"); err != nil {
		return err
	}
	if err := im.budget.Take(pageCost, "pages"); err != nil {
		return err
	}
	if im.since++; im.since%256 != 0 {
		return nil
	}
	if im.opt.Progress != nil {
		im.opt.Progress(im.done, im.total)
	}
	return im.ctx.Err()
}

// pageCost is what a page takes while a recording is written, in bytes: a row of a table, and places in
// the lists of what is written.
const pageCost = 128

// pagesPerRead is how many pages are read at once.
const pagesPerRead = 64

// keepMapping writes what the core file has of a mapping.
func (im *importer) keepMapping(g *checkpoint.Mapping) error {
	s := im.segmentAt(g.Start)
	end := min(g.End, s.start+s.stored)
	for at := g.Start; at < end; {
		b := im.buf[:min(uint64(len(im.buf)), end-at)]
		n := im.read(at, b)
		if n == 0 {
			return im.damaged("its bytes at %#x cannot be read", s.off+int64(at-s.start))
		}
		for b = b[:n]; len(b) > 0; {
			page := b[:min(len(b), pageSize)]
			if err := im.keepPage(g, at, page); err != nil {
				return err
			}
			b, at = b[len(page):], at+pageSize
			im.done += int64(len(page))
		}
	}
	return nil
}

// keepPage writes a page, or the start of one.
func (im *importer) keepPage(g *checkpoint.Mapping, at uint64, page []byte) error {
	if err := im.charge(pageSize); err != nil {
		return err
	}
	ref, err := im.addPage(page)
	if err != nil {
		return err
	}
	if ref.Kind == checkpoint.PageZero && g.Object == 0 {
		return nil // as is every anonymous page without a record
	}
	im.pages = append(im.pages, checkpoint.PageEntry{Addr: at, Ref: ref})
	return nil
}

func (im *importer) addPage(page []byte) (checkpoint.PageRef, error) {
	if len(page) == pageSize {
		return im.w.AddPage(page)
	}
	var whole [pageSize]byte
	var mask [512]byte
	for i := range page {
		mask[i/8] |= 1 << (i % 8)
	}
	copy(whole[:], page)
	return im.w.AddPartialPage(&mask, whole[:])
}

// interval is the number of the only interval.
const interval = 1

// writeMoment writes the interval and the final image.
func (im *importer) writeMoment() error {
	x := im.xsave()
	contexts, without := im.contexts(x, im.threadName)
	if len(without) > 0 {
		im.note("the core file has no floating point and vector registers for %d of %d threads (the first is %d)", len(without), len(contexts), without[0])
	}
	im.manifest.CPU = x.identity()
	if l := im.opt.Live; l != nil && x.isOf(&l.CPU) {
		im.manifest.CPU = l.CPU
		im.manifest.CPU.Level = "" // nothing was hidden of it
	}
	iv := &checkpoint.Interval{
		ID: interval, PID: im.manifest.PID, Start: contexts, Maps: im.m.maps, Pages: im.pages, WallTime: im.opt.Start,
		End: checkpoint.End{Kind: checkpoint.EndCrash, Signo: im.manifest.Signo, Contexts: registersOf(contexts)},
	}
	if !im.manifest.Crash {
		iv.End.Kind, iv.End.Reason = checkpoint.EndStop, "the core file was made of a program that went on"
	}
	if err := im.w.AddInterval(iv); err != nil {
		return err
	}
	return im.w.SetFinal(&checkpoint.Final{Maps: im.m.maps, Contexts: contexts, Siginfo: im.siginfo, Signo: im.manifest.Signo})
}

// registersOf returns contexts without their extended state, which stands at the interval's start.
func registersOf(contexts []checkpoint.Context) []checkpoint.Context {
	out := slices.Clone(contexts)
	for i := range out {
		out[i].XState = nil
	}
	return out
}

func (im *importer) threadName(tid checkpoint.TID) string {
	if l := im.opt.Live; l != nil && l.Names[tid] != "" {
		return l.Names[tid]
	}
	if int32(tid) == im.pid {
		return im.comm
	}
	return ""
}

// sayMissing puts into the manifest what the recording is, and what it lacks.
func (im *importer) sayMissing() {
	if im.truncated > 0 {
		im.note("the core file is cut off: it lacks %d KiB of what it claims to hold", (im.truncated+1023)>>10)
	}
	notes := append([]string{"made from a core file: it holds one moment, with no past and no future"}, im.opt.Notes...)
	shown := min(len(im.missing), shownMissing)
	notes = append(notes, im.missing[:shown]...)
	if n := len(im.missing) - shown; n > 0 {
		notes = append(notes, fmt.Sprintf("and %d more of that kind", n))
	}
	im.manifest.Notes = notes
}
