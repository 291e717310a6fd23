package script

import (
	"embed"
	"io/fs"
	"strings"
)

// The scripts that come with the program.

//go:embed library/*.star
var library embed.FS

// suffix is that of scripts' files.
const suffix = ".star"

// Library returns the names of the scripts that come with the program, sorted.
func Library() (names []string) {
	list, _ := fs.ReadDir(library, "library") // it is part of the program
	for _, f := range list {
		names = append(names, strings.TrimSuffix(f.Name(), suffix))
	}
	return names
}

// Shipped returns the source of a script that comes with the program; ok is false where there is none of that name.
func Shipped(name string) (source []byte, ok bool) {
	b, err := library.ReadFile("library/" + name + suffix)
	return b, err == nil
}

// About returns what a script says of itself: the comment that it begins with, without the marks.
func About(source []byte) string {
	var out []string
	for line := range strings.Lines(string(source)) {
		text, isComment := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "#")
		if !isComment {
			break
		}
		out = append(out, strings.TrimPrefix(text, " "))
	}
	return strings.Join(out, "\n")
}
