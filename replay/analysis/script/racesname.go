package script

import (
	"strings"

	"vplay/dwarf"
	"vplay/loader"
	"vplay/replay/observe"
)

// What the variables of a race are called, and whether they are declared atomic.

// locateIn returns what is known of an address of the program that a view is of.
func (r *run) locateIn(v *observe.View, addr uint64) loader.Location {
	r.view.at(r, v.Machine())
	return r.view.locate(addr)
}

// isAtomic reports whether the byte at an address is of a global variable, or of a member or an element of one, that is declared
// _Atomic or std::atomic: a relaxed, acquiring or releasing access to it is a plain instruction. What is not global
// is not known by its address.
func (x *races) isAtomic(addr uint64) bool {
	name, _, _ := strings.Cut(x.r.view.at(x.r, x.v.Machine()).Symbol(addr), "+")
	if name == "" {
		return false
	}
	value, err := x.r.view.globalValue(name)
	return err == nil && atomicWithin(value, addr, 0)
}

// Bounds of looking through a variable for an address.
const (
	maxNesting = 8
	maxMembers = 512
)

// atomicWithin reports whether the part of a variable at an address is atomic.
func atomicWithin(v dwarf.Value, addr uint64, depth int) bool {
	start, ok := v.Address()
	size := v.Size()
	if !ok || size <= 0 || addr-start >= uint64(size) {
		return false
	}
	if v.Type().IsAtomic() {
		return true
	}
	named, indexed := v.NumChildren()
	if depth == maxNesting || named+indexed == 0 || v.IsPointer() {
		return false
	}
	if named == 0 { // of an array, all elements have the same size
		first := v.Children(0, 1)
		if len(first) == 0 || first[0].Size() <= 0 {
			return false
		}
		i := (addr - start) / uint64(first[0].Size())
		at := v.Children(int(min(i, 1<<31)), 1)
		return len(at) == 1 && atomicWithin(at[0], addr, depth+1)
	}
	for _, c := range v.Children(0, maxMembers) {
		if atomicWithin(c, addr, depth+1) {
			return true
		}
	}
	return false
}
