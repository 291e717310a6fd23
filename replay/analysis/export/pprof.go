package export

import (
	"compress/gzip"
	"io"
	"slices"
)

// pprof: profile.proto, gzipped, as pprof reads it (github.com/google/pprof, proto/profile.proto, which has the numbers of the fields). Each
// sample is a stack, leaf first, with four exact values. A location stands for a source line of a function.

// Fields of message Profile.
const (
	profileSampleType    = 1
	profileSample        = 2
	profileMapping       = 3
	profileLocation      = 4
	profileFunction      = 5
	profileString        = 6
	profileComment       = 13
	profileDefaultSample = 14
)

// sampleTypes are the values of each sample, and their units.
var sampleTypes = [...][2]string{{"instructions", "count"}, {"calls", "count"}, {"alloc_objects", "count"}, {"alloc_space", "bytes"}}

// pprofWriter makes a profile.
type pprofWriter struct {
	w         *walk
	out       io.Writer
	err       error
	lines     *lines
	text      map[string]uint64
	functions map[pprofFunction]uint64
	spots     uint64   // numbered so far
	sites     []uint64 // by node: the location of its call, 0 where that is not known yet
	m         message
}

// pprofFunction is what tells functions apart: those that were inlined have no number.
type pprofFunction struct {
	fn         int32
	name, file string
}

func writePprof(w *walk, out io.Writer) error {
	if err := w.count(); err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	p := &pprofWriter{w: w, out: z, lines: newLines(w), text: map[string]uint64{}, functions: map[pprofFunction]uint64{}, sites: make([]uint64, len(w.tree.nodes))}
	p.write()
	if p.err != nil {
		return p.err
	}
	return z.Close()
}

func (p *pprofWriter) write() {
	p.string("")
	for _, t := range sampleTypes {
		var v message
		v.uint(1, p.string(t[0]))
		v.uint(2, p.string(t[1]))
		p.field(profileSampleType, &v)
	}
	p.mappings()
	p.samples()
	var rest message
	rest.uint(profileDefaultSample, p.string(sampleTypes[0][0]))
	rest.uint(profileComment, p.string("made by vplayd export from "+p.w.s.Rec.File()))
	p.raw(rest.b)
}

// raw writes bytes of message Profile.
func (p *pprofWriter) raw(b []byte) {
	if p.err == nil {
		_, p.err = p.out.Write(b)
	}
}

// field writes a message in message Profile.
func (p *pprofWriter) field(number int, v *message) {
	p.m.reset()
	p.m.message(number, v)
	p.raw(p.m.b)
}

// string returns the number of a text, which is written when it is first asked for.
func (p *pprofWriter) string(s string) uint64 {
	n, ok := p.text[s]
	if !ok {
		n = uint64(len(p.text))
		p.text[s] = n
		p.m.reset()
		p.m.string(profileString, printable(s))
		p.raw(p.m.b)
	}
	return n
}

// mappings writes the modules; their numbers are those of the walk.
func (p *pprofWriter) mappings() {
	order := []int{}
	program := p.w.mainModule()
	for i := range p.w.code.modules {
		if i == program {
			order = slices.Insert(order, 0, i) // the first is what the profile is called after
		} else if i > 0 { // else it is no module
			order = append(order, i)
		}
	}
	for _, i := range order {
		m := &p.w.code.modules[i]
		var v message
		v.uint(1, uint64(i))
		v.uint(2, m.start)
		v.uint(3, m.end)
		v.uint(4, m.start-m.bias)
		v.uint(5, p.string(m.path))
		v.uint(6, p.string(m.buildID))
		v.uint(7, 1) // has functions
		if m.file != nil && m.file.HasLines() {
			v.uint(8, 1)  // files
			v.uint(9, 1)  // lines
			v.uint(10, 1) // inlined frames
		}
		p.field(profileMapping, &v)
	}
}

// function returns the number of a function.
func (p *pprofWriter) function(l *line) uint64 {
	key := pprofFunction{fn: l.fn, name: l.name}
	var start int
	file := l.file
	if l.fn >= 0 {
		f := &p.w.code.functions[l.fn]
		start, file = f.line, f.file
	}
	key.file = file
	n, ok := p.functions[key]
	if !ok {
		n = uint64(len(p.functions) + 1)
		p.functions[key] = n
		var v message
		v.uint(1, n)
		v.uint(2, p.string(l.name))
		v.uint(3, p.string(l.name))
		v.uint(4, p.string(file))
		v.uint(5, uint64(max(start, 0)))
		p.field(profileFunction, &v)
	}
	return n
}

// location returns the number of a spot.
func (p *pprofWriter) location(s *spot) uint64 {
	if s.id == 0 {
		p.spots++
		s.id = p.spots
		var v message
		v.uint(1, s.id)
		v.uint(2, uint64(s.at.module()))
		v.uint(3, s.at.addr()+p.w.code.modules[s.at.module()].bias)
		for i := range s.lines {
			var l message
			l.uint(1, p.function(&s.lines[i]))
			l.uint(2, uint64(max(s.lines[i].number, 0)))
			v.message(4, &l)
		}
		p.field(profileLocation, &v)
	}
	return s.id
}

// samples writes what was counted. Calls and what was allocated are those of the first sample of a node.
func (p *pprofWriter) samples() {
	list := p.w.sums(p.lines)
	next := 0
	for n := 1; n < len(p.w.tree.nodes) && p.err == nil; n++ {
		x := &p.w.tree.nodes[n]
		values := [len(sampleTypes)]uint64{1: x.calls, 2: x.blocks, 3: x.bytes}
		if next == len(list) || list[next].node != int32(n) {
			if values != [len(sampleTypes)]uint64{} {
				p.sample(int32(n), p.lines.at(p.w.code.functions[x.fn].entry, x.fn), values)
			}
			continue
		}
		for ; next < len(list) && list[next].node == int32(n); next++ {
			values[0] = list[next].times
			p.sample(int32(n), list[next].spot, values)
			values = [len(sampleTypes)]uint64{}
		}
	}
}

func (p *pprofWriter) sample(n int32, leaf *spot, values [len(sampleTypes)]uint64) {
	stack := []uint64{p.location(leaf)}
	for n != 0 {
		x := &p.w.tree.nodes[n]
		if x.parent != 0 {
			if p.sites[n] == 0 {
				p.sites[n] = p.location(p.lines.at(x.site, p.w.tree.nodes[x.parent].fn))
			}
			stack = append(stack, p.sites[n])
		}
		n = x.parent
	}
	var v message
	v.packed(1, stack)
	v.packed(2, values[:])
	p.field(profileSample, &v)
}
