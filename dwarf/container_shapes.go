package dwarf

import "fmt"

// The table of the classes of GCC's C++ library, and the shapes in which they hold many
// values: arrays, chains, trees, hash tables. Names of members and layouts of nodes are
// those of the library's own headers. Shapes that hold one value, or a number that the
// type tells, are in container_single.go; what a container is otherwise, in
// container.go.

// layouts are the classes, by their names without inline namespaces. Nodes begin with
// their links, so that headers are 1, 2 or 4 words.
var layouts map[string]*layout

func init() { // not a literal: shapes show values, for which the table is needed
	layouts = map[string]*layout{
		"std::basic_string":      {shape: stringShape, at: "_M_dataplus._M_p", end: "_M_string_length"},
		"std::basic_string_view": {shape: stringShape, at: "_M_str", end: "_M_len"},

		"std::vector":           {shape: vectorShape, at: "_M_impl._M_start", end: "_M_impl._M_finish"},
		"std::initializer_list": {shape: arrayShape, at: "_M_array", end: "_M_len"},
		"std::span":             {shape: arrayShape, at: "_M_ptr", end: "_M_extent._M_extent_value"},
		"std::deque":            {shape: dequeShape, at: "_M_impl._M_start", end: "_M_impl._M_finish"},

		"std::list":               {shape: listShape, at: "_M_impl._M_node", header: 16},
		"std::forward_list":       {shape: listShape, at: "_M_impl._M_head", header: 8},
		"std::unordered_map":      {shape: hashShape, at: "_M_h._M_before_begin._M_nxt", end: "_M_h._M_element_count", header: 8, isMap: true},
		"std::unordered_multimap": {shape: hashShape, at: "_M_h._M_before_begin._M_nxt", end: "_M_h._M_element_count", header: 8, isMap: true},
		"std::unordered_set":      {shape: hashShape, at: "_M_h._M_before_begin._M_nxt", end: "_M_h._M_element_count", header: 8},
		"std::unordered_multiset": {shape: hashShape, at: "_M_h._M_before_begin._M_nxt", end: "_M_h._M_element_count", header: 8},

		"std::map":      {shape: treeShape, at: "_M_t._M_impl._M_header", end: "_M_t._M_impl._M_node_count", header: 32, isMap: true},
		"std::multimap": {shape: treeShape, at: "_M_t._M_impl._M_header", end: "_M_t._M_impl._M_node_count", header: 32, isMap: true},
		"std::set":      {shape: treeShape, at: "_M_t._M_impl._M_header", end: "_M_t._M_impl._M_node_count", header: 32},
		"std::multiset": {shape: treeShape, at: "_M_t._M_impl._M_header", end: "_M_t._M_impl._M_node_count", header: 32},

		"std::stack":          {shape: adapterShape, at: "c"},
		"std::queue":          {shape: adapterShape, at: "c"},
		"std::priority_queue": {shape: adapterShape, at: "c"},

		"std::pair":       {shape: pairShape},
		"std::tuple":      {shape: tupleShape},
		"std::optional":   {shape: optionalShape, at: "_M_payload._M_payload._M_value|_M_payload._M_payload", end: "_M_payload._M_engaged"},
		"std::variant":    {shape: variantShape, at: "_M_u", end: "_M_index"},
		"std::unique_ptr": {shape: uniqueShape, at: "_M_t._M_t|_M_t"},
		"std::shared_ptr": {shape: sharedShape, at: "_M_ptr", end: "_M_refcount._M_pi"},
		"std::weak_ptr":   {shape: sharedShape, at: "_M_ptr", end: "_M_refcount._M_pi"},
		"std::atomic":     {shape: atomicShape, at: "_M_i|_M_base._M_i|_M_b._M_p|_M_fp"},

		"std::_List_iterator":          {shape: nodeIteratorShape, at: "_M_node", header: 16},
		"std::_List_const_iterator":    {shape: nodeIteratorShape, at: "_M_node", header: 16},
		"std::_Rb_tree_iterator":       {shape: nodeIteratorShape, at: "_M_node", header: 32},
		"std::_Rb_tree_const_iterator": {shape: nodeIteratorShape, at: "_M_node", header: 32},
		"__gnu_cxx::__normal_iterator": {shape: pointerIteratorShape, at: "_M_current"},
		"std::_Deque_iterator":         {shape: pointerIteratorShape, at: "_M_cur"},
		"__gnu_debug::_Safe_iterator":  {shape: safeIteratorShape},
	}
}

// maxWalk bounds the nodes that are gone through for one answer.
const maxWalk = 1 << 23

// maxHeld bounds how many values a container is believed to hold.
const maxHeld = 1 << 40

// stringShape: a pointer to the characters, and their number. The older ABI has that
// before the characters, in words: length, capacity, references.
func stringShape(v Value, l *layout, c *container) bool {
	p, ok := v.path(l.at)
	if !ok {
		return false
	}
	n, ok := v.word(l.end)
	if !ok {
		addr, err := p.bitsOf()
		if err != nil {
			return false
		}
		if n, err = v.pointerAt(addr - 24); err != nil {
			return false
		}
	}
	c.text, c.length = &p, n
	_, isText := unitPrefix(p.typ.strip().element().strip())
	return n < maxHeld && isText
}

// arrayShape: a pointer to the first value, and their number.
func arrayShape(v Value, l *layout, c *container) bool {
	p, ok := v.path(l.at)
	n, ok2 := v.word(l.end)
	if !ok || !ok2 || n > maxHeld {
		return false
	}
	c.label += fmt.Sprintf(" of length %d", n)
	return c.sequence(p, int(n))
}

// sequence makes the values those that lie one after the other from where p points to.
func (c *container) sequence(p Value, n int) bool {
	addr, err := p.bitsOf()
	e := p.typ.strip().element()
	size := e.byteSize(p.env)
	if err != nil || size <= 0 || mulSize(int64(n), size) < 0 {
		return false
	}
	c.array = true
	c.byIndex(n, func(i int) Value { return p.inMemory(bracketed(i), e, addr+uint64(i)*uint64(size)) })
	return true
}

// vectorShape: pointers to the first value, behind the last, behind the memory for
// them. A vector of bool has bits.
func vectorShape(v Value, l *layout, c *container) bool {
	if _, ok := v.path(l.at + "._M_p"); ok {
		return bitVectorShape(v, l, c)
	}
	p, ok := v.path(l.at)
	if !ok {
		return false
	}
	first, _ := p.bitsOf()
	end, ok := v.word(l.end)
	limit, ok2 := v.word("_M_impl._M_end_of_storage")
	size := uint64(p.typ.strip().element().byteSize(v.env))
	if !ok || !ok2 || int64(size) <= 0 || end < first || limit < end || (end-first)%size != 0 || end-first > maxHeld {
		return false
	}
	n := (end - first) / size
	c.label += fmt.Sprintf(" of length %d, capacity %d", n, (limit-first)/size)
	return c.sequence(p, int(n))
}

// bitVectorShape: the same with words of 64 bits, and the number of a bit in each.
func bitVectorShape(v Value, l *layout, c *container) bool {
	first, ok1 := v.word(l.at + "._M_p")
	skip, ok2 := v.word(l.at + "._M_offset")
	end, ok3 := v.word(l.end + "._M_p")
	more, ok4 := v.word(l.end + "._M_offset")
	limit, ok5 := v.word("_M_impl._M_end_of_storage|_M_impl._M_end_of_storage._M_p")
	e, ok6 := v.typ.strip().argument(0)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || end < first || end-first > maxHeld || skip > 63 || more > 63 || limit < end {
		return false
	}
	n := int((end-first)*8+more) - int(skip)
	c.label += fmt.Sprintf("<bool> of length %d, capacity %d", n, (limit-first)*8)
	c.array = true
	c.byIndex(n, func(i int) Value {
		bit := uint64(i) + skip
		x := v.inMemory(bracketed(i), e, first+bit/8)
		x.bits, x.bitOff = 1, int64(bit%8)
		return x
	})
	return true
}

// dequeBytes is the size of the blocks of a deque, where values are not larger.
const dequeBytes = 512

// dequeShape: two iterators into blocks of values, to which there is an array of
// pointers.
func dequeShape(v Value, l *layout, c *container) bool {
	start, ok := v.path(l.at)
	finish, ok2 := v.path(l.end)
	if !ok || !ok2 {
		return false
	}
	cur, ok := start.path("_M_cur")
	if !ok {
		return false
	}
	e := cur.typ.strip().element()
	size := uint64(e.byteSize(v.env))
	if int64(size) <= 0 || size > maxHeld {
		return false
	}
	per := max(dequeBytes/size, 1)
	var w [5]uint64
	for i, name := range []string{"_M_cur", "_M_first", "_M_node"} {
		if w[i], ok = start.word(name); !ok {
			return false
		}
	}
	for i, name := range []string{"_M_cur", "_M_first"} {
		if w[3+i], ok = finish.word(name); !ok {
			return false
		}
	}
	node, ok := finish.word("_M_node")
	if !ok || w[0] < w[1] || w[3] < w[4] || node < w[2] || node-w[2] > maxHeld {
		return false
	}
	skip := (w[0] - w[1]) / size
	n := int((node-w[2])/8*per+(w[3]-w[4])/size) - int(skip)
	c.label += " with " + numElements(n)
	c.array = true
	c.byIndex(n, func(i int) Value {
		at := uint64(i) + skip
		block, err := v.pointerAt(w[2] + at/per*8)
		if err != nil {
			return v.unreachable(bracketed(i), err)
		}
		return v.inMemory(bracketed(i), e, block+at%per*size)
	})
	return n >= 0
}

// held places the values of a node: one, or a key and a value as std::pair has them.
type held struct {
	env      Value
	depth    int
	key, val *Type
	keyOff   uint64
	valOff   uint64
}

// newHeld returns where a node has what it holds, behind its links.
func newHeld(v Value, l *layout, c *container) (h held, ok bool) {
	t := v.typ.strip()
	h.env, h.depth = v, c.depth+1
	if h.val, ok = t.argument(0); !ok {
		return h, false
	}
	if !l.isMap {
		h.valOff = roundUp(l.header, h.val.alignment())
		return h, true
	}
	h.key = h.val
	if h.val, ok = t.argument(1); !ok {
		return h, false
	}
	size := h.key.byteSize(v.env)
	if size < 0 {
		return h, false
	}
	h.keyOff = roundUp(l.header, max(h.key.alignment(), h.val.alignment()))
	h.valOff = h.keyOff + roundUp(size, h.val.alignment())
	return h, true
}

func roundUp(n, to int64) uint64 { return uint64((n + to - 1) / to * to) }

// at returns value number i, whose node is at an address.
func (h *held) at(i int, node uint64) Value {
	x := h.env.inMemory(bracketed(i), h.val, node+h.valOff)
	if h.key != nil {
		in := &printer{left: maxElements}
		in.value(h.env.inMemory("", h.key, node+h.keyOff), h.depth)
		x.Name = "[" + in.b.String() + "]"
	}
	return x
}

// chain makes the values those of nodes that each begin with a pointer to the next.
func (c *container) chain(h held, n int, first uint64) {
	c.n = n
	c.each = func(start int, yield func(Value) bool) {
		node, w := first, newWalk(h.env)
		for i := range min(n, maxWalk) {
			next, err := w.word(node)
			if err != nil {
				yield(h.env.unreachable(bracketed(i), err))
				return
			}
			if i >= start && !yield(h.at(i, node)) {
				return
			}
			node = next
		}
	}
}

// listShape: a chain that ends at 0, or where it began. Not every list
// has its length, so it is counted.
func listShape(v Value, l *layout, c *container) bool {
	head, ok := v.path(l.at)
	if !ok {
		return false
	}
	first, ok := head.word("_M_next")
	end := uint64(0)
	if _, isRing := head.path("_M_prev"); isRing {
		if end, isRing = head.Address(); !isRing {
			return false
		}
	}
	h, ok2 := newHeld(v, l, c)
	if !ok || !ok2 {
		return false
	}
	n := 0
	if size, ok := head.word("_M_size"); ok && size < maxHeld {
		n = int(size)
		end = first
	}
	for node := first; node != end && n < maxChildren; n++ {
		next, err := v.pointerAt(node)
		if err != nil {
			n++
			break
		}
		node = next
	}
	if n == 0 {
		c.label = "empty " + c.label
	}
	c.chain(h, n, first)
	return true
}

// hashShape: the nodes of a hash table are a chain from one bucket to the next.
func hashShape(v Value, l *layout, c *container) bool {
	first, ok := v.word(l.at)
	n, ok2 := v.word(l.end)
	h, ok3 := newHeld(v, l, c)
	if !ok || !ok2 || !ok3 || n > maxHeld || n > 0 && first == 0 {
		return false
	}
	c.label += " with " + numElements(int(n))
	c.pairs = l.isMap
	c.chain(h, int(n), first)
	return true
}

// Links of a node of a tree, behind its color.
const (
	treeParent = 8
	treeLeft   = 16
	treeRight  = 24
)

// treeShape: a binary tree with a header whose left link is the first node.
func treeShape(v Value, l *layout, c *container) bool {
	first, ok := v.word(l.at + "._M_left")
	n, ok2 := v.word(l.end)
	h, ok3 := newHeld(v, l, c)
	if !ok || !ok2 || !ok3 || n > maxHeld {
		return false
	}
	c.label += " with " + numElements(int(n))
	c.pairs, c.n = l.isMap, int(n)
	c.each = func(start int, yield func(Value) bool) {
		node, budget, w := first, 2*maxWalk, newWalk(v)
		for i := range min(c.n, maxWalk) {
			var err error
			if _, err = w.word(node); err == nil && i >= start && !yield(h.at(i, node)) {
				return
			}
			if err == nil && i+1 < c.n {
				node, err = w.successor(node, &budget)
			}
			if err != nil {
				yield(v.unreachable(bracketed(i), err))
				return
			}
		}
	}
	return true
}
