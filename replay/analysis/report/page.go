package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // page.html and page.css
	"encoding/base64"
	"html/template"
	"io"
	"sync"
)

// The template, and the policy that the page has the browser keep. No escape is turned off for
// anything of a recording: the style sheet and the policy are the program's own.

//go:embed page.html
var pageText string

//go:embed page.css
var style string

// policy forbids everything but the style sheet of the page, which it knows by its hash
// (Content Security Policy Level 3, 2.3.1). A policy in a page cannot forbid frames around it.
func policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pageTemplate is parsed when a page is written: it takes a millisecond, and most processes write none.
var pageTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

// render writes the page, all of it or nothing.
func (p *page) render(w io.Writer) error {
	p.Policy, p.Style = policy(), template.CSS(style) //nolint:gosec // it is ours
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, p); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
