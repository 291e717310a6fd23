package checkpoint

import (
	"archive/zip"
	"bufio"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// A recording gets its name last, so that what has the name is whole (newFile).
// Pages go to the file as packs fill, intervals as they
// are added: the memory used is one pack, some blocks, and 50 bytes for each
// page stored. No working directory is needed.

// WriterOptions says how to write. The zero value is ready for use.
type WriterOptions struct {
	// Overwrite allows to replace an existing file.
	Overwrite bool
	// Level is how much time compression may take.
	Level Level
	// FirstLoads allows intervals with FirstLoads, which readers of versions before 3 refuse.
	FirstLoads bool
	// Logger gets debug messages; the zero value is silent.
	Logger zerolog.Logger
	// Check, when set, is shown the recording once it is whole and durable,
	// before it gets its name. Its error makes Finish fail. The recording
	// cannot be used after Check has returned.
	Check func(*Recording) error
	// Budget is what reading it may cost then; nil has no bounds.
	Budget *Budget
}

// version is that of the file: the oldest that has all that it may hold.
func (o *WriterOptions) version() int {
	if o.FirstLoads {
		return firstLoadsVersion
	}
	return plainVersion
}

// Writer makes a recording. Its methods are safe for concurrent use. After an
// error of the file system all methods return it, and only Abort is left.
type Writer struct {
	opts    WriterOptions
	path    string
	version int // of the format
	start   time.Time

	mu        sync.Mutex
	err       error
	done      bool
	f         *newFile
	buf       *bufio.Writer
	zip       *zip.Writer
	store     storeWriter
	hasher    *PageHasher
	members   []memberInfo
	packs     int
	intervals []IntervalInfo
	byID      map[uint32]bool
	objects   map[uint32]Object
	objPages  objectPages
	final     []byte           // from SetFinal: a member without its header
	finals    map[int32][]byte // from SetFinalOf, likewise
}

// Create begins a recording that will be at path once Finish has returned.
// The error matches fs.ErrExist when there is a file and Overwrite is not set.
func Create(path string, o WriterOptions) (*Writer, error) {
	if o.Level >= numLevels {
		return nil, fmt.Errorf("checkpoint: unknown compression level %d", o.Level)
	}
	w := &Writer{
		opts:    o,
		path:    path,
		version: o.version(),
		start:   time.Now(),
		byID:    make(map[uint32]bool),
		objects: make(map[uint32]Object),
		finals:  make(map[int32][]byte),
		hasher:  NewPageHasher(),
	}
	var err error
	if w.f, err = createFile(path, o.Overwrite, systemFiles); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	w.buf = bufio.NewWriterSize(w.f, 1<<18)
	w.zip = zip.NewWriter(w.buf)
	w.store = storeWriter{level: o.Level, version: w.version, numbers: make(map[PageRef]uint32), emit: w.emitPack}
	if err := w.member(nameMagic, kindMagic, []byte(magicText(w.version)), 0); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// usable returns why the writer cannot go on. Preconditions: w.mu is held.
func (w *Writer) usable() error {
	if w.done {
		return ErrFinished
	}
	return w.err
}

// broken keeps an error of the file system. Preconditions: w.mu is held.
func (w *Writer) broken(err error) error {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("checkpoint: %s: %w", w.path, err)
	}
	return w.err
}

// member writes one member. Preconditions: w.mu is held, or w is not shared yet.
func (w *Writer) member(name, kind string, data []byte, pages int) error {
	if err := w.raw(name, data); err != nil {
		return err
	}
	hash := cutHash(data)
	w.members = append(w.members, memberInfo{
		Name: name, Kind: kind, Size: int64(len(data)), Hash: hex.EncodeToString(hash[:]), Pages: pages,
	})
	return nil
}

func (w *Writer) raw(name string, data []byte) error {
	out, err := w.zip.CreateRaw(&zip.FileHeader{
		Name:               name,
		Method:             zip.Store,
		CRC32:              crc32.ChecksumIEEE(data),
		CompressedSize64:   uint64(len(data)),
		UncompressedSize64: uint64(len(data)),
	})
	if err == nil {
		_, err = out.Write(data)
	}
	return w.broken(err)
}

func (w *Writer) emitPack(pack []byte, idx []blockIndex, pages int) error {
	data, _, err := encodeMember(kindIndex, w.version, LevelFast, nil, func(c *coder) { codeBlockIndexes(c, &idx) })
	if err != nil {
		return err
	}
	n := w.packs
	w.packs++
	if err := w.member(namePack(n), kindPack, pack, 0); err != nil {
		return err
	}
	return w.member(nameIndex(n), kindIndex, data, pages)
}

// AddPage stores the content of a page unless it is stored already, and
// returns its reference: PageZero for a page of zeros, else PageFull.
// Preconditions: page has PageSize bytes; it is not kept. Errors: ErrFinished,
// and those of the file.
func (w *Writer) AddPage(page []byte) (PageRef, error) {
	if len(page) != PageSize {
		return PageRef{}, fmt.Errorf("checkpoint: page of %d bytes", len(page))
	}
	ref := w.hasher.Ref(page)
	if ref.Kind == PageZero {
		return ref, nil
	}
	return ref, w.addRecord(ref, page)
}

// AddPartialPage stores the bytes of a page whose bits are set in mask (bit
// i%8 of byte i/8 for the byte at offset i) and returns its reference:
// PagePartial, or PageAbsent for an empty mask, or as AddPage for a full one.
// Bytes outside of the mask are not looked at.
// Preconditions: page has PageSize bytes; neither is kept. Errors: as AddPage.
func (w *Writer) AddPartialPage(mask *[512]byte, page []byte) (PageRef, error) {
	if len(page) != PageSize {
		return PageRef{}, fmt.Errorf("checkpoint: page of %d bytes", len(page))
	}
	rec := packPartial(mask, page)
	switch len(rec) {
	case maskSize:
		return PageRef{Kind: PageAbsent}, nil
	case maskSize + PageSize:
		return w.AddPage(page)
	}
	ref := PageRef{Kind: PagePartial, Hash: cutHash(rec)}
	return ref, w.addRecord(ref, rec)
}

func (w *Writer) addRecord(ref PageRef, rec []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	return w.store.add(ref, rec)
}

// HasPage reports whether a page's content is stored already.
func (w *Writer) HasPage(ref PageRef) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.store.number(ref)
	return ok
}

// AddObject adds an object, or replaces the one of the same ID. Errors:
// ErrFinished, and one for ID 0, which is the anonymous object.
func (w *Writer) AddObject(o Object) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	if o.ID == 0 {
		return errors.New("checkpoint: object 0 is the anonymous one and is not written")
	}
	w.objects[o.ID] = o
	return nil
}

// AddObjectPage adds the content of a page of an object, or replaces the one
// of the same object and index. Its content must have been added. Errors:
// ErrFinished, and one that names a page whose content was not added.
func (w *Writer) AddObjectPage(p ObjectPage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	if err := w.stored(p.Ref); err != nil {
		return fmt.Errorf("checkpoint: page %d of object %d: %w", p.Index, p.Object, err)
	}
	w.objPages.add(p)
	return nil
}

// stored returns an error for a page that should have been added.
func (w *Writer) stored(r PageRef) error {
	if r.Kind != PageFull && r.Kind != PagePartial {
		return nil
	}
	if _, ok := w.store.number(r); !ok {
		return fmt.Errorf("content %x was not added", r.Hash)
	}
	return nil
}

// table returns a page table sorted, and checks that its pages were added.
func (w *Writer) table(t []PageEntry, what string) ([]PageEntry, error) {
	t = sorted(t)
	for i, e := range t {
		if i > 0 && e.Ref == t[i-1].Ref {
			continue
		}
		if err := w.stored(e.Ref); err != nil {
			return nil, fmt.Errorf("checkpoint: %s: page %#x: %w", what, e.Addr, err)
		}
	}
	return t, nil
}

// sorted returns t, or a sorted copy.
func sorted(t []PageEntry) []PageEntry {
	byAddr := func(a, b PageEntry) int { return cmp.Compare(a.Addr, b.Addr) }
	if slices.IsSortedFunc(t, byAddr) {
		return t
	}
	t = slices.Clone(t)
	slices.SortFunc(t, byAddr)
	return t
}

// AddInterval writes an interval. Intervals may come in any order; the file
// lists them by ID. The pages of its table must have been added; those of
// iv.End need not be. iv is not changed nor kept. Errors: ErrFinished, one for an
// ID that was added before, one that names a page that was not, and those of the
// file.
func (w *Writer) AddInterval(iv *Interval) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	what := fmt.Sprintf("interval %d", iv.ID)
	if w.byID[iv.ID] {
		return fmt.Errorf("checkpoint: %s was added before", what)
	}
	if iv.FirstLoads && (w.version < firstLoadsVersion || !iv.Slim) {
		return fmt.Errorf("checkpoint: %s has first loads, which must be slim and need version %d of the format", what, firstLoadsVersion)
	}
	copied := *iv
	var err error
	if copied.Pages, err = w.table(iv.Pages, what); err != nil {
		return err
	}
	copied.End.Pages = sorted(iv.End.Pages)
	head, _, err := encodeMember(kindHead, w.version, w.opts.Level, &w.store, func(c *coder) { codeInterval(c, &copied) })
	if err != nil {
		return fmt.Errorf("checkpoint: %s: %w", what, err)
	}
	log, raw, err := encodeLog(iv.Events, w.version, w.opts.Level)
	if err != nil {
		return fmt.Errorf("checkpoint: %s: %w", what, err)
	}
	if err := w.member(nameHead(iv.ID), kindHead, head, 0); err != nil {
		return err
	}
	if err := w.member(nameLog(iv.ID), kindLog, log, 0); err != nil {
		return err
	}
	w.byID[iv.ID] = true
	info := infoOf(&copied)
	info.HeadSize, info.LogSize, info.LogRaw = int64(len(head)), int64(len(log)), int64(raw)
	w.intervals = append(w.intervals, info)
	return nil
}

// infoOf returns what the list of intervals says of iv, but the sizes.
func infoOf(iv *Interval) IntervalInfo {
	return IntervalInfo{
		ID: iv.ID, PID: iv.PID, Image: iv.Image, Slim: iv.Slim, FirstLoads: iv.FirstLoads, Delta: iv.Delta,
		Threads: len(iv.Start), Maps: len(iv.Maps), Pages: len(iv.Pages), EndPages: len(iv.End.Pages), Events: len(iv.Events),
		End: iv.End.Kind, Forced: iv.End.Forced, CPUStart: iv.CPUStart, CPUTime: iv.End.CPUTime, WallTime: iv.WallTime.UTC().Round(0),
	}
}

// encodeLog returns the member of an event log and its raw length.
func encodeLog(events []Event, version int, level Level) ([]byte, uint64, error) {
	if len(events) > maxEvents {
		return nil, 0, fmt.Errorf("%d events are above the bound of %d", len(events), maxEvents)
	}
	m := newMemberWriter(kindLog, version, level)
	c, scratch := newEncoder(nil), newEncoder(nil)
	for i := range events {
		encodeEvent(c, scratch, &events[i])
		if c.err != nil {
			return nil, 0, fmt.Errorf("event %d: %w", i, c.err)
		}
		m.write(c.b)
		c.b = c.b[:0]
	}
	return m.finish()
}

// Finish writes what is left, makes the file durable and gives it its name.
// m's Version, ID (when empty) and Intervals are set by it. When it fails,
// nothing is left behind.
func (w *Writer) Finish(m Manifest) error {
	w.mu.Lock()
	err := w.usable()
	if err == nil {
		err = w.finish(m)
	}
	if err == nil {
		w.done = true
	}
	w.mu.Unlock()
	if err != nil && !errors.Is(err, ErrFinished) {
		return errors.Join(err, w.Abort())
	}
	return err
}

func (w *Writer) finish(m Manifest) error {
	if err := w.tail(m); err != nil {
		return err
	}
	if err := w.broken(w.zip.Close()); err != nil {
		return err
	}
	if err := w.broken(w.buf.Flush()); err != nil {
		return err
	}
	if err := w.broken(w.f.Sync()); err != nil {
		return err
	}
	if err := w.check(); err != nil {
		return err
	}
	if err := w.broken(w.f.publish()); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(w.path)); err != nil {
		w.opts.Logger.Debug().Err(err).Str("rec", w.path).Msg("directory not synced")
	}
	w.opts.Logger.Debug().Str("rec", w.path).Int("intervals", len(w.intervals)).
		Int("pages", len(w.store.numbers)).Dur("took", time.Since(w.start)).Msg("recording written")
	return nil
}

// check shows the recording to whoever wants to see it before it gets its name.
func (w *Writer) check() error {
	if w.opts.Check == nil {
		return nil
	}
	st, err := w.f.Stat()
	if err != nil {
		return w.broken(err)
	}
	w.objPages = objectPages{} // they are written
	r, err := openReader(w.f.File, st.Size(), w.path, w.opts.Budget)
	if err != nil {
		return err
	}
	defer r.release()
	return w.opts.Check(r)
}

// tail writes the members that come after all packs and intervals.
func (w *Writer) tail(m Manifest) error {
	objects := make([]Object, 0, len(w.objects))
	for _, o := range w.objects {
		objects = append(objects, o)
	}
	slices.SortFunc(objects, func(a, b Object) int { return cmp.Compare(a.ID, b.ID) })
	pages := w.objPages.sorted()

	if err := w.store.flush(); err != nil {
		return err
	}
	if err := w.coded(nameObjects, kindObjects, func(c *coder) { codeObjects(c, &objects) }); err != nil {
		return err
	}
	if err := w.coded(nameObjectPages, kindObjectPages, func(c *coder) { codeObjectPages(c, &pages) }); err != nil {
		return err
	}
	slices.SortFunc(w.intervals, func(a, b IntervalInfo) int { return cmp.Compare(a.ID, b.ID) })
	if err := w.writeFinals(&m); err != nil {
		return err
	}
	if m.ID == "" {
		var id [16]byte
		rand.Read(id[:])
		m.ID = hex.EncodeToString(id[:])
	}
	if _, err := deltaBases(w.intervals); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	m.Version, m.Intervals = w.version, len(w.intervals)
	doc, err := encodeManifest(&manifestFile{Format: formatName, Manifest: m, IntervalList: w.intervals, Members: w.members})
	if err != nil {
		return err
	}
	return w.raw(nameManifest, doc)
}

func (w *Writer) coded(name, kind string, code func(*coder)) error {
	data, _, err := encodeMember(kind, w.version, w.opts.Level, &w.store, code)
	if err != nil {
		return fmt.Errorf("checkpoint: %s: %w", name, err)
	}
	return w.member(name, kind, data, 0)
}

// Abort gives up and leaves nothing behind. After Finish it does nothing. The
// error is that of removing the unfinished file.
func (w *Writer) Abort() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return nil
	}
	w.done = true
	for _, b := range w.store.pending {
		<-b.frame
	}
	if err := w.f.discard(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}
