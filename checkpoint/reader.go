package checkpoint

import (
	"archive/zip"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// Recording reads a recording. All its methods but Close are safe for
// concurrent use.
//
// Opening reads the directory, the manifest, the page indexes and the objects.
// Intervals and pages are read when they are asked for, and every byte is
// checked on the way: a member against its hash in the manifest, a frame
// against its CRC, a page against its content address. So a damaged part is
// noticed when it is used, and the rest stays usable.
type Recording struct {
	file    string
	src     io.ReaderAt
	closer  io.Closer
	size    int64
	entries map[string]*zip.File
	listed  map[string]memberInfo

	manifest manifestFile
	objects  []Object
	objPages []ObjectPage
	store    storeReader
	tables   tableCache
	bases    []int // of deltas, by index of the interval; see deltaBases
	// processes is what Processes returns; byPID has each of them, too.
	processes []Process
	byPID     map[int32]*processRow
	budget    *Budget
	held      []*charge // for what is kept until Close
	read      sync.Map  // parts whose work has been charged
	lost      atomic.Pointer[error]
}

// Unreadable returns why the first page that could not be read could not: the file is damaged, or
// the budget too small. nil where all that were asked for could be.
func (r *Recording) Unreadable() error {
	if err := r.lost.Load(); err != nil {
		return *err
	}
	return nil
}

// unreadable notes why a page could not be read, and returns it.
func (r *Recording) unreadable(err error) error {
	r.lost.CompareAndSwap(nil, &err)
	return err
}

// Open opens the recording at path without a bound on what reading it costs. The
// error is ErrNotRecording (wrapped), *VersionError, *FormatError, or one of the file
// system.
func Open(path string) (*Recording, error) { return OpenWithin(path, nil) }

// OpenWithin is Open with a budget, which all reading is charged to from then on.
// Errors are also *LimitError, here and from all methods, and those of the budget's
// context.
func OpenWithin(path string, budget *Budget) (*Recording, error) {
	// What is no file may never be ready to be opened or read, as a FIFO.
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("checkpoint: %s is a %s: %w", path, kindOfFile(st.Mode()), ErrNotRecording)
	}
	f, err := openRegular(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if st, err = f.Stat(); err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, ErrNotRecording) // it was replaced in between
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	r, err := openReader(f, st.Size(), path, budget)
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	r.closer = f
	return r, nil
}

// OpenReader opens a recording of size bytes that src holds. name stands for
// it in errors. Close does not close src.
func OpenReader(src io.ReaderAt, size int64, name string) (*Recording, error) {
	return openReader(src, size, name, nil)
}

// kindOfFile names what is not a regular file.
func kindOfFile(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "FIFO"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

func openReader(src io.ReaderAt, size int64, name string, budget *Budget) (*Recording, error) {
	r := &Recording{file: name, src: src, size: size, budget: budget}
	budget.fit(r, size)
	steps := []func() error{r.readDirectory, r.readManifest, r.checkMembers, r.readProcesses, r.readIndexes, r.readObjects}
	for _, step := range steps {
		if err := step(); err != nil {
			r.release()
			if limit, ok := r.limited(err); ok {
				return nil, limit
			}
			return nil, err
		}
	}
	return r, nil
}

// release gives the budget back what the recording has kept since it was opened.
func (r *Recording) release() {
	r.budget.leave(r)
	for _, ch := range r.held {
		ch.drop()
	}
	r.held = nil
}

// Close releases the file. No other method may be used afterwards. The error is
// the file's; one from OpenReader has none.
func (r *Recording) Close() error {
	r.release()
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// RunDigest returns a SHA-256 of what names the run that was recorded: the recording's ID,
// and of each interval its number, its events and how it ends. Recordings with one
// digest have the same positions; slimming, which changes the memory that a recording
// holds, leaves it as it is.
func (r *Recording) RunDigest() [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", r.Manifest().ID)
	for _, i := range r.Intervals() {
		fmt.Fprintln(h, i.ID, i.PID, i.Image, i.Threads, i.Events, i.LogRaw, uint64(i.End), i.Forced, int64(i.CPUStart), int64(i.CPUTime))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Stat describes the file that the recording is read from, whatever has its name
// now. The error matches os.ErrInvalid for one from OpenReader.
func (r *Recording) Stat() (os.FileInfo, error) {
	f, ok := r.closer.(*os.File)
	if !ok {
		return nil, fmt.Errorf("checkpoint: %s: %w", r.file, os.ErrInvalid)
	}
	return f.Stat()
}

// damage makes a FormatError of an error in a member.
func (r *Recording) damage(member string, err error) error {
	if limit, ok := r.limited(err); ok {
		return limit // the part is not damaged, it is too much
	}
	var at *offsetError
	if errors.As(err, &at) {
		return &FormatError{File: r.file, Member: member, Offset: at.offset, What: at.err.Error()}
	}
	return &FormatError{File: r.file, Member: member, Offset: -1, What: err.Error()}
}

func (r *Recording) readDirectory() error {
	dir := &directoryReader{src: r.src, ch: r.hold("directory")}
	zr, err := zip.NewReader(dir, r.size)
	if dir.err != nil {
		return dir.err
	}
	dir.ch = nil // what is read from here on is charged by its readers
	if err != nil {
		return r.diagnose(err)
	}
	r.entries = make(map[string]*zip.File, len(zr.File))
	for _, f := range zr.File {
		if r.entries[f.Name] != nil {
			return r.damage(f.Name, errors.New("the directory lists this member twice"))
		}
		r.entries[f.Name] = f
	}
	if r.entries[nameManifest] == nil && r.entries[nameMagic] == nil {
		return fmt.Errorf("checkpoint: %s: %w", r.file, ErrNotRecording)
	}
	return nil
}

// bytes reads a member whole; limit bounds its size in bytes.
func (r *Recording) bytes(name string, limit uint64) ([]byte, error) {
	sec, err := r.section(name)
	if err != nil {
		return nil, err
	}
	if uint64(sec.Size()) > limit {
		return nil, r.damage(name, fmt.Errorf("%d bytes are above the bound of %d", sec.Size(), limit))
	}
	b := make([]byte, sec.Size())
	if _, err := sec.ReadAt(b, 0); err != nil {
		return nil, r.damage(name, err)
	}
	return b, nil
}

// section returns a member's place in the file, which is inside of it.
func (r *Recording) section(name string) (*io.SectionReader, error) {
	f := r.entries[name]
	if f == nil {
		return nil, r.damage(name, errors.New("the part is missing"))
	}
	if f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 {
		return nil, r.damage(name, errors.New("the member is not stored as it is"))
	}
	off, err := f.DataOffset()
	if err != nil {
		return nil, r.damage(name, err)
	}
	if off < 0 || off > r.size || f.CompressedSize64 > uint64(r.size-off) {
		return nil, r.damage(name, errors.New("the member reaches behind the end of the file"))
	}
	return io.NewSectionReader(r.src, off, int64(f.CompressedSize64)), nil
}

func (r *Recording) readManifest() error {
	sec, err := r.section(nameManifest)
	if err != nil {
		return err
	}
	ch := r.hold(nameManifest)
	if err := ch.add(min(sec.Size(), maxManifest)); err != nil {
		return err
	}
	b, err := r.bytes(nameManifest, maxManifest)
	if err != nil {
		return err
	}
	if err := ch.add(manifestMemory(b)); err != nil {
		return err
	}
	if got, want := crc32.ChecksumIEEE(b), r.entries[nameManifest].CRC32; got != want {
		return r.damage(nameManifest, fmt.Errorf("its check is %08x, its bytes give %08x", want, got))
	}
	ctx := r.budget.Context()
	m, err := decodeManifest(ctx, b)
	var version *VersionError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &version):
		version.File = r.file
		return version
	case errors.Is(err, ErrNotRecording):
		return fmt.Errorf("checkpoint: %s: %w", r.file, err)
	case err != nil:
		return r.damage(nameManifest, err)
	}
	r.manifest = *m
	return nil
}

// checkMembers compares the manifest's list with the directory.
func (r *Recording) checkMembers() error {
	r.listed = make(map[string]memberInfo, len(r.manifest.Members))
	for _, info := range r.manifest.Members {
		r.listed[info.Name] = info
	}
	for name := range r.entries {
		if _, ok := r.listed[name]; !ok && name != nameManifest {
			return r.damage(name, errors.New("the manifest does not list this member"))
		}
	}
	for i := range r.manifest.IntervalList {
		in := &r.manifest.IntervalList[i]
		for name, kind := range map[string]string{nameHead(in.ID): kindHead, nameLog(in.ID): kindLog} {
			if r.listed[name].Kind != kind {
				return r.damage(nameManifest, fmt.Errorf("interval %d has no member %s", in.ID, name))
			}
		}
	}
	var err error
	if r.bases, err = deltaBases(r.manifest.IntervalList); err != nil {
		return r.damage(nameManifest, err)
	}
	return nil
}

// member reads a listed member whole and checks its length and hash.
func (r *Recording) member(name string) ([]byte, error) {
	info, ok := r.listed[name]
	if !ok {
		return nil, r.damage(name, errors.New("the part is missing"))
	}
	b, err := r.bytes(name, maxMemberRaw)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != info.Size {
		return nil, r.damage(name, fmt.Errorf("%d bytes, the manifest says %d", len(b), info.Size))
	}
	if hash := cutHash(b); hex.EncodeToString(hash[:]) != info.Hash {
		// The frames know where.
		if _, err := decodeMember(b, info.Kind, r.version(), maxMemberRaw, r.charge(name)); err != nil {
			return nil, r.damage(name, err)
		}
		return nil, r.damage(name, errors.New("its bytes do not have the hash of the manifest"))
	}
	return b, nil
}

// decoded reads a listed member and returns its raw bytes.
// limit bounds their number; ch is charged for them.
func (r *Recording) decoded(name, kind string, limit int64, ch *charge) ([]byte, error) {
	sec, err := r.section(name)
	if err != nil {
		return nil, err
	}
	stored := r.charge(name)
	if err := stored.add(sec.Size()); err != nil {
		return nil, r.damage(name, err)
	}
	defer stored.drop()
	b, err := r.member(name)
	if err != nil {
		return nil, err
	}
	raw, err := decodeMember(b, kind, r.version(), limit, ch)
	if err == nil {
		err = r.spend(sec.Size()+int64(len(raw)), name)
	}
	if err != nil {
		return nil, r.damage(name, err)
	}
	return raw, nil
}

// spend charges the work of a part the first time that it is read: a long session
// reads its intervals many times.
func (r *Recording) spend(n int64, part string) error {
	if r.budget == nil {
		return nil
	}
	if _, again := r.read.LoadOrStore(part, struct{}{}); again {
		return r.budget.ctx.Err()
	}
	return r.budget.Spend(n, part)
}

// Spend charges work that a part of the recording asks for, n bytes gone through or what
// takes as long, the first time that it does. Errors: *LimitError, and the budget's context's.
func (r *Recording) Spend(n int64, part string) error {
	err, _ := r.limited(r.spend(n, part))
	return err
}

// version is the version of the format that the recording is in.
func (r *Recording) version() int { return r.manifest.Manifest.Version }

func (r *Recording) readObjects() error {
	ch := r.hold(nameObjects)
	raw, err := r.decoded(nameObjects, kindObjects, maxHeadRaw, ch)
	if err != nil {
		return err
	}
	objects, err := decodeWhole(raw, r.version(), nil, ch, codeObjects)
	if err == nil {
		err = r.spendOn(ch)
	}
	if err != nil {
		return r.damage(nameObjects, err)
	}
	ch = r.hold(nameObjectPages)
	if raw, err = r.decoded(nameObjectPages, kindObjectPages, maxHeadRaw, ch); err != nil {
		return err
	}
	pages, err := decodeWhole(raw, r.version(), &r.store, ch, codeObjectPages)
	if err == nil {
		err = r.spendOn(ch)
	}
	if err != nil {
		return r.damage(nameObjectPages, err)
	}
	r.objects, r.objPages = *objects, *pages
	return nil
}

// Budget returns what reading the recording may cost, nil when it has no bounds.
func (r *Recording) Budget() *Budget { return r.budget }

// File returns the name given to Open.
func (r *Recording) File() string { return r.file }

// Manifest returns what the recording says of itself. It must not be changed.
func (r *Recording) Manifest() *Manifest { return &r.manifest.Manifest }

// Objects returns all objects, sorted by ID. The slice must not be changed.
func (r *Recording) Objects() []Object { return r.objects }

// Object returns the object of an ID.
func (r *Recording) Object(id uint32) (Object, bool) {
	i, ok := slices.BinarySearchFunc(r.objects, id, func(o Object, id uint32) int { return cmp.Compare(o.ID, id) })
	if !ok {
		return Object{}, false
	}
	return r.objects[i], true
}

// ObjectPage returns the content of page index (offset / PageSize) of an object.
func (r *Recording) ObjectPage(object uint32, index uint64) (PageRef, bool) {
	i, ok := slices.BinarySearchFunc(r.objPages, ObjectPage{Object: object, Index: index}, compareObjectPages)
	if !ok {
		return PageRef{}, false
	}
	return r.objPages[i].Ref, true
}

// ObjectPagesIn returns the pages of an object with indexes from first on and below end. The
// slice must not be changed.
func (r *Recording) ObjectPagesIn(object uint32, first, end uint64) []ObjectPage {
	at := func(index uint64) int {
		i, _ := slices.BinarySearchFunc(r.objPages, ObjectPage{Object: object, Index: index}, compareObjectPages)
		return i
	}
	return r.objPages[at(first):max(at(first), at(end))]
}

// ObjectPages returns all pages of objects, sorted by object and index.
func (r *Recording) ObjectPages() iter.Seq[ObjectPage] { return slices.Values(r.objPages) }

// Intervals returns the list of intervals, sorted by ID. The slice must not be changed.
func (r *Recording) Intervals() []IntervalInfo { return r.manifest.IntervalList }

// info returns the row of an interval.
func (r *Recording) info(id uint32) (*IntervalInfo, error) {
	list := r.manifest.IntervalList
	i, ok := slices.BinarySearchFunc(list, id, func(in IntervalInfo, id uint32) int { return cmp.Compare(in.ID, id) })
	if !ok {
		return nil, fmt.Errorf("%w: %d in %s", ErrNoInterval, id, r.file)
	}
	return &list[i], nil
}

// Interval reads an interval whole. The result is the caller's own; its byte
// slices share memory with each other. Errors: ErrNoInterval, *FormatError.
func (r *Recording) Interval(id uint32) (*Interval, error) {
	info, err := r.info(id)
	if err != nil {
		return nil, err
	}
	iv, err := r.head(info)
	if err != nil {
		return nil, err
	}
	name := nameLog(id)
	ch := r.charge(name)
	defer func() { keep(ch, iv) }()
	raw, err := r.decoded(name, kindLog, info.LogRaw, ch)
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) != info.LogRaw {
		return nil, r.damage(name, fmt.Errorf("%d raw bytes, the manifest says %d", len(raw), info.LogRaw))
	}
	if iv.Events, err = decodeEvents(raw, info.Events, r.version(), ch); err == nil {
		err = r.spendOn(ch)
	}
	if err != nil {
		return nil, r.damage(name, err)
	}
	return iv, nil
}

// regionBytes is what a region of a memory map takes besides its mapping, in bytes.
const regionBytes = 400

// charge returns an empty charge for a part.
func (r *Recording) charge(part string) *charge { return &charge{b: r.budget, part: part} }

// hold returns an empty charge for a part that is kept until Close.
func (r *Recording) hold(part string) *charge {
	ch := r.charge(part)
	r.held = append(r.held, ch)
	return ch
}

// spendOn charges the work of making what a part becomes in memory, as spend does: a byte
// of it takes as long as one that is gone through.
func (r *Recording) spendOn(ch *charge) error { return r.spend(ch.n, ch.part+": decoded") }

// head reads an interval without its events.
func (r *Recording) head(info *IntervalInfo) (*Interval, error) {
	name := nameHead(info.ID)
	ch := r.charge(name)
	defer ch.drop()
	raw, err := r.decoded(name, kindHead, maxHeadRaw, ch)
	if err != nil {
		return nil, err
	}
	iv, err := decodeWhole(raw, r.version(), &r.store, ch, codeInterval)
	if err != nil {
		return nil, r.damage(name, err)
	}
	// Each mapping becomes a region, in a tree.
	if err := ch.add(int64(len(iv.Maps)) * regionBytes); err != nil {
		return nil, r.damage(name, err)
	}
	if err := r.spendOn(ch); err != nil {
		return nil, r.damage(name, err)
	}
	keep(ch, iv)
	got := infoOf(iv)
	got.Events, got.HeadSize, got.LogSize, got.LogRaw = info.Events, info.HeadSize, info.LogSize, info.LogRaw
	want := *info
	if !got.WallTime.Equal(want.WallTime) {
		return nil, r.damage(name, errors.New("its time is not the manifest's"))
	}
	got.WallTime = want.WallTime
	if got != want {
		return nil, r.damage(name, errors.New("its header is not what the manifest says"))
	}
	return iv, nil
}

// Sizes says what takes the room in a recording: stored bytes by part.
type Sizes struct {
	File        int64 // the whole file
	Pages       int64 // page packs
	Index       int64 // page indexes
	Heads       int64 // interval headers: contexts, maps, page tables
	Logs        int64 // event logs
	LogsRaw     int64 // event logs, decompressed
	Objects     int64 // objects and their page lists
	Final       int64 // headers of the final images
	Manifest    int64
	Other       int64 // unknown optional members, zip structures
	PagesStored int   // distinct page contents
	Fat, Slim   int   // intervals
	FirstLoads  int   // of the slim ones
}

// Sizes returns the breakdown of the file.
func (r *Recording) Sizes() Sizes {
	s := Sizes{File: r.size, PagesStored: len(r.store.numbers)}
	parts := map[string]*int64{
		kindPack: &s.Pages, kindIndex: &s.Index, kindHead: &s.Heads, kindLog: &s.Logs,
		kindObjects: &s.Objects, kindObjectPages: &s.Objects, kindFinal: &s.Final, kindProcessFinal: &s.Final,
	}
	for name, f := range r.entries {
		if p := parts[r.listed[name].Kind]; p != nil {
			*p += int64(f.CompressedSize64)
		}
	}
	s.Manifest = int64(r.entries[nameManifest].CompressedSize64)
	s.Other = s.File - s.Pages - s.Index - s.Heads - s.Logs - s.Objects - s.Final - s.Manifest
	for i := range r.manifest.IntervalList {
		in := &r.manifest.IntervalList[i]
		s.LogsRaw += in.LogRaw
		if in.FirstLoads {
			s.FirstLoads++
		}
		if in.Slim {
			s.Slim++
		} else {
			s.Fat++
		}
	}
	return s
}

// tableCache keeps the most recent resolved page tables.
type tableCache struct {
	mu    sync.Mutex
	order []uint32 // least recent first
	byID  map[uint32]PageTable
}
