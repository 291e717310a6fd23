package image

import (
	"debug/elf"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"vplay/checkpoint"
	"vplay/dwarf/elffile"
)

// Symbol files: how one is found by its build-id, in folders and on this machine. How it
// becomes part of a rebuilt file is in build.go and merge.go.

// Unwind reads .eh_frame sections, which is not the business of those who rebuild files.
type Unwind struct {
	Functions listFunctions
	// Name names a function without a symbol that begins at a file virtual address.
	Name func(start uint64) string
}

// Symbols finds symbol files by build-id: full ELF files or .debug files, in
// folders that lie flat or in the .build-id/xx/ layout. It is safe for
// concurrent use.
type Symbols struct {
	dirs        []string
	local       bool   // files of this machine, too
	systemDebug string // a folder with debug files, of which each is named by a build-id
	unwind      Unwind
	embedded    bool               // the recording may hold whole files on purpose
	budget      *checkpoint.Budget // of reading files, and of what is rebuilt

	mu    sync.Mutex
	agree map[string]bool // by file and build-id; see Agrees
	sized map[string]bool // files whose size the budget knows

	once  sync.Once
	index map[string]string
	whole map[string]string // files that hold the code, too

	unnamed map[string][]string // those without a build-id that hold the code, by the name in their folder
}

// listFunctions returns the functions that a section at a file virtual address has,
// sorted, without repetition, as file virtual addresses. Reading it is charged to
// budget, which may be nil; what that has no room for is left out.
type listFunctions func(section []byte, addr uint64, budget *checkpoint.Budget) []Range

// maxSymbolFiles bounds how many files of a folder are looked at.
const maxSymbolFiles = 100_000

// maxSymbolFile bounds the size of one, in bytes.
const maxSymbolFile = 2 << 30

// newSymbols returns a finder over dirs. With local it finds files of this machine,
// too, that lie where the recorded program had them. Nothing is read before
// Find. unwind gives the functions of the files that are rebuilt.
func NewSymbols(dirs []string, local bool, unwind Unwind) *Symbols {
	return &Symbols{dirs: dirs, local: local, systemDebug: systemDebug, unwind: unwind, agree: map[string]bool{}, sized: map[string]bool{}}
}

// Within has what is read and rebuilt from then on charged to a budget, that of the
// recording, and returns s.
func (s *Symbols) Within(budget *checkpoint.Budget) *Symbols {
	s.budget = budget
	return s
}

// Of is Within the budget of a recording. Of one that was made from a core file the whole files that it
// holds are found, too.
func (s *Symbols) Of(rec *checkpoint.Recording) *Symbols {
	s.embedded = rec.IsOfCore()
	return s.Within(rec.Budget())
}

// SystemFolder has debug files looked for in a folder other than /usr/lib/debug, and
// returns s.
func (s *Symbols) SystemFolder(dir string) *Symbols {
	s.systemDebug = dir
	return s
}

// Budget returns what is charged, nil when nothing is.
func (s *Symbols) Budget() *checkpoint.Budget { return s.budget }

// Find returns the file with a module's build-id. Those in the folders come first,
// and of them those with debugging information. Where the module has none, it is a file
// that has none either and has what was captured (m is the memory).
func (s *Symbols) Find(mod *Module, m Memory) (path string, ok bool) {
	if mod.BuildID == "" {
		return s.byContent(mod, m)
	}
	if path, ok = s.inFolders(mod.BuildID); ok {
		return path, true
	}
	return s.Local(mod, m)
}

func (s *Symbols) inFolders(id string) (path string, ok bool) {
	if len(id) < 4 {
		return "", false
	}
	if path, ok = s.byName(id); ok {
		return path, true
	}
	s.once.Do(s.scan)
	path, ok = s.index[id]
	return path, ok
}

// byName finds a file of the folders that has the build-id in its path.
func (s *Symbols) byName(id string) (path string, ok bool) { return named(s.dirs, id) }

// named finds a file that has the build-id in its path below one of dirs. It may be a
// symbolic link to any place.
func named(dirs []string, id string) (path string, ok bool) {
	for _, dir := range dirs {
		for _, root := range []string{dir, filepath.Join(dir, ".build-id")} {
			p := filepath.Join(root, id[:2], id[2:]+".debug")
			if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
				return p, true
			}
		}
	}
	return "", false
}

// scan reads the build-id of every ELF file in the folders.
func (s *Symbols) scan() {
	s.index, s.whole, s.unnamed = map[string]string{}, map[string]string{}, map[string][]string{}
	withDebug := map[string]bool{}
	n := 0
	for _, dir := range s.dirs {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, _ error) error {
			if d == nil || !d.Type().IsRegular() {
				return nil // a folder, or an unreadable corner, which is no reason to stop
			}
			if n++; n > maxSymbolFiles {
				return filepath.SkipAll
			}
			id, debug, whole := idOfFile(p)
			switch base := filepath.Base(p); {
			case !whole:
			case id != "":
				s.whole[id] = p
			default:
				s.unnamed[base] = append(s.unnamed[base], p)
			}
			if id != "" && (s.index[id] == "" || debug && !withDebug[id]) {
				s.index[id], withDebug[id] = p, debug
			}
			return nil
		})
	}
}

// idOfFile returns the build-id of an ELF file, and whether it has DWARF, and the
// program's own bytes.
func idOfFile(path string) (id string, debug, whole bool) {
	r, err := os.Open(path)
	if err != nil {
		return "", false, false
	}
	defer func() { _ = r.Close() }() // only read
	return Identify(r)
}

// Identify returns the build-id of the ELF file that r reads, and whether it has DWARF, and the
// program's own bytes. All is empty for what is no ELF file.
func Identify(r io.ReaderAt) (id string, debug, whole bool) {
	f, err := elffile.Open(r)
	if err != nil {
		return "", false, false
	}
	for _, s := range f.Sections {
		if s.Type == elf.SHT_NOTE && s.Size < 1<<16 {
			if b, err := s.Data(); err == nil {
				if found := buildID(b); found != "" {
					id = found
				}
			}
		}
		if s.Name == ".debug_info" || s.Name == ".zdebug_info" {
			debug = true
		}
		if s.Type == elf.SHT_PROGBITS && s.Flags&elf.SHF_EXECINSTR != 0 && s.Size > 0 {
			whole = true
		}
	}
	return id, debug, whole
}

// IsNamed reports whether an ELF file has symbols or debugging information that no memory holds.
func IsNamed(r io.ReaderAt) bool {
	f, err := elffile.Open(r)
	if err != nil {
		return false
	}
	return (&symbolFile{File: f}).isNamed()
}
