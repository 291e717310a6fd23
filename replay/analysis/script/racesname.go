package script

import (
	"bytes"
	"slices"
	"strings"

	"vplay/dwarf"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay/analysis/race"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// What the variables of a race are called, and whether they are declared atomic.

// locateIn returns what is known of an address of the program that a view is of.
func (r *run) locateIn(v *observe.View, addr uint64) loader.Location {
	r.view.at(r, v.Machine())
	return r.view.locate(addr)
}

// isAtomic reports whether what two accesses have in common is an atomic variable: a relaxed, acquiring or releasing access
// to one is a plain instruction. It is where both instructions are an atomic's own functions, or the
// variable is declared so.
func (x *races) isAtomic(p *race.Race) bool {
	if x.isAtomicAccess(&p.First, p) && x.isAtomicAccess(&p.Second, p) {
		return true
	}
	return x.isDeclaredAtomic(max(p.First.Addr, p.Second.Addr))
}

// isDeclaredAtomic reports whether the byte at an address is of a global variable, or of a member or an element of one, that is declared
// _Atomic or std::atomic. What is not global is not known by its address.
func (x *races) isDeclaredAtomic(addr uint64) bool {
	name, _, _ := strings.Cut(x.r.view.at(x.r, x.v.Machine()).Symbol(addr), "+")
	if name == "" {
		return false
	}
	value, err := x.r.view.globalValue(name)
	return err == nil && atomicWithin(value, addr, 0)
}

// atomicScopes are what the functions of atomic types are in: those of Rust's core, of libstdc++ and of libc++.
var atomicScopes = []string{
	"core::sync::atomic::", "std::sync::atomic::", "std::atomic", "std::__atomic_", "std::__1::atomic", "std::__1::__cxx_atomic_", "std::__1::__atomic_",
}

// atomicFiles are the sources of those functions: GCC with -Og leaves some of their instructions out of where they were inlined.
var atomicFiles = []string{"/bits/atomic_base.h", "/core/src/sync/atomic.rs", "/c++/v1/atomic", "/c++/v1/__atomic/"}

// isAtomicLine reports whether code is of a function of an atomic type.
func isAtomicLine(l *loader.Location) bool {
	name := strings.TrimPrefix(l.Function, "<")
	return slices.ContainsFunc(atomicScopes, func(scope string) bool { return strings.HasPrefix(name, scope) }) ||
		slices.ContainsFunc(atomicFiles, func(file string) bool { return strings.Contains(l.File, file) })
}

// isAtomicAccess reports whether an instruction is of a function of an atomic type, inlined or not. Where there is no debug
// information, code in Rust counts for that which accesses what both do alone, as one number: there is nothing else in safe Rust.
func (x *races) isAtomicAccess(a *race.Access, p *race.Race) bool {
	is, has := x.atomics[a.PC]
	if !has {
		is = x.lookAtAtomic(a.PC)
		x.atomics[a.PC] = is
	}
	return is == atomicCode || is == numberInRust && p.First.Addr == p.Second.Addr && p.First.Size == p.Second.Size && isNumber(a)
}

// isNumber reports whether an access may be one of an atomic variable.
func isNumber(a *race.Access) bool {
	return a.Size <= wordSize && a.Size&(a.Size-1) == 0 && a.Addr%uint64(a.Size) == 0
}

const wordSize = 8

// atomicKind is what is known of an instruction.
type atomicKind uint8

const (
	plainCode    atomicKind = iota
	atomicCode              // of an atomic's function
	numberInRust            // a load or a store of a number in Rust
)

// lookAtAtomic is isAtomicAccess for one instruction.
func (x *races) lookAtAtomic(pc uint64) atomicKind {
	res := x.r.view.at(x.r, x.v.Machine())
	mod := res.Module(pc)
	if mod == nil {
		return plainCode
	}
	d := res.File(mod)
	if d == nil {
		return plainCode
	}
	if l := res.Stack(pc); slices.ContainsFunc(l, func(l loader.Location) bool { return isAtomicLine(&l) }) {
		return atomicCode
	}
	if d.IsDescribed(pc-mod.Bias) || !x.isRust(mod, d) {
		return plainCode
	}
	var b [15]byte
	in, err := x86.DecodeInst(b[:x.v.ReadMemory(pc, b[:])], pc, x.v.CPU().ID)
	if err != nil {
		return plainCode
	}
	const memory = x86.PartMemory
	if f := in.Effects(); f.Read.Parts&memory != 0 && f.Write.Parts&memory != 0 {
		return plainCode // x += 1
	}
	return numberInRust
}

// rustPaths are in messages of each program in Rust: the standard library's sources.
var rustPaths = []string{"library/core/src/", "library/std/src/", "library/alloc/src/"}

// isRust reports whether a module was made by rustc.
func (x *races) isRust(mod *image.Module, d *dwarf.Module) bool {
	key := moduleAt{mod.Path, mod.BuildID, mod.Base, mod.End}
	is, has := x.rust[key]
	if has {
		return is
	}
	if _, is = d.Lookup("rust_eh_personality"); !is {
		b, err := x.r.view.files.Image(mod, &x.r.view.memory)
		is = err == nil && slices.ContainsFunc(rustPaths, func(s string) bool { return bytes.Contains(b, []byte(s)) })
	}
	x.rust[key] = is
	return is
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
