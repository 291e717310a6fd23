package corefile

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"vplay/checkpoint"
	"vplay/loader/image"
)

// The files that the program had mapped: where they are looked for, which of them are believed to be the
// very files, and what is said of the others.

// mappedFile is a file of the program that was found.
type mappedFile struct {
	File
	size  int64
	whole bool // all of it is kept, for it has symbols that no memory has
}

// attach finds the files of the program, as far as the core file lacks some of their pages.
func (im *importer) attach() error {
	im.protect()
	modules := map[uint32]*image.Module{}
	for _, mod := range image.Modules(im.m.maps, im.memory) {
		modules[mod.Object] = mod
	}
	for i := range im.m.objects {
		o := &im.m.objects[i]
		if o.Kind != checkpoint.ObjectFile {
			continue
		}
		if err := im.ctx.Err(); err != nil {
			return err
		}
		mod := modules[o.ID]
		if mod != nil {
			o.BuildID = mod.BuildID
		}
		f, err := im.find(o, mod)
		if err == nil {
			o.Size = f.size
			im.files[o.ID] = f
			continue
		}
		var limit *checkpoint.LimitError
		if errors.As(err, &limit) || im.isGiven(o) {
			return err
		}
		if im.lacks(o.ID) {
			im.missing = append(im.missing, fmt.Sprintf("%s: what the core file lacks of it is not in the recording: %v", o.Path, err))
		}
	}
	return nil
}

// protect gives mappings that no segment tells of the protection that their ELF files ask for.
func (im *importer) protect() {
	byPath := map[string]*image.Module{}
	for _, mod := range image.Modules(im.m.maps, im.memory) {
		byPath[mod.Path] = mod
	}
	for i := range im.m.maps {
		g := &im.m.maps[i]
		mod := byPath[g.Name]
		if mod == nil || !im.segmentAt(g.Start).unlisted {
			continue
		}
		for _, p := range mod.Segments {
			if p.Type == elf.PT_LOAD && g.Start >= (mod.Bias+p.Vaddr)&^(pageSize-1) && g.Start < mod.Bias+p.Vaddr+p.Memsz {
				g.Prot = protOf(p.Flags)
			}
		}
	}
}

// lacks reports whether the core file lacks pages of an object that the program could read.
func (im *importer) lacks(object uint32) bool {
	return slices.ContainsFunc(im.byObject[object], func(g checkpoint.Mapping) bool {
		if g.Prot == 0 || g.Flags&checkpoint.MapShared != 0 {
			return false
		}
		s := im.segmentAt(g.Start)
		return s.start+s.stored < g.End
	})
}

// find returns the file of an object. The error says why there is none.
func (im *importer) find(o *checkpoint.Object, mod *image.Module) (*mappedFile, error) {
	if l := im.opt.Live; l != nil && l.Open != nil {
		if f := im.live(o, mod); f != nil {
			return f, nil
		}
	}
	if im.isGiven(o) {
		return im.given(im.opt.Exe, mod)
	}
	switch {
	case mod == nil:
		return nil, errors.New("the core file has no ELF header of it, with a build-id by which it could be known")
	case mod.BuildID == "":
		return nil, errors.New("it has no build-id by which it could be known")
	}
	if im.opt.Sysroot != "" {
		if f, err := im.given(filepath.Join(im.opt.Sysroot, filepath.FromSlash(o.Path)), mod); err == nil {
			return f, nil
		}
	}
	if im.opt.Symbols != nil {
		if name, ok := im.opt.Symbols.Whole(mod, im.memory); ok {
			return open(name)
		}
	}
	return nil, fmt.Errorf("there is no file here with its build-id %s", mod.BuildID)
}

// isGiven reports whether an object is the program, whose file the user has named.
func (im *importer) isGiven(o *checkpoint.Object) bool {
	return im.opt.Exe != "" && o.Path == im.manifest.Program
}

// live returns the file that a process that has not gone yet has mapped, nil when it cannot be had.
func (im *importer) live(o *checkpoint.Object, mod *image.Module) *mappedFile {
	f, size, err := im.opt.Live.Open(im.m.paths[o.ID-1])
	if err != nil {
		return nil
	}
	if id, _, _ := image.Identify(f); mod != nil && mod.BuildID != "" && id != mod.BuildID {
		_ = f.Close() // it was only read
		return nil    // written over since
	}
	return mapped(f, size)
}

// given returns a file that the user has named. Where the core file tells enough to know that it is
// another one, that is an error.
func (im *importer) given(name string, mod *image.Module) (*mappedFile, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	id, _, whole := image.Identify(f)
	switch {
	case !whole:
		err = fmt.Errorf("%s is no program or library with its code", name)
	case mod == nil:
		im.note("%s was taken for the program without a proof: the core file lacks its header", name)
	case id != mod.BuildID:
		err = fmt.Errorf("%s has the build-id %s, and what ran had %s", name, known(id), known(mod.BuildID))
	case im.opt.Symbols != nil && !im.opt.Symbols.Agrees(mod, im.memory, name):
		err = fmt.Errorf("%s was changed since: it is not what the core file has of it", name)
	}
	if err != nil {
		_ = f.Close() // it was only read
		return nil, err
	}
	return f, nil
}

// known is a build-id in a message.
func known(id string) string {
	if id == "" {
		return "(none)"
	}
	return id
}

// open opens a file of this machine.
func open(name string) (*mappedFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	if err != nil {
		_ = f.Close() // it was only read
		return nil, err
	}
	return mapped(f, st.Size()), nil
}

// mapped returns a found file, with whether it has symbols.
func mapped(f File, size int64) *mappedFile {
	return &mappedFile{File: f, size: size, whole: image.IsNamed(f)}
}

// keepFiles writes the pages of the found files that the core file lacks.
func (im *importer) keepFiles() error {
	for i := range im.m.maps {
		g := &im.m.maps[i]
		f := im.files[g.Object]
		if f == nil || g.Flags&checkpoint.MapShared != 0 || g.Prot == 0 {
			continue
		}
		s := im.segmentAt(g.Start)
		from := max(g.Start, (s.start+s.stored)&^(pageSize-1)) // a page that is cut off is in the file
		if from >= g.End {
			continue
		}
		if err := im.keepRange(g.Object, f, from-g.Start+g.Offset, g.End-g.Start+g.Offset); err != nil {
			return err
		}
	}
	im.chooseWhole()
	for _, p := range image.SectionTablePages(im.m.maps, im.memory) {
		if f := im.files[p.Object]; f != nil && !f.whole {
			if err := im.keepRange(p.Object, f, p.Index*pageSize, (p.Index+1)*pageSize); err != nil {
				return err
			}
		}
	}
	for i := range im.m.objects {
		if f := im.files[im.m.objects[i].ID]; f != nil && f.whole {
			if err := im.keepRange(im.m.objects[i].ID, f, 0, uint64(f.size)); err != nil {
				return err
			}
		}
	}
	return nil
}

// chooseWhole decides for which files with symbols there is room.
func (im *importer) chooseWhole() {
	for i := range im.m.objects {
		o := &im.m.objects[i]
		f := im.files[o.ID]
		switch {
		case f == nil || !f.whole:
		case f.size > im.roomForFiles:
			f.whole = false
			im.note("%s is too large to be kept with its symbols; debuggers find them by its build-id (--symbols)", o.Path)
		default:
			im.roomForFiles -= f.size
		}
	}
}

// keepRange writes pages of a file, from start on, up to end or the end of the file. The last page of a file
// is zero behind its end, as it is in memory.
func (im *importer) keepRange(object uint32, f *mappedFile, start, end uint64) error {
	end = min(end, uint64(f.size))
	var page [pageSize]byte
	for at := start &^ (pageSize - 1); at < end; at += pageSize {
		key := checkpoint.ObjectPage{Object: object, Index: at / pageSize}
		if im.kept[key] {
			continue
		}
		if err := im.charge(pageSize); err != nil {
			return err
		}
		n, err := f.ReadAt(page[:], int64(at))
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			im.note("%s: could not be read: %v", im.m.objects[object-1].Path, err)
			return nil
		}
		clear(page[n:])
		im.kept[key] = true
		if key.Ref, err = im.w.AddPage(page[:]); err != nil {
			return err
		}
		if err := im.w.AddObjectPage(key); err != nil {
			return err
		}
	}
	return nil
}
