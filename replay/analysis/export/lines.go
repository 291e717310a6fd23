package export

// Source lines and inlined functions of places.

// line is a function at a place, its source file and the line there; file is "" where it is not known.
type line struct {
	fn     int32 // -1: it was inlined
	name   string
	file   string
	number int
}

// lines looks places up once.
type lines struct {
	code  *code
	known map[place]*spot
	same  map[spotKey]*spot
}

// spot is all that is known of a place: several have the same one, that of their source line.
type spot struct {
	at    place  // the first that was asked for
	lines []line // the function, in front of it those inlined there, innermost first
	id    uint64 // for who numbers spots
}

// spotKey is what tells spots apart; chain is inlined functions and where they were called.
type spotKey struct {
	fn     int32
	number int
	file   string
	chain  string
}

func newLines(c *code) *lines {
	return &lines{code: c, known: map[place]*spot{}, same: map[spotKey]*spot{}}
}

// at returns what is known of a place in a function.
func (l *lines) at(p place, fn int32) *spot {
	if s := l.known[p]; s != nil {
		return s
	}
	f := &l.code.functions[fn]
	outer := line{fn: fn, name: f.name}
	var list []line
	key := spotKey{fn: fn}
	d := l.code.modules[p.module()].file
	if d != nil && p != 0 {
		outer.file, outer.number, _ = d.Line(p.addr())
		key.number, key.file = outer.number, outer.file
		for _, in := range d.Inlined(p.addr()) {
			list = append(list, line{-1, in.Name, outer.file, outer.number})
			key.chain += in.Name + "\x00" + in.CallFile + "\x00" + string(rune(in.CallLine))
			outer.file, outer.number = in.CallFile, in.CallLine
		}
	}
	s := l.same[key]
	if s == nil {
		s = &spot{at: p, lines: append(list, outer)}
		l.same[key] = s
	}
	l.known[p] = s
	return s
}
