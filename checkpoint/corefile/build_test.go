package corefile

import (
	"bytes"
	"encoding/binary"
	"testing"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// Core files made in memory, as the kernel lays them out.

// coreBuilder makes a core file: the header, the program headers, the notes, the segments.
type coreBuilder struct {
	notes    bytes.Buffer
	segments []builtSegment
}

type builtSegment struct {
	addr, memsz uint64
	flags       uint32
	data        []byte
}

func (b *coreBuilder) note(name string, kind uint32, desc []byte) {
	le := binary.LittleEndian
	h := le.AppendUint32(nil, uint32(len(name)+1))
	h = le.AppendUint32(h, uint32(len(desc)))
	h = le.AppendUint32(h, kind)
	pad := func(p []byte) []byte { return append(p, make([]byte, -len(p)&3)...) }
	b.notes.Write(append(append(h, pad(append([]byte(name), 0))...), pad(bytes.Clone(desc))...))
}

// thread adds the note of a thread whose registers are numbered from 0x100 on.
func (b *coreBuilder) thread(tid int32, signo int16) {
	d := make([]byte, abi.SizeofPrstatus)
	le := binary.LittleEndian
	le.PutUint16(d[12:], uint16(signo))
	le.PutUint32(d[32:], uint32(tid))
	for i := range 27 {
		le.PutUint64(d[abi.PrstatusRegsOff+8*i:], uint64(0x100+i))
	}
	b.note("CORE", abi.NT_PRSTATUS, d)
}

// file is a row of NT_FILE.
type fileRow struct {
	start, end, page uint64
	path             string
}

func (b *coreBuilder) files(rows ...fileRow) {
	le := binary.LittleEndian
	d := le.AppendUint64(nil, uint64(len(rows)))
	d = le.AppendUint64(d, pageSize)
	for _, r := range rows {
		d = le.AppendUint64(le.AppendUint64(le.AppendUint64(d, r.start), r.end), r.page)
	}
	for _, r := range rows {
		d = append(append(d, r.path...), 0)
	}
	b.note("CORE", abi.NT_FILE, d)
}

func (b *coreBuilder) auxv(pairs ...uint64) {
	var d []byte
	for _, v := range append(pairs, 0, 0) {
		d = binary.LittleEndian.AppendUint64(d, v)
	}
	b.note("CORE", abi.NT_AUXV, d)
}

func (b *coreBuilder) psinfo(pid int32, name, command string) {
	d := make([]byte, abi.SizeofPrpsinfo)
	binary.LittleEndian.PutUint32(d[24:], uint32(pid))
	copy(d[40:55], name)
	copy(d[56:135], command)
	b.note("CORE", abi.NT_PRPSINFO, d)
}

func (b *coreBuilder) segment(addr, memsz uint64, flags uint32, data []byte) {
	b.segments = append(b.segments, builtSegment{addr, memsz, flags, data})
}

func (b *coreBuilder) bytes() []byte {
	le := binary.LittleEndian
	count := 1 + len(b.segments)
	h := make([]byte, headerSize)
	copy(h, "\x7fELF\x02\x01\x01")
	le.PutUint16(h[16:], 4) // ET_CORE
	le.PutUint16(h[18:], 62)
	le.PutUint64(h[32:], headerSize)
	le.PutUint16(h[54:], programSize)
	le.PutUint16(h[56:], uint16(count))
	program := func(typ, flags uint32, off, addr, filesz, memsz uint64) {
		p := make([]byte, programSize)
		le.PutUint32(p, typ)
		le.PutUint32(p[4:], flags)
		for i, v := range []uint64{off, addr, 0, filesz, memsz} {
			le.PutUint64(p[8+8*i:], v)
		}
		h = append(h, p...)
	}
	at := uint64(headerSize + count*programSize)
	program(4, 0, at, 0, uint64(b.notes.Len()), 0)
	at += uint64(b.notes.Len())
	for _, s := range b.segments {
		program(1, s.flags, at, s.addr, uint64(len(s.data)), s.memsz)
		at += uint64(len(s.data))
	}
	h = append(h, b.notes.Bytes()...)
	for _, s := range b.segments {
		h = append(h, s.data...)
	}
	return h
}

// pattern is n bytes that tell where they are.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i) | 1
	}
	return b
}

// smallCore is a core file with two threads, a file, a stack and memory that is missing.
func smallCore() *coreBuilder {
	b := &coreBuilder{}
	b.thread(71, 11)
	b.psinfo(70, "prog", "prog -x y")
	si := make([]byte, 128)
	si[0] = 11
	b.note("CORE", abi.NT_SIGINFO, si)
	b.auxv(9, 0x401000, 25, 0x7ffff000)
	b.files(fileRow{0x400000, 0x402000, 0, "/nowhere/prog"}, fileRow{0x500000, 0x501000, 3, "/nowhere/lib.so"})
	b.thread(70, 0)
	b.segment(0x400000, 2*pageSize, 5, pattern(pageSize))
	b.segment(0x600000, 4*pageSize, 6, append(pattern(pageSize+100), make([]byte, pageSize-100)...))
	b.segment(1<<44, 1<<40, 6, nil)
	b.segment(0x7fffe000, 0x3000, 6, pattern(0x3000))
	return b
}

func openBytes(t testing.TB, b []byte, budget *checkpoint.Budget) (*Core, error) {
	t.Helper()
	return Open(bytes.NewReader(b), int64(len(b)), "core", budget)
}
