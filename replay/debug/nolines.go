package debug

import (
	"fmt"
	"strings"

	"vplay/loader"
	"vplay/loader/image"
)

// Why a backtrace has no source lines, and what gives it some.

// NoLines says of which modules no source lines are known, and why, as far as they are the program's
// own: of the libraries of a system they lack nearly everywhere. A module may be nil, or be there
// several times. "" where there are none.
func NoLines(r *loader.Resolver, mods []*image.Module, m image.Memory, s *image.Symbols) string {
	var out []string
	seen := map[string]bool{}
	for _, mod := range mods {
		if mod == nil || seen[mod.Path] || IsSystemLibrary(mod.Path) {
			continue
		}
		seen[mod.Path] = true
		if f := r.File(mod); f == nil || !f.HasLines() {
			out = append(out, "none of "+mod.Path+": "+whyNoLines(mod, m, s))
		}
	}
	return strings.Join(out, "; ")
}

// IsSystemLibrary reports whether a path is one of what a distribution installs for programs.
func IsSystemLibrary(path string) bool {
	for _, dir := range []string{"/lib", "/usr/lib", "["} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

func whyNoLines(mod *image.Module, m image.Memory, s *image.Symbols) string {
	which := "its file, which has no build-id"
	if mod.BuildID != "" {
		which = "a file with build-id " + mod.BuildID
	}
	switch path, ok := s.Find(mod, m); {
	case ok && path == mod.Path:
		return fmt.Sprintf("it was built without -g, or stripped; name the folder of %s that is not by --symbols", which)
	case ok:
		return fmt.Sprintf("%s was built without -g, or stripped", path)
	case s.Replaced(mod, m):
		return fmt.Sprintf("the file there is another build; name the folder of %s by --symbols", which)
	}
	return fmt.Sprintf("name the folder of %s by --symbols", which)
}
