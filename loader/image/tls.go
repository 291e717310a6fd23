package image

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"vplay/checkpoint"
)

// A thread-local variable lies at an offset in its thread's block for its module.
// Where that block is the C library knows. On x86-64 fs:0 is the thread control
// block; the blocks of modules loaded at start lie at fixed distances below it,
// and the others are listed in the dynamic thread vector, whose address is at fs:8
// (U. Drepper, "ELF Handling For Thread-Local Storage", variant II).
//
// glibc's link_map holds the distance and the module's index in that vector, in a
// part of the struct whose place differs between versions. It is found by what
// stands before it: the address, size, memory size and alignment of the module's
// PT_TLS segment (glibc, include/link.h: l_tls_initimage to l_tls_modid). musl
// numbers modules in the order in which they are loaded.

// TLSBlock returns the address of thread-local storage, for the thread with the
// given fs base, of the module with the link_map at linkMap; 0 is the program.
func TLSBlock(maps []checkpoint.Mapping, m Memory, fsBase, linkMap uint64) (uint64, error) {
	if fsBase == 0 {
		return 0, errors.New("the thread has no thread-local storage yet")
	}
	mods := Modules(maps, m)
	links := LinkMap(maps, m)
	t := tlsFinder{m: m, fs: fsBase, entry: 16}
	index := uint64(0)
	for i := range links {
		l := &links[i]
		if strings.Contains(l.Name, "ld-musl-") {
			t.entry = 8
		}
	}
	for i := range links {
		l := &links[i]
		seg := tlsSegment(mods, l)
		if seg != nil {
			index++
		}
		if l.Addr != linkMap && (linkMap != 0 || !l.Main) {
			continue
		}
		if seg == nil {
			return 0, fmt.Errorf("%s has no thread-local storage", l.Name)
		}
		return t.block(l, seg, index)
	}
	return 0, fmt.Errorf("no module has its link_map at %#x", linkMap)
}

// tlsSegment returns the PT_TLS segment of the module that l is about, or nil.
func tlsSegment(mods []*Module, l *Link) *elf.ProgHeader {
	for _, mod := range mods {
		if mod.Bias != l.Base || mod.Path == vdso || l.Dynamic != 0 && (l.Dynamic < mod.Base || l.Dynamic >= mod.End) {
			continue
		}
		for i := range mod.Segments {
			if mod.Segments[i].Type == elf.PT_TLS {
				return &mod.Segments[i]
			}
		}
	}
	return nil
}

type tlsFinder struct {
	m     Memory
	fs    uint64
	entry uint64 // bytes of an entry of the dynamic thread vector
}

// maxLinkMap bounds how much of a link_map is looked through, in bytes.
const maxLinkMap = 4096

// block finds the block of one module, which is the index-th with thread-local
// storage.
func (t *tlsFinder) block(l *Link, seg *elf.ProgHeader, index uint64) (uint64, error) {
	b := make([]byte, maxLinkMap)
	b = b[:t.m.ReadMemory(l.Addr, b)]
	le := binary.LittleEndian
	want := [4]uint64{l.Base + seg.Vaddr, seg.Filesz, seg.Memsz, seg.Align}
	for ; t.entry == 16 && len(b) >= 56; b = b[8:] {
		if le.Uint64(b) != want[0] || le.Uint64(b[8:]) != want[1] || le.Uint64(b[16:]) != want[2] || le.Uint64(b[24:]) != want[3] {
			continue
		}
		if off := le.Uint64(b[40:]); off != 0 && int64(off) != -1 { // neither NO_TLS_OFFSET nor FORCED_DYNAMIC_TLS_OFFSET
			return t.fs - off, nil
		}
		index = le.Uint64(b[48:])
		break
	}
	at, err := t.vector(index)
	if err != nil && l.Main && seg.Align != 0 && seg.Vaddr%seg.Align == 0 { // the program's is the first below
		return t.fs - (seg.Memsz+seg.Align-1)&^(seg.Align-1), nil
	}
	return at, err
}

// vector looks a module up in the dynamic thread vector.
func (t *tlsFinder) vector(index uint64) (uint64, error) {
	var b [8]byte
	word := func(a uint64) (uint64, bool) {
		n := t.m.ReadMemory(a, b[:])
		return binary.LittleEndian.Uint64(b[:]), n == len(b)
	}
	dtv, ok := word(t.fs + 8)
	if !ok || dtv == 0 {
		return 0, errors.New("the thread's dynamic thread vector was not captured")
	}
	length := dtv - 16 // glibc: the entry before the first
	if t.entry == 8 {
		length = dtv
	}
	n, ok := word(length)
	at, ok2 := word(dtv + index*t.entry)
	switch {
	case !ok || !ok2:
		return 0, errors.New("the thread's dynamic thread vector was not captured")
	case index > n || at == 0 || int64(at) == -1: // TLS_DTV_UNALLOCATED
		return 0, errors.New("the thread has not used the module's thread-local storage yet")
	}
	return at, nil
}
