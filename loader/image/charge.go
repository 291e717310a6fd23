package image

import (
	"runtime"

	"vplay/checkpoint"
)

// What a file is rebuilt from is a stranger's: thousands of modules may lie in the
// same few pages, each with tables that name the same memory again and again. So what is
// read for it is work, and what is kept is memory, and both are charged to the
// recording's budget.

// images is the part of a recording that errors name.
const images = "files rebuilt from memory"

// readWork is what a read of memory takes, beside its bytes.
const readWork = 64

// charged is guest memory of which reading is charged. When the budget is used up,
// nothing can be read.
type charged struct {
	Memory
	budget *checkpoint.Budget
	taken  int64
	err    error // the first refusal
}

// ReadMemory implements Memory.
func (c *charged) ReadMemory(addr uint64, b []byte) int {
	if c.spend(len(b)) != nil {
		return 0
	}
	return c.Memory.ReadMemory(addr, b)
}

// ReadFile implements FileReader.
func (c *charged) ReadFile(object uint32, off uint64, b []byte) int {
	f, ok := c.Memory.(FileReader)
	if !ok || c.spend(len(b)) != nil {
		return 0
	}
	return f.ReadFile(object, off, b)
}

func (c *charged) spend(n int) error {
	if c.err == nil {
		c.err = c.budget.Spend(int64(n)+readWork, images)
	}
	return c.err
}

// take charges n bytes of memory until what m is read for has been built.
func take(m Memory, n int) error {
	c, ok := m.(*charged)
	if !ok {
		return nil
	}
	if c.err == nil {
		c.err = c.budget.Take(int64(n), images)
	}
	if c.err == nil {
		c.taken += int64(n)
	}
	return c.err
}

// budgetOf returns what reading m is charged to, nil when it is not.
func budgetOf(m Memory) *checkpoint.Budget {
	if c, ok := m.(*charged); ok {
		return c.budget
	}
	return nil
}

// kept charges b until nothing refers to it.
func kept(b []byte, budget *checkpoint.Budget) error {
	if budget == nil || len(b) == 0 {
		return nil
	}
	n := int64(len(b))
	if err := budget.Take(n, images); err != nil {
		return err
	}
	runtime.AddCleanup(&b[0], budget.Give, n)
	return nil
}
