package gdbstub

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"vplay/replay/debug/api"
)

// qXfer: the documents that a client reads piece by piece, such as the target description, the
// auxiliary vector and the list of libraries. What they say is the target's.

// document is the object a client is reading piece by piece. It is kept so that
// the pieces fit together, until the target moves or another is asked for.
type document struct {
	name string // object and annex
	data []byte
}

// xferObjects holds the objects of qXfer:OBJECT:read. A builder may return
// ErrNotSupported for an object that is not there at all.
var xferObjects = map[string]func(s *session, annex string) ([]byte, error){
	"features":       (*session).targetXML,
	"auxv":           (*session).auxv,
	"exec-file":      (*session).execFile,
	"threads":        (*session).threadsXML,
	"libraries-svr4": (*session).librariesXML,
	"siginfo":        (*session).siginfo,
}

// xfer answers qXfer:OBJECT:read:ANNEX:OFFSET,LENGTH: m and a piece, or l and
// the last piece.
func (s *session) xfer(arg string) reply {
	f := strings.SplitN(arg, ":", 3)
	if len(f) != 3 {
		return replyError
	}
	if f[0] == "siginfo" && f[1] == "write" {
		return s.writeSiginfo(f[2])
	}
	build := xferObjects[f[0]]
	if build == nil || f[1] != "read" {
		return reply{}
	}
	i := strings.LastIndexByte(f[2], ':')
	if i < 0 {
		return replyError
	}
	annex := f[2][:i]
	at, size, _ := strings.Cut(f[2][i+1:], ",")
	off, ok1 := parseHex(at)
	n, ok2 := parseHex(size)
	if !ok1 || !ok2 {
		return replyError
	}
	s.selected.lists = f[0] == "threads"
	name := itoa(s.inferior.pid) + ":" + f[0] + ":" + annex
	if off == 0 || s.doc.name != name {
		data, err := build(s, annex)
		if err != nil {
			return s.xferFailed(err)
		}
		s.doc = document{name, data}
	}
	return piece(s.doc.data, off, n)
}

// xferFailed answers for an object that could not be built.
func (s *session) xferFailed(err error) reply {
	if errors.Is(err, api.ErrNotSupported) {
		return reply{}
	}
	return s.fail(err.Error())
}

// piece returns at most n bytes of data from off on, as many as fit.
func piece(data []byte, off, n uint64) reply {
	size := uint64(len(data))
	if off >= size {
		return text("l")
	}
	rest := data[off:min(size, off+min(n, MaxPacket))]
	rest = rest[:fitEscaped(rest, MaxPacket-1)]
	mark := byte('m')
	if off+uint64(len(rest)) == size {
		mark = 'l'
	}
	return reply{data: append([]byte{mark}, rest...)}
}

var errNoAnnex = errors.New("no such annex")

func (s *session) targetXML(annex string) ([]byte, error) {
	d := s.description()
	switch {
	case annex == "target.xml" && s.srv.opt.RR:
		return d.rrTarget(), nil
	case annex == "target.xml":
		return d.xml, nil
	case s.srv.opt.RR:
		return d.rrFeature(annex)
	}
	return nil, errNoAnnex
}

func (s *session) auxv(string) ([]byte, error) {
	if !s.live {
		return nil, errors.New(errNoProcess)
	}
	return s.target.Process().Auxv, nil
}

// execFile returns the program's path; the annex is a process id or empty.
func (s *session) execFile(annex string) ([]byte, error) {
	pid, ok := s.inferior.pid, true
	if annex != "" {
		pid, ok = parseHexInt(annex)
	}
	if !ok || !s.holds(pid) || !s.use(pid) {
		return nil, errors.New(errNoProcess)
	}
	return []byte(s.target.Process().ExecFile), nil
}

func (s *session) siginfo(string) ([]byte, error) {
	tid := s.generalThread()
	if tid == 0 {
		return nil, errors.New(errNoProcess)
	}
	info, err := s.target.Siginfo(tid)
	if _, ok := s.target.(api.DivertTarget); ok {
		s.div.siginfoRead()
		s.rr.calling = s.srv.opt.RR
		if err != nil { // gdb saves it around a call, signal or not
			return make([]byte, sizeofSiginfo), nil //nolint:nilerr // zeros are what there is
		}
	}
	return info, err
}

// sizeofSiginfo is the size of siginfo_t in bytes (asm-generic/siginfo.h).
const sizeofSiginfo = 128

// attr writes an XML attribute.
func attr(b *bytes.Buffer, name, value string) {
	b.WriteString(" " + name + "=\"")
	_ = xml.EscapeText(b, []byte(value)) // a Buffer does not fail
	b.WriteByte('"')
}

func (s *session) threadsXML(string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\"?>\n<threads>\n")
	for _, t := range s.allThreads() {
		b.WriteString("<thread")
		attr(&b, "id", s.writeThread(threadRef{t.PID, t.TID}))
		attr(&b, "core", itoa(max(t.Core, 0)))
		if t.Name != "" {
			attr(&b, "name", t.Name)
		}
		b.WriteString("/>\n")
	}
	b.WriteString("</threads>\n")
	return b.Bytes(), nil
}

// librariesXML lists the loaded libraries. The program is not among them, but
// its link_map is an attribute of the list.
func (s *session) librariesXML(string) ([]byte, error) {
	if !s.live {
		return nil, errors.New(errNoProcess)
	}
	libs := s.target.Libraries()
	s.libraries = append([]api.Library{}, libs...)
	var b bytes.Buffer
	b.WriteString("<library-list-svr4 version=\"1.0\"")
	for _, l := range libs {
		if l.Main {
			attr(&b, "main-lm", fmt.Sprintf("0x%x", l.LinkMap))
			break
		}
	}
	b.WriteString(">\n")
	for _, l := range libs {
		// gdb rejects an empty name, and warns that it cannot open [vdso] or
		// linux-vdso.so.1, which are no files.
		if l.Main || !strings.Contains(l.Name, "/") {
			continue
		}
		b.WriteString("<library")
		attr(&b, "name", l.Name)
		attr(&b, "lm", fmt.Sprintf("0x%x", l.LinkMap))
		attr(&b, "l_addr", fmt.Sprintf("0x%x", l.Base))
		attr(&b, "l_ld", fmt.Sprintf("0x%x", l.Dynamic))
		attr(&b, "lmid", fmt.Sprintf("0x%x", l.NSID))
		b.WriteString("/>\n")
	}
	b.WriteString("</library-list-svr4>\n")
	return b.Bytes(), nil
}
