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

// Engine returns nil.
func (p *Pool) Engine(*x86.CPU) *Engine { return nil }

// Usage returns nothing.
func (p *Pool) Usage() (engines, most int, bytes, each int64) { return 0, 0, 0, 0 }

// Eager does nothing.
func (e *Engine) Eager() {}

// Reuse returns nil.
func (p *Pool) Reuse(*x86.CPU) *Engine { return nil }

// Close does nothing.
func (e *Engine) Close() {}
