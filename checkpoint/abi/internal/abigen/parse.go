package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The parser of syscalls.txt. It reads the lines into rows and checks that each says
// what it must; the format of the lines is described at the head of that file. Go source
// is written in main.go.

type table struct {
	structs []structRow
	rows    []*row
	sizes   map[string]uint32
	seen    map[int]bool
}

type structRow struct {
	name string
	size uint32
}

type row struct {
	nr                                    int
	name, ret, effect, restart, deny, why string
	irregular, absent                     bool
	args                                  []*arg
}

type arg struct {
	name, kind, set, strct string
	size                   uint32
	rule                   string // Go name of the length rule, "" for LenOne
	of                     string // name of the argument that gives the length
	ofIndex                int
	n                      uint32
}

func (a *arg) literal() string {
	s := fmt.Sprintf("Name: %q, Kind: %s", a.name, a.kind)
	if a.set != "" {
		s += fmt.Sprintf(", Set: %q", a.set)
	}
	if a.strct != "" {
		s += fmt.Sprintf(", Struct: %q", a.strct)
	}
	if a.size != 0 {
		s += fmt.Sprintf(", Size: %d", a.size)
	}
	if a.rule != "" {
		s += ", Len: " + a.rule
	}
	if a.of != "" {
		s += fmt.Sprintf(", Of: %d", a.ofIndex)
	}
	if a.n != 0 {
		s += fmt.Sprintf(", N: %d", a.n)
	}
	return s
}

var (
	effects  = words("plain mem task exec exit signal opaque refuse filewrite", "EffectPlain EffectMem EffectTask EffectExec EffectExit EffectSignal EffectOpaque EffectRefuse EffectFileWrite")
	restarts = words("sys noint nohand block", "RestartSys RestartNoIntr RestartNoHand RestartBlock")
	values   = words("int uint long ulong size off hex fd dirfd mode dev pid uid signo path str strv ptr lenptr",
		"KindInt KindUint KindLong KindUlong KindSize KindOff KindHex KindFD KindDirFD KindMode KindDev KindPID KindUID KindSigno KindPath KindStr KindStrv KindPtr KindLenPtr")
	results = words("zero int uint long size off hex fd pid uid mode ptr none", "KindZero KindInt KindUint KindLong KindSize KindOff KindHex KindFD KindPID KindUID KindMode KindPtr KindNone")
	sized   = words("in out inout", "KindIn KindOut KindInOut")
	vectors = words("iovin iovout sockin sockout", "KindIovIn KindIovOut KindSockIn KindSockOut")
)

func words(names, goNames string) map[string]string {
	n, g := strings.Fields(names), strings.Fields(goNames)
	m := make(map[string]string, len(n))
	for i := range n {
		m[n[i]] = g[i]
	}
	return m
}

func parse(text string) (*table, error) {
	t := &table{sizes: map[string]uint32{}, seen: map[int]bool{}}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var err error
		if rest, ok := strings.CutPrefix(line, "struct "); ok {
			err = t.parseStruct(rest)
		} else {
			err = t.parseRow(line)
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i+1, err)
		}
	}
	return t, nil
}

func (t *table) parseStruct(s string) error {
	f := strings.Fields(s)
	if len(f) < 3 {
		return errors.New("struct needs a name, a size and a header")
	}
	n, err := strconv.ParseUint(f[1], 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("bad size %q", f[1])
	}
	if t.sizes[f[0]] != 0 {
		return fmt.Errorf("struct %s twice", f[0])
	}
	t.sizes[f[0]] = uint32(n)
	t.structs = append(t.structs, structRow{f[0], uint32(n)})
	return nil
}

func (t *table) parseRow(line string) error {
	line, why, _ := strings.Cut(line, "|")
	head, rest, ok := strings.Cut(line, "(")
	list, tail, ok2 := strings.Cut(rest, ")")
	h := strings.Fields(head)
	if !ok || !ok2 || len(h) != 2 {
		return errors.New("want NUMBER NAME (ARGS) RETURN EFFECT")
	}
	nr, err := strconv.Atoi(h[0])
	if err != nil || nr < 0 || nr > 4095 || t.seen[nr] {
		return fmt.Errorf("bad or repeated number %q", h[0])
	}
	t.seen[nr] = true
	r := &row{nr: nr, name: h[1], why: strings.TrimSpace(why)}
	if strings.TrimSpace(list) != "" {
		for _, a := range strings.Split(list, ",") {
			if err := t.parseArg(r, a); err != nil {
				return err
			}
		}
	}
	if len(r.args) > 6 {
		return errors.New("more than six arguments")
	}
	if err := r.resolve(); err != nil {
		return err
	}
	if err := r.parseTail(strings.Fields(tail)); err != nil {
		return err
	}
	t.rows = append(t.rows, r)
	return nil
}

func (r *row) parseTail(f []string) error {
	if len(f) < 2 {
		return errors.New("no result or effect")
	}
	if r.ret = results[f[0]]; r.ret == "" {
		return fmt.Errorf("unknown result %q", f[0])
	}
	if r.effect = effects[f[1]]; r.effect == "" {
		return fmt.Errorf("unknown effect %q", f[1])
	}
	for _, w := range f[2:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "irregular":
			r.irregular = true
		case "absent":
			r.absent = true
		case "deny":
			r.deny = v
		case "restart":
			if r.restart = restarts[v]; r.restart == "" {
				return fmt.Errorf("unknown restart kind %q", v)
			}
		default:
			return fmt.Errorf("unknown word %q", w)
		}
	}
	return nil
}

func (t *table) parseArg(r *row, s string) error {
	f := strings.Fields(s)
	if len(f) != 2 {
		return fmt.Errorf("argument %q: want NAME KIND", s)
	}
	a := &arg{name: f[0]}
	r.args = append(r.args, a)
	if a.kind = values[f[1]]; a.kind != "" {
		return nil
	}
	if set, ok := strings.CutPrefix(f[1], "flags:"); ok {
		a.kind, a.set = "KindFlags", set
		return nil
	}
	if set, ok := strings.CutPrefix(f[1], "enum:"); ok {
		a.kind, a.set = "KindEnum", set
		return nil
	}
	return t.parseSized(a, f[1])
}

func (t *table) parseSized(a *arg, s string) error {
	dir, length, hasLen := strings.Cut(strings.TrimSuffix(s, "]"), "[")
	if hasLen != strings.HasSuffix(s, "]") {
		return fmt.Errorf("kind %q: brackets", s)
	}
	if a.kind = vectors[dir]; a.kind != "" {
		a.rule, a.of = "LenArg", length
		return nil
	}
	dir, a.strct, _ = strings.Cut(dir, ":")
	if a.kind = sized[dir]; a.kind == "" {
		return fmt.Errorf("unknown kind %q", s)
	}
	a.size = 1
	if a.strct != "" {
		if a.size = t.sizes[a.strct]; a.size == 0 {
			return fmt.Errorf("unknown struct %q", a.strct)
		}
	} else if !hasLen {
		return fmt.Errorf("kind %q has no size", s)
	}
	return a.parseLen(length, hasLen)
}

func (a *arg) parseLen(length string, hasLen bool) error {
	if !hasLen {
		return nil
	}
	if n, err := strconv.ParseUint(length, 10, 16); err == nil {
		a.rule, a.n = "LenN", uint32(n)
		return nil
	}
	if of, ok := strings.CutPrefix(length, "ret<="); ok {
		a.rule, a.of = "LenRet", of
		return nil
	}
	a.rule, a.of = "LenArg", length
	return nil
}

func (r *row) resolve() error {
	for _, a := range r.args {
		if a.of == "" {
			continue
		}
		a.ofIndex = -1
		for i, b := range r.args {
			if b.name == a.of {
				a.ofIndex = i
			}
		}
		if a.ofIndex < 0 {
			return fmt.Errorf("%s: length names no argument %q", a.name, a.of)
		}
	}
	return nil
}
