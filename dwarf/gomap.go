package dwarf

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// Maps are what the runtime makes of them: buckets in a row until Go 1.23
// (runtime.hmap), groups of eight in tables of a directory from 1.24 on
// (internal/runtime/maps). The type of the map says which it is.

var errGoMap = errors.New("malformed map type")

// maxTable bounds the groups of one table, and the tables of a directory.
const maxTable = 1 << 31

// goMap reads a map's entries: keys and values in turn.
func (l *goLoad) goMap(v *goVar, level int) {
	if level > l.depth { // its length is shown all the same
		v.mapHeader()
		return
	}
	bad, n := 0, 0
	v.eachEntry(l.buckets, func(key, value *goVar) bool {
		l.load(key, level+1)
		l.load(value, level+1)
		if key.err != nil || value.err != nil {
			bad++
		}
		v.children = append(v.children, key, value)
		n++
		return bad <= maxBad && n < l.values && int64(n) < v.length
	})
}

// mapHeader returns the runtime's structure, nil for a nil map.
func (v *goVar) mapHeader() *goVar {
	t, ok := v.real.(*godwarf.MapType)
	if !ok {
		v.err = errGoMap
		return nil
	}
	p, ok := underlying(t.Type).(*godwarf.PtrType)
	if !ok {
		v.err = errGoMap
		return nil
	}
	at := v.word()
	h := newGoVar(v.env, "", at, p.Type, v.mem.behind())
	v.base = at
	if at == 0 || v.err != nil {
		return nil
	}
	n := h.named("used")
	if n == nil {
		n = h.named("count")
	}
	if n == nil {
		v.err = errGoMap
		return nil
	}
	if v.length, v.err = int64(n.word()), n.err; v.err != nil {
		return nil
	}
	return h
}

// eachEntry calls yield for the entries of a map until it returns false. limit
// bounds the buckets or groups that are looked at.
func (v *goVar) eachEntry(limit int, yield func(key, value *goVar) bool) {
	h := v.mapHeader()
	if h == nil || v.length <= 0 || limit <= 0 {
		return
	}
	t := v.real.(*godwarf.MapType)
	w := &mapWalk{v: v, left: limit, yield: yield}
	_, w.keyPointer = t.KeyType.(*godwarf.PtrType)
	_, w.valuePointer = t.ElemType.(*godwarf.PtrType)
	if h.named("dirPtr") != nil {
		w.swiss(h)
	} else {
		w.buckets(h)
	}
}

// mapWalk goes over the entries of one map.
type mapWalk struct {
	v                        *goVar
	left                     int // buckets or groups
	keyPointer, valuePointer bool
	yield                    func(key, value *goVar) bool
}

// entry hands out one. Keys and values that are large lie elsewhere: the map has
// pointers where its type has none.
func (w *mapWalk) entry(key, value *goVar) bool {
	if key.kind == reflect.Pointer && !w.keyPointer {
		key = key.deref()
	}
	if value.kind == reflect.Pointer && !w.valuePointer {
		value = value.deref()
	}
	return w.yield(key, value)
}

// take counts a bucket or a group; false when the limit is reached.
func (w *mapWalk) take() bool {
	if w.left--; w.left < 0 {
		w.v.err = errors.New("max number of groups exceeded")
		return false
	}
	return true
}

// malformed ends the walk.
func (w *mapWalk) malformed(err error) bool {
	if w.v.err = err; err == nil {
		w.v.err = errGoMap
	}
	return false
}

// swiss walks over a map of Go 1.24 and later: a directory of tables, where several
// entries may lead to one table, or a single group.
func (w *mapWalk) swiss(h *goVar) {
	dir, dirLen := h.named("dirPtr"), h.named("dirLen")
	if dirLen == nil {
		w.malformed(nil)
		return
	}
	n := int64(dirLen.word())
	at := dir.word()
	table := pointee(pointee(dir.typ))
	group := groupType(table)
	switch {
	case dir.err != nil || dirLen.err != nil || group == nil || n > maxTable:
		w.malformed(errors.Join(dir.err, dirLen.err))
		return
	case n <= 0:
		w.group(newGoVar(w.v.env, "", at, group, h.mem))
		return
	}
	for i := range n {
		if !w.take() || !w.table(h, at, i, table, group) {
			return
		}
	}
}

// table walks over the groups of the table that entry i of the directory leads to.
func (w *mapWalk) table(h *goVar, dir uint64, i int64, table, group godwarf.Type) bool {
	t := newGoVar(w.v.env, "", dir+uint64(i)*8, pointerTo(table), h.mem).deref()
	index, groups := t.named("index"), t.named("groups")
	if t.err != nil || index == nil || groups == nil {
		return w.malformed(t.err)
	}
	if n := int64(index.word()); index.err != nil || n != i {
		w.v.err = index.err
		return index.err == nil // the entries before this one led here, too
	}
	mask, data := groups.named("lengthMask"), groups.named("data")
	if mask == nil || data == nil {
		return w.malformed(nil)
	}
	last, at := mask.word(), data.word()
	size := sizeOf(group)
	switch {
	case mask.err != nil || data.err != nil:
		return w.malformed(errors.Join(mask.err, data.err))
	case at == 0:
		return w.malformed(errors.New("bad swiss map, groups pointer is nil"))
	case last >= maxTable || size <= 0:
		return w.malformed(fmt.Errorf("impossible table length in swiss table: %d", last))
	}
	for g := range last + 1 {
		if !w.take() || !w.group(newGoVar(w.v.env, "", at+g*uint64(size), group, h.mem)) {
			return false
		}
	}
	return true
}

// swissEmpty is set in the control byte of a slot that has no entry
// (internal/runtime/maps, group.go).
const swissEmpty = 0x80

// group walks over the slots of one group: pairs, or keys and values apart from
// each other (GOEXPERIMENT=mapsplitgroup).
func (w *mapWalk) group(g *goVar) bool {
	ctrl, slots, keys, elems := g.named("ctrl"), g.named("slots"), g.named("keys"), g.named("elems")
	if ctrl == nil || slots == nil && (keys == nil || elems == nil) {
		return w.malformed(g.err)
	}
	var n int64
	if slots != nil {
		n = slots.length
	} else {
		n = min(keys.length, elems.length)
	}
	used := ctrl.uintAt(0, 8)
	if ctrl.err != nil || n < 0 || n > 8 {
		return w.malformed(ctrl.err)
	}
	for i := range n {
		if used>>(8*i)&swissEmpty != 0 {
			continue
		}
		var key, value *goVar
		if slots != nil {
			s := slots.at(i)
			key, value = s.named("key"), s.named("elem")
		} else {
			key, value = keys.at(i), elems.at(i)
		}
		if key == nil || value == nil {
			return w.malformed(nil)
		}
		if !w.entry(key, value) {
			return false
		}
	}
	return true
}

// pointee is what a pointer type points to; nil for others.
func pointee(t godwarf.Type) godwarf.Type {
	if p, ok := underlying(t).(*godwarf.PtrType); ok {
		return p.Type
	}
	return nil
}

// groupType finds the type of groups in that of a table; nil when it has none.
func groupType(table godwarf.Type) godwarf.Type {
	for _, name := range []string{"groups", "data"} {
		t, ok := underlying(table).(*godwarf.StructType)
		if !ok {
			return nil
		}
		table = nil
		for _, f := range t.Field {
			if f.Name == name {
				table = f.Type
			}
		}
		if table == nil {
			return nil
		}
	}
	return pointee(table)
}

// Marks in a bucket's tophash (runtime/map.go until Go 1.23; before 1.12 there
// was one fewer, and no program that old has DWARF that is read here).
const (
	hashEmptyOne = 1
	hashMin      = 5
)

// sameSizeGrow in a map's flags says that it gets as many new buckets as it had.
const sameSizeGrow = 8

// buckets walks over a map of Go 1.23 and earlier. While one grows, its entries
// move from the old buckets to the new, a bucket at a time.
func (w *mapWalk) buckets(h *goVar) {
	logSize, now, old := h.named("B"), h.named("buckets"), h.named("oldbuckets")
	if logSize == nil || now == nil || old == nil {
		w.malformed(nil)
		return
	}
	bits := logSize.uintAt(0, 1)
	now, old = now.deref(), old.deref()
	size := sizeOf(now.typ)
	if err := errors.Join(logSize.err, now.err, old.err); err != nil || bits > 40 || size <= 0 || size > math.MaxInt32 {
		w.malformed(err)
		return
	}
	oldMask := uint64(1)<<bits - 1
	if flags := h.named("flags"); flags == nil || flags.uintAt(0, 1)&sameSizeGrow == 0 {
		oldMask >>= 1
	}
	for i := range uint64(1) << bits {
		b := newGoVar(w.v.env, "", now.addr+i*uint64(size), now.typ, now.mem)
		if old.addr != 0 {
			o := newGoVar(w.v.env, "", old.addr+(i&oldMask)*uint64(size), now.typ, now.mem)
			if !evacuated(o) {
				if b = o; i&oldMask != i {
					continue // its entries came with the first of the two
				}
			}
		}
		for b.addr != 0 {
			if !w.take() || !w.bucket(b) {
				return
			}
			next := b.named("overflow")
			if next == nil {
				w.malformed(nil)
				return
			}
			at := next.word()
			if next.err != nil {
				w.malformed(next.err)
				return
			}
			b = newGoVar(w.v.env, "", at, now.typ, now.mem)
		}
	}
}

// evacuated reports whether a bucket's entries were moved.
func evacuated(b *goVar) bool {
	top := b.named("tophash")
	if b.addr == 0 || top == nil {
		return true
	}
	n := top.uintAt(0, 1)
	return top.err != nil || n > hashEmptyOne && n < hashMin
}

// bucket walks over the entries of one bucket.
func (w *mapWalk) bucket(b *goVar) bool {
	top, keys, values := b.named("tophash"), b.named("keys"), b.named("values")
	if top == nil || keys == nil || values == nil || keys.kind != reflect.Array || values.kind != reflect.Array || keys.length > 8 || keys.length < 0 {
		return w.malformed(b.err)
	}
	for i := range keys.length {
		mark := top.uintAt(i, 1)
		if top.err != nil {
			return w.malformed(fmt.Errorf("unreadable tophash: %w", top.err))
		}
		if mark <= hashEmptyOne {
			continue
		}
		value := newGoVar(w.v.env, "", values.addr, values.elem, values.mem)
		if values.stride > 0 {
			value = values.at(i)
		}
		if !w.entry(keys.at(i), value) {
			return false
		}
	}
	return true
}
