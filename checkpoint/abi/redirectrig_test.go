//go:build linux && amd64

package abi

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// rig makes each call twice: with the program's own addresses, and redirected and
// copied back. The program is an arena in this process, with guard pages between its
// blocks, a block that becomes read-only and one that is. Both calls find the same content there,
// and descriptors that were prepared alike.
type rig struct {
	t       *testing.T
	arena   []byte // numBlocks blocks, blockPitch apart
	base    uint64
	scratch []byte
	sbase   uint64
	dgram   bool
	name    string // of the case, for messages

	redirected, refused, wrote int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	const base, scratch = arenaBase, 2 * arenaBase
	g := &rig{t: t, base: base, sbase: scratch, dgram: true}
	g.arena, g.scratch = mapAt(t, base, numBlocks*blockPitch), mapAt(t, scratch, 64*PageSize)
	protect := func(off, n, prot int) {
		if err := syscall.Mprotect(g.arena[off:off+n], prot); err != nil {
			t.Fatal(err)
		}
	}
	for i := range numBlocks {
		protect(i*blockPitch+blockSize, PageSize, syscall.PROT_NONE)
	}
	protect(halfBlock*blockPitch+PageSize, PageSize, syscall.PROT_READ)
	protect(readBlock*blockPitch, blockSize, syscall.PROT_READ)
	return g
}

// at returns an address in block i.
func (g *rig) at(i int, off uint64) uint64 { return g.base + uint64(i)*blockPitch + off }

// part returns the n bytes at addr, fewer where they end in a block or in the
// scratch.
func (g *rig) part(addr, n uint64) []byte {
	if off := addr - g.sbase; off < uint64(len(g.scratch)) {
		return g.scratch[off:][:min(n, uint64(len(g.scratch))-off)]
	}
	off := addr - g.base
	if off >= uint64(len(g.arena)) || off%blockPitch >= blockSize {
		return nil
	}
	return g.arena[off:][:min(n, blockSize-off%blockPitch)]
}

// ReadAt implements Memory.
func (g *rig) ReadAt(addr uint64, b []byte) int { return copy(b, g.part(addr, uint64(len(b)))) }

// Writable implements Hints.
func (g *rig) Writable(addr, n uint64) bool {
	end := g.at(halfBlock, PageSize)
	return n == 0 || uint64(len(g.part(addr, n))) == n && (addr-g.sbase < uint64(len(g.scratch)) || addr+n <= end)
}

// Datagram implements Hints.
func (g *rig) Datagram(int32) bool { return g.dgram }

// put writes what a program would have there.
func (g *rig) put(addr uint64, b []byte) uint64 {
	if g.Writable(addr, uint64(len(b))) {
		copy(g.part(addr, uint64(len(b))), b)
	}
	return addr
}

func (g *rig) snapshot() []byte {
	var b []byte
	for i := range numBlocks {
		b = append(b, g.part(g.at(i, 0), blockSize)...)
	}
	return b
}

func (g *rig) restore(b []byte) {
	for i := range numBlocks {
		n := blockSize
		switch i {
		case halfBlock:
			n = PageSize
		case readBlock:
			continue
		}
		copy(g.part(g.at(i, 0), blockSize)[:n], b[i*blockSize:])
	}
}

// changed returns the addresses whose bytes are not those of a snapshot, but for
// those that are ignored.
func (g *rig) changed(was []byte, ignored []Range) []uint64 {
	var addrs []uint64
	for i := range numBlocks {
		now := g.part(g.at(i, 0), blockSize)
		old := was[i*blockSize:][:blockSize]
		if bytes.Equal(old, now) {
			continue
		}
		for k := range now {
			if addr := g.at(i, uint64(k)); now[k] != old[k] && !inRanges(ignored, addr) {
				addrs = append(addrs, addr)
			}
		}
	}
	return addrs
}

func rawCall(nr int64, args [6]uint64) int64 {
	for tries := 100; ; tries-- {
		r, _, e := syscall.Syscall6(uintptr(nr), uintptr(args[0]), uintptr(args[1]), uintptr(args[2]), uintptr(args[3]), uintptr(args[4]), uintptr(args[5]))
		switch {
		case nr == SYS_SENDFILE && e == syscall.EAGAIN && tries > 0: // the page was in use, as it is now and then
		case e != 0:
			return -int64(e)
		default:
			return int64(r)
		}
	}
}

// must is rawCall for what has to work.
func (g *rig) must(nr int64, args ...uint64) uint64 {
	g.t.Helper()
	ret := rawCall(nr, argv(args...))
	if ret < 0 {
		g.t.Fatalf("%s: %s", Name(nr), FormatResult(nr, ret))
	}
	return uint64(ret)
}

// twin is one call, made twice.
type twin struct {
	nr     int64
	args   func(run int) [6]uint64 // the descriptors of run 0 and of run 1
	before func(run int)           // what happens at the last moment
	// ignored are outputs that differ between any two calls (a time, a process); both
	// calls must write each of them all the same.
	ignored []Range
	// result makes results comparable that differ between any two calls.
	result func(int64) int64
	// entangled calls have outputs that lie in their own arguments: Outputs, which
	// looks at the arguments after the call, is not asked.
	entangled bool
}

// both makes the two calls, compares them, and returns their result and whether the
// second was redirected.
func (g *rig) both(c twin) (ret int64, redirected bool) {
	g.t.Helper()
	was, known := g.snapshot(), openFDs(g.t)
	ret = g.run(&c, 0, c.args(0))
	direct := g.snapshot()
	var wrote []bool
	for _, r := range c.ignored {
		wrote = append(wrote, slices.ContainsFunc(g.changed(was, nil), func(a uint64) bool { return a-r.Addr < r.Len }))
	}
	if len(g.changed(was, nil)) > 0 {
		g.wrote++
	}
	closeOthers(g.t, known)
	g.restore(was)
	for i := range g.scratch {
		g.scratch[i] = 0xa5 // what a call before has left
	}
	args := c.args(1)
	r, err := Redirect(g, c.nr, args, Range{g.sbase, uint64(len(g.scratch))})
	var not *NotRedirectedError
	var again int64
	switch {
	case err == nil:
		again = g.redirect(&c, r, args, was)
		g.redirected++
	case errors.As(err, &not):
		again = g.run(&c, 1, args)
		g.refused++
	default:
		g.t.Fatalf("%s: %v", Format(g, c.nr, args), err)
	}
	closeOthers(g.t, known)
	if ret != again {
		g.t.Errorf("%s: %s = %s, redirected %s (%v)", g.name, Format(g, c.nr, args), FormatResult(c.nr, ret), FormatResult(c.nr, again), err)
	}
	if d := g.changed(direct, c.ignored); len(d) > 0 {
		g.t.Errorf("%s: %s = %s: %d bytes are not as without redirection, at %#x (%v)", g.name, Format(g, c.nr, args), FormatResult(c.nr, ret), len(d), d[:min(4, len(d))], err)
	}
	for i, r := range c.ignored {
		if w := slices.ContainsFunc(g.changed(was, nil), func(a uint64) bool { return a-r.Addr < r.Len }); w != wrote[i] {
			g.t.Errorf("%s: %s: %x written: %v, redirected %v", g.name, Format(g, c.nr, args), r, wrote[i], w)
		}
	}
	g.restore(was)
	return ret, err == nil
}

func (g *rig) run(c *twin, run int, args [6]uint64) int64 {
	if c.before != nil {
		c.before(run)
	}
	ret := rawCall(c.nr, args)
	if c.result != nil && ret >= 0 {
		return c.result(ret)
	}
	return ret
}

// redirect makes the redirected call and copies back what it wrote.
func (g *rig) redirect(c *twin, r *Redirection, args [6]uint64, was []byte) int64 {
	g.t.Helper()
	g.checkShape(r)
	for _, w := range r.Init {
		copy(g.part(w.Addr, uint64(len(w.Data))), w.Data)
	}
	if c.before != nil {
		c.before(1)
	}
	ret := rawCall(c.nr, r.Args)
	if d := g.changed(was, nil); len(d) > 0 {
		g.t.Errorf("%s: %s: the kernel has written %d bytes of the program, at %#x", g.name, Format(g, c.nr, args), len(d), d[0])
	}
	writes := r.Results(g, ret)
	g.checkOutputs(c, args, ret, writes)
	for _, w := range writes {
		if !g.Writable(w.Addr, uint64(len(w.Data))) {
			g.t.Fatalf("%s: result at %#x, which is not writable", Format(g, c.nr, args), w.Addr)
		}
		copy(g.part(w.Addr, uint64(len(w.Data))), w.Data)
	}
	if c.result != nil && ret >= 0 {
		return c.result(ret)
	}
	return ret
}

// checkOutputs asks Outputs, with the results over the program's memory: each
// result must be listed, and the overlay must hold it.
func (g *rig) checkOutputs(c *twin, args [6]uint64, ret int64, writes []Write) {
	g.t.Helper()
	o := NewOverlay(g, writes)
	listed, err := Outputs(nil, o, c.nr, args, ret)
	if err != nil && !c.entangled {
		g.t.Errorf("%s: %s: %v", g.name, Format(g, c.nr, args), err)
	}
	want := g.snapshot()
	for _, w := range writes {
		for k := range w.Data {
			addr := w.Addr + uint64(k)
			if !c.entangled && !inRanges(listed, addr) {
				g.t.Errorf("%s: %s = %d: the result at %#x is not listed: %x", g.name, Format(g, c.nr, args), ret, addr, listed)
				return
			}
			off := addr - g.base
			want[off/blockPitch*blockSize+off%blockPitch] = w.Data[k]
		}
	}
	got := make([]byte, blockSize)
	for i := range numBlocks {
		if n := o.ReadAt(g.at(i, 0), got); n != blockSize || !bytes.Equal(got, want[i*blockSize:][:blockSize]) {
			g.t.Errorf("%s: %s: the overlay does not hold the results in block %d", g.name, Format(g, c.nr, args), i)
		}
	}
}

// checkShape looks whether a redirection stays where it may be.
func (g *rig) checkShape(r *Redirection) {
	g.t.Helper()
	inside := func(addr, n uint64) bool {
		return addr >= g.sbase && addr-g.sbase <= r.Size && n <= r.Size-(addr-g.sbase)
	}
	for _, w := range r.Init {
		if !inside(w.Addr, uint64(len(w.Data))) {
			g.t.Fatalf("Init at %#x, %d bytes, outside of the scratch in use", w.Addr, len(w.Data))
		}
	}
	for _, v := range r.Moved {
		if !inside(v.To, v.Len) || !g.Writable(v.From, v.Len) {
			g.t.Fatalf("moved %x: outside of the scratch in use, or not the program's", v)
		}
	}
}

// openFDs returns this process's descriptors.
func openFDs(t *testing.T) map[int]bool {
	t.Helper()
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	fds := map[int]bool{}
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n != int(d.Fd()) {
			fds[n] = true
		}
	}
	return fds
}

// closeOthers closes the descriptors that a call has made.
func closeOthers(t *testing.T, known map[int]bool) {
	t.Helper()
	for fd := range openFDs(t) {
		if !known[fd] {
			_ = syscall.Close(fd) // the listing's own is closed already
		}
	}
}
