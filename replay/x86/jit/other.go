//go:build !(linux && amd64)

package jit

import (
	"errors"

	"vplay/replay/x86"
)

// Hosts without a translator: the interpreter does all.

// Pool stands for executable memory.
type Pool struct{ Max uint64 }

// Engine stands for the translator.
type Engine struct {
	x86.BlockEngine
	Warmup uint64
	Faults []Fault
	Stats  Stats
}

// Open says that there is none.
func Open() (*Pool, error) {
	return nil, errors.New("jit: made for Linux on x86-64 only")
}

// Usage returns nothing.
func (p *Pool) Usage() (engines, most int, bytes, each int64) { return 0, 0, 0, 0 }

// Maker returns what makes none.
func (p *Pool) Maker(bool, func(*Engine)) func(*x86.CPU) (x86.Engine, func()) {
	return func(*x86.CPU) (x86.Engine, func()) { return nil, nil }
}
