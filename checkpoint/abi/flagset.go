package abi

import "strings"

// Named sets of constants, by which arguments are printed as strace prints them. The sets
// themselves are beside their constants; those of another form are in specialsets.go.

// set is a named set of constants for printing.
type set interface {
	// name returns the constant with value v.
	name(v uint64) (string, bool)
	// format returns v with the constants' names, and what has none in
	// hexadecimal.
	format(v uint64) string
}

type named struct {
	value uint64
	name  string
}

// flagSet is a set of bits. A constant of several bits stands before the
// constants that it contains.
type flagSet []named

// enumSet is a set of values of which an argument has one; 32 bits count.
type enumSet []named

func (s flagSet) name(v uint64) (string, bool) { return enumSet(s).name(v) }

func (s flagSet) format(v uint64) string {
	var b strings.Builder
	for _, f := range s {
		if f.value != 0 && v&f.value == f.value {
			v &^= f.value
			or(&b, f.name)
		}
	}
	if v != 0 || b.Len() == 0 {
		if v == 0 {
			return "0"
		}
		or(&b, hex(v))
	}
	return b.String()
}

func (s enumSet) name(v uint64) (string, bool) {
	for _, e := range s {
		if e.value == v {
			return e.name, true
		}
	}
	return "", false
}

func (s enumSet) format(v uint64) string {
	if n, ok := s.name(uint64(uint32(v))); ok {
		return n
	}
	return hex(v)
}

// or appends name to a list joined by bars.
func or(b *strings.Builder, name string) {
	if b.Len() > 0 {
		b.WriteByte('|')
	}
	b.WriteString(name)
}

// setName returns the constant of value v in the set called name.
func setName(name string, v uint64) (string, bool) {
	s, ok := sets[name]
	if !ok {
		return "", false
	}
	return s.name(v)
}
