package report

import (
	"bufio"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Source texts. A recording holds none, and names files as it likes: with a name that it has
// made up it could have a file of the reader's end up in a page that is sent away. So files are
// taken from chosen folders alone, and those alone that have the name of a source file.

// Sources finds source texts in folders.
type Sources struct {
	roots []sourceRoot
	files map[string]*sourceFile
}

type sourceRoot struct {
	*os.Root
	path string // absolute, with slashes
}

// sourceFile is the text of a file, nil where there is none.
type sourceFile struct {
	lines    []string
	modified time.Time
}

// Bounds of what is read of a file.
const (
	maxSource     = 8 << 20 // bytes
	maxSourceLine = 4096
	maxParts      = 64 // of a path
)

// sourceNames are the suffixes of files that are taken for source texts.
var sourceNames = []string{
	".c", ".h", ".cc", ".hh", ".cpp", ".hpp", ".cxx", ".hxx", ".c++", ".h++", ".C", ".H", ".inc", ".inl", ".ipp", ".tcc", ".def",
	".s", ".S", ".asm", ".go", ".rs", ".d", ".f", ".F", ".f90", ".F90", ".f95", ".pas", ".pp", ".lpr", ".adb", ".ads",
	".nim", ".zig", ".swift", ".m", ".mm", ".hs", ".ml", ".mli", ".v", ".cr", ".y", ".l",
}

// NewSources returns a finder in folders, the first before the others. Close gives it back. The
// error is of a folder that cannot be opened.
func NewSources(folders []string) (*Sources, error) {
	s := &Sources{files: map[string]*sourceFile{}}
	for _, dir := range folders {
		root, err := os.OpenRoot(dir)
		if err != nil {
			s.Close()
			return nil, err
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			abs = dir
		}
		s.roots = append(s.roots, sourceRoot{root, filepath.ToSlash(abs)})
	}
	return s, nil
}

// Close gives back what it holds.
func (s *Sources) Close() {
	for _, r := range s.roots {
		_ = r.Close() // only read
	}
}

// file returns the text of a file by its recorded path; nil where it is not found.
func (s *Sources) file(name string) *sourceFile {
	if s == nil || name == "" {
		return nil
	}
	if f, ok := s.files[name]; ok {
		return f
	}
	f := s.find(name)
	s.files[name] = f
	return f
}

// line returns a line of a file, the first being 1; "" where it is not known.
func (s *Sources) line(name string, n int) string {
	f := s.file(name)
	if f == nil || n < 1 || n > len(f.lines) {
		return ""
	}
	return f.lines[n-1]
}

// find looks for a file at its path, where that is below a folder, and then below each folder by
// the longest end of its path that is there.
func (s *Sources) find(name string) *sourceFile {
	if !slices.Contains(sourceNames, path.Ext(slashes(name))) {
		return nil
	}
	clean := path.Clean(slashes(name))
	for _, r := range s.roots {
		if rest, ok := strings.CutPrefix(clean, strings.TrimSuffix(r.path, "/")+"/"); ok {
			if f := r.read(rest); f != nil {
				return f
			}
		}
	}
	parts := strings.Split(strings.TrimLeft(clean, "/"), "/")
	parts = parts[max(0, len(parts)-maxParts):]
	for i := range parts {
		for _, r := range s.roots {
			if f := r.read(path.Join(parts[i:]...)); f != nil {
				return f
			}
		}
	}
	return nil
}

// read reads a file below a folder; nil where it is none, or no text.
func (r *sourceRoot) read(name string) *sourceFile {
	name = filepath.FromSlash(name)
	if !filepath.IsLocal(name) {
		return nil
	}
	st, err := r.Stat(name)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxSource {
		return nil
	}
	in, err := r.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = in.Close() }() // only read
	f := &sourceFile{modified: st.ModTime()}
	for b := bufio.NewReader(io.LimitReader(in, maxSource)); ; {
		line, err := b.ReadString('\n')
		if strings.ContainsRune(line, 0) {
			return nil
		}
		if line != "" {
			f.lines = append(f.lines, strings.TrimRight(line[:min(len(line), maxSourceLine)], "\r\n"))
		}
		if err != nil {
			return f
		}
	}
}

// slashes is a path with slashes: compilers for Windows write the other ones.
func slashes(s string) string { return strings.ReplaceAll(s, `\`, "/") }
