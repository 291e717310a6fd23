package dap

import (
	"net/url"
	"path"
	"strings"

	godap "github.com/google/go-dap"
)

// Paths of source files: as the program was built, and as the client knows them.

// source describes a recorded source file to the client.
func (s *session) source(file string) *godap.Source {
	p := file
	for _, m := range s.mappings {
		if rest, ok := under(p, m.From); ok {
			p = strings.TrimRight(m.To, `/\`) + rest
			break
		}
	}
	src := &godap.Source{Name: path.Base(strings.ReplaceAll(file, `\`, "/")), Path: p}
	if s.pathURI {
		src.Path = (&url.URL{Scheme: "file", Path: p}).String()
	}
	return src
}

// under returns what is left of p behind the folder dir; ok is false when p is not
// in it.
func under(p, dir string) (rest string, ok bool) {
	dir = strings.TrimRight(dir, `/\`)
	rest, ok = strings.CutPrefix(p, dir)
	return rest, ok && dir != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}

// fromClient turns a client's path into the recorded one.
func (s *session) fromClient(p string) string {
	if u, err := url.Parse(p); err == nil && u.Scheme == "file" {
		p = u.Path
	}
	for _, m := range s.mappings {
		if rest, ok := under(p, m.To); ok {
			return strings.TrimRight(m.From, `/\`) + strings.ReplaceAll(rest, `\`, "/")
		}
	}
	return p
}
