package dwarf

// Sizes and alignments of types, where the compiler wrote them down and where they follow
// from the parts (System V ABI, AMD64, 3.1.2).

// byteSize returns a type's size, -1 when it is not known. env, which may be
// nil, tells bounds that are variables.
func (t *Type) byteSize(env *Env) int64 {
	n := int64(1)
	for range maxChain {
		switch {
		case t == nil || t.Kind == KindFunction:
			return n
		case t.size >= 0 && (t.Kind != KindArray || t.dim == 0):
			return mulSize(n, t.size)
		case t.Kind == KindArray:
			c := t.length(env)
			if c < 0 {
				return -1
			}
			n = mulSize(n, c)
		case t.Kind != KindTypedef && t.Kind != KindQualified && t.Kind != KindEnum:
			return -1
		}
		t = t.element()
	}
	return -1
}

// alignment returns what the compiler aligns a type to by itself, 1 when it is not known.
// DW_AT_alignment is written only where the program asks for more.
func (t *Type) alignment() int64 {
	t = t.strip()
	if t == nil {
		return 1
	}
	if t.natural == 0 {
		t.natural = 1 // for a type of a damaged file that contains itself
		t.natural = t.computedAlignment()
	}
	return t.natural
}

func (t *Type) computedAlignment() int64 {
	n := int64(1)
	switch t.Kind {
	case KindArray:
		return t.element().alignment()
	case KindStruct, KindUnion:
		t.load()
		for i := range t.fields {
			if f := &t.fields[i]; !f.isStatic {
				n = max(n, t.m.typeAt(f.typ).alignment())
			}
		}
	case KindBase:
		if n = t.size; t.enc == encComplex {
			n /= 2
		}
	default:
		n = t.byteSize(nil)
	}
	n = min(max(n, t.align, 1), maxAlignment)
	for n&(n-1) != 0 {
		n &= n - 1
	}
	for t.size >= 0 && t.size%n != 0 { // a packed one
		n /= 2
	}
	return n
}

// maxAlignment is a page: nothing in memory that is allocated is aligned to more.
const maxAlignment = 4096

// mulSize multiplies sizes; what is too large for an address space is -1.
func mulSize(a, b int64) int64 {
	if a < 0 || b < 0 || b != 0 && a > (1<<47)/b {
		return -1
	}
	return a * b
}

// length returns the number of elements of an array, -1 when it is not known.
func (t *Type) length(env *Env) int64 {
	t.load()
	if t.dim >= len(t.dims) {
		return -1
	}
	d := &t.dims[t.dim]
	if n, ok := env.bound(d.count); ok {
		return max(n, 0)
	}
	if n, ok := env.bound(d.upper); ok {
		if n = n - d.lower + 1; n < 0 || n > 1<<40 {
			return 0
		}
		return n
	}
	return -1
}
