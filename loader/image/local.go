package image

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"

	"vplay/checkpoint"
)

// Files of this machine that are those that were recorded: which may be opened, whether
// one agrees with what was captured, and how it fills the gaps of an image. Folders of
// symbol files, and the search by build-id, are in symbols.go.

// Local returns the file of this machine that lies where the module's file was
// recorded, if it has the same build-id, or neither has one and the file has what was captured
// (m is the memory). The path is what a recording says, which
// may be anything: only regular files below ordinary folders are opened.
func (s *Symbols) Local(mod *Module, m Memory) (name string, ok bool) {
	if !s.local || runtime.GOOS != "linux" || mod.BuildID != "" && len(mod.BuildID) < 4 {
		return "", false
	}
	if id, isELF := localID(mod.Path); !isELF || id != mod.BuildID {
		return "", false
	}
	return mod.Path, mod.BuildID != "" || s.Agrees(mod, m, mod.Path)
}

// localID returns the build-id of the ELF file at a recorded path, "" when it has none. isELF is
// false when there is no such file that may be opened.
func localID(name string) (id string, isELF bool) {
	if !isOrdinary(name) {
		return "", false
	}
	id, debug, whole := idOfFile(name)
	return id, debug || whole
}

// isOrdinary reports whether there is a regular file below ordinary folders at a recorded path.
func isOrdinary(name string) bool {
	if !path.IsAbs(name) || path.Clean(name) != name {
		return false
	}
	for _, special := range []string{"/proc/", "/dev/", "/sys/"} {
		if strings.HasPrefix(name, special) {
			return false
		}
	}
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular() && st.Size() <= maxSymbolFile
}

// Replaced reports whether this machine has another file than the recorded one at the module's
// path, as where the program was built anew.
func (s *Symbols) Replaced(mod *Module, m Memory) bool {
	if !s.local || runtime.GOOS != "linux" || !isOrdinary(mod.Path) {
		return false
	}
	_, isSame := s.Local(mod, m)
	return !isSame
}

// systemDebug is where distributions keep the debugging information of what they install,
// by build-id (gdb manual, "Separate Debug Files").
const systemDebug = "/usr/lib/debug"

// SystemFile returns this machine's debug file of the module, for those who look for names
// themselves: gdb finds it without help.
func (s *Symbols) SystemFile(mod *Module) (name string, ok bool) {
	if _, found := s.inFolders(mod.BuildID); found {
		return "", false
	}
	return s.system(mod.BuildID)
}

// system returns this machine's debug file with a build-id.
func (s *Symbols) system(id string) (name string, ok bool) {
	if _, err := hex.DecodeString(id); err != nil || !s.local || runtime.GOOS != "linux" || len(id) < 4 {
		return "", false
	}
	if name, ok = named([]string{s.systemDebug}, id); !ok {
		return "", false
	}
	found, isELF := localID(name)
	return name, isELF && found == id
}

// maxLocalFiles bounds how many recorded paths Files looks at.
const maxLocalFiles = 10_000

// Files returns the files that Find may name for the modules of a recording with these
// objects, besides those that lie in the folders: files of this machine that are ELF
// files, of the recorded build-id where that is known, their debug files, and what
// the folders have symbolic links to. It is for those who must say beforehand what they open.
func (s *Symbols) Files(objects []checkpoint.Object) (names []string) {
	seen := map[string]bool{}
	for i := range objects {
		o := &objects[i]
		if o.Path == "" || seen[o.Path] {
			continue
		}
		if seen[o.Path] = true; len(seen) > maxLocalFiles {
			break
		}
		if _, err := hex.DecodeString(o.BuildID); err == nil && len(o.BuildID) >= 4 {
			if p, ok := s.byName(o.BuildID); ok {
				names = append(names, p)
			}
		}
		if !s.local || runtime.GOOS != "linux" {
			continue
		}
		id, isELF := localID(o.Path)
		if isELF && (o.BuildID == "" || o.BuildID == id) {
			names = append(names, o.Path)
		}
		if o.BuildID != "" {
			id = o.BuildID
		}
		if p, ok := s.system(id); ok {
			names = append(names, p)
		}
	}
	return names
}

// Agrees reports whether a file has what was captured of a module, where the
// program cannot have changed it: in segments that are not writable. Two files with
// one build-id can differ: one of them was patched after it was linked. Of a module without
// one the code must be known in part.
func (s *Symbols) Agrees(mod *Module, m Memory, name string) bool {
	key := mod.BuildID + name
	if mod.BuildID == "" {
		key = fmt.Sprint(mod.Object, name)
	}
	s.mu.Lock()
	same, ok := s.agree[key]
	s.mu.Unlock()
	if ok {
		return same
	}
	if f, err := s.readSymbolFile(name); err == nil {
		im, err := memoryImage(mod, m, &s.unwind)
		same = err == nil && im.agrees(f.raw) && (mod.BuildID != "" || im.hasCode())
	}
	s.mu.Lock()
	s.agree[key] = same
	s.mu.Unlock()
	return same
}

// fixed calls visit for the file range of each segment that is never writable.
func (im *image) fixed(visit func(start, end uint64)) {
	for _, p := range im.mod.Segments {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W == 0 && p.Filesz > 0 {
			visit(p.Off, p.Off+p.Filesz)
		}
	}
}

// gaps calls visit for each range of [start,end) of the file that is missing, or
// known.
func (im *image) gaps(start, end uint64, missing bool, visit func(start, end uint64)) {
	at := start
	for _, r := range append(im.missing, Range{uint64(len(im.b)), 1 << 62}) {
		from, to := max(r.Start, at), min(r.End, end)
		if from >= to {
			continue
		}
		if !missing && at < from {
			visit(at, from)
		} else if missing {
			visit(from, to)
		}
		at = to
	}
	if !missing && at < end {
		visit(at, end)
	}
}

// agrees reports whether what is known of the segments that are not writable is
// what the file has.
func (im *image) agrees(raw []byte) bool {
	same := true
	im.fixed(func(start, end uint64) {
		im.gaps(start, end, false, func(from, to uint64) {
			same = same && to <= uint64(min(len(raw), len(im.b))) && bytes.Equal(im.b[from:to], raw[from:to])
		})
	})
	return same
}

// complete takes what is missing of the segments that are not writable from the
// file.
func (im *image) complete(raw []byte) {
	var filled []Range
	size := uint64(len(im.b))
	im.fixed(func(start, end uint64) {
		if end <= uint64(len(raw)) {
			im.gaps(start, end, true, func(from, to uint64) { filled = append(filled, Range{from, to}) })
			size = max(size, end)
		}
	})
	if n := uint64(len(im.b)); n < size {
		im.miss(n, size) // a gap between segments is not known either
		im.grow(size)
	}
	for _, r := range filled {
		copy(im.b[r.Start:r.End], raw[r.Start:r.End])
	}
	im.missing = without(im.missing, filled)
}

// without returns the ranges less those of cut, both made sorted.
func without(ranges, cut []Range) (out []Range) {
	ranges, cut = merge(ranges), merge(cut)
	for _, r := range ranges {
		for len(cut) > 0 && cut[0].End <= r.Start {
			cut = cut[1:]
		}
		for _, c := range cut {
			if c.Start >= r.End {
				break
			}
			if r.Start < c.Start {
				out = append(out, Range{r.Start, c.Start})
			}
			r.Start = max(r.Start, c.End)
			if c.End > r.End {
				break
			}
		}
		if r.Start < r.End {
			out = append(out, r)
		}
	}
	return out
}
