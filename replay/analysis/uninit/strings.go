package uninit

import (
	"bytes"
	"encoding/binary"
	"strings"

	"vplay/replay/analysis/taint"
)

// Models of the functions of the C library that look at strings and blocks of memory. A model says
// which bytes decide the result, and those must be defined; the result is defined then.

// maxString is how many bytes of a string are looked at.
const maxString = 64 << 20

// modelled are functions with their models, and how many of their first arguments are pointers that they read by and that no
// model of them looks at: the models of those that copy and fill look at all arguments.
type modelled struct {
	pointers  int
	functions map[string]modelFunc
}

func addStrings(m map[string]modelFunc) {
	for _, list := range []modelled{
		{0, map[string]modelFunc{
			"memcpy": copyModel, "memmove": copyModel, "mempcpy": copyModel, "__memcpy_chk": copyModel, "__memmove_chk": copyModel, "__mempcpy_chk": copyModel,
			"memset": fillModel, "__memset_chk": fillModel, "bzero": zeroModel, "explicit_bzero": zeroModel,
		}},
		{1, map[string]modelFunc{
			"strlen": whole(1), "strchr": untilFound, "strchrnul": untilFound, "index": untilFound, "strrchr": whole(1), "rindex": whole(1),
			"wcslen": whole(4), "wcschr": whole(4), "wcsrchr": whole(4), "wmemchr": wideMatch, "strnlen": bounded(1), "wcsnlen": bounded(4),
			"memchr": untilMatch, "rawmemchr": untilMatch, "memrchr": lastMatch, "__rawmemchr": untilMatch, "__strchrnul": untilFound,
		}},
		{2, map[string]modelFunc{
			"strcpy": stringCopy, "stpcpy": stringCopy, "strncpy": stringCopy, "stpncpy": stringCopy, "strcat": stringCopy, "strncat": stringCopy,
			"__strcpy_chk": stringCopy, "__stpcpy_chk": stringCopy, "__strcat_chk": stringCopy, "__stpcpy": stringCopy, "__stpncpy": stringCopy,
			"memcmp": compareBlocks, "bcmp": compareBlocks,
			"strcmp": compare(false, false), "strncmp": compare(true, false), "strcasecmp": compare(false, true), "strncasecmp": compare(true, true),
			"strspn": both, "strcspn": both, "strpbrk": both, "strstr": both, "strcasestr": both,
			"strcasecmp_l": compare(false, true), "__strcasecmp_l": compare(false, true), "__strcasecmp": compare(false, true),
			"strncasecmp_l": compare(true, true), "__strncasecmp_l": compare(true, true), "__memcmpeq": compareBlocks,
		}},
	} {
		for name, f := range list.functions {
			f = withPointers(f, list.pointers)
			m[name] = f
			for _, kind := range implementations {
				m["__"+strings.TrimLeft(name, "_")+"_"+kind] = f
			}
		}
	}
}

// withPointers is a model that tells, before f, of pointers that are undefined.
func withPointers(f modelFunc, n int) modelFunc {
	return func(c *Checker, name string, frame *taint.Frame) taint.Return {
		for i := range n {
			c.wantArgument(name, frame, i, allBits)
		}
		return f(c, name, frame)
	}
}

// implementations are what the C library's choices of a function have behind their names (glibc
// sysdeps/x86_64/multiarch), where a symbol table names them: its own calls of them may be bound without a symbol.
var implementations = [...]string{
	"sse2", "sse2_unaligned", "sse2_unaligned_erms", "sse4_1", "sse4_2", "sse42", "ssse3", "avx", "avx2", "avx2_rtm", "avx2_unaligned_erms",
	"avx_unaligned", "avx_unaligned_erms", "evex", "evex_unaligned", "evex_unaligned_erms", "avx2_movbe", "evex_movbe", "generic",
}

// nothing is what there is to do behind a call whose result is defined.
func nothing(*taint.Engine, *taint.Frame, uint64) {}

// want tells of the first of n bytes at a that is undefined.
func (c *Checker) want(name string, f *taint.Frame, a, n uint64) {
	if off, tag, ok := c.Engine.FirstMark(a, n); ok {
		c.Engine.Tell(&taint.Use{Kind: taint.Condition, PC: f.Caller - 1, Tag: tag, From: off, To: off + 1, Function: name})
	}
}

// wantArgument tells of an argument that is undefined.
func (c *Checker) wantArgument(name string, f *taint.Frame, i int, mask uint64) {
	if f.Marks[i]&mask != 0 {
		c.Engine.Tell(&taint.Use{Kind: taint.Condition, PC: f.Caller - 1, Tag: f.Tags[i], Arg: i + 1, Function: name})
	}
}

const allBits = ^uint64(0)

// copyModel is that of memcpy: copies of what is undefined are no error.
func copyModel(c *Checker, name string, f *taint.Frame) taint.Return {
	for i := range 3 {
		c.wantArgument(name, f, i, allBits)
	}
	c.Engine.MoveMemory(f.Args[0], f.Args[1], min(f.Args[2], maxBlock))
	return nothing
}

// maxBlock bounds what one call copies, fills or looks at.
const maxBlock = 1 << 32

func fillModel(c *Checker, name string, f *taint.Frame) taint.Return {
	c.wantArgument(name, f, 0, allBits)
	c.wantArgument(name, f, 2, allBits)
	c.Engine.ClearMemory(f.Args[0], min(f.Args[2], maxBlock))
	if f.Marks[1]&0xff != 0 {
		c.Engine.MarkMemory(f.Args[0], min(f.Args[2], maxBlock), f.Tags[1])
	}
	return nothing
}

func zeroModel(c *Checker, name string, f *taint.Frame) taint.Return {
	c.wantArgument(name, f, 1, allBits)
	c.Engine.ClearMemory(f.Args[0], min(f.Args[1], maxBlock))
	return nothing
}

// stringCopy is the model of functions that copy up to a zero.
func stringCopy(c *Checker, name string, f *taint.Frame) taint.Return {
	to, from, most := f.Args[0], f.Args[1], uint64(maxString)
	limited := strings.Contains(name, "ncpy") || strings.Contains(name, "ncat")
	if limited {
		most = min(most, f.Args[2])
	}
	n := c.Engine.StringSize(from, 1, most)
	c.want(name, f, from, n)
	switch {
	case strings.Contains(name, "cat"):
		had := c.Engine.StringSize(to, 1, maxString)
		c.want(name, f, to, had)
		to += max(had, 1) - 1
		if limited {
			n++ // the zero that it adds
		}
		c.Engine.ClearMemory(to, n)
	default:
		if limited {
			n = min(f.Args[2], maxBlock)
		}
		c.Engine.ClearMemory(to, n) // it was told, if it was not defined
	}
	return nothing
}

// whole is the model of functions that look at a string up to its zero, of characters of size bytes.
func whole(size int) modelFunc {
	return func(c *Checker, name string, f *taint.Frame) taint.Return {
		c.want(name, f, f.Args[0], c.Engine.StringSize(f.Args[0], size, maxString))
		return nothing
	}
}

func bounded(size int) modelFunc {
	return func(c *Checker, name string, f *taint.Frame) taint.Return {
		c.wantArgument(name, f, 1, allBits)
		most := min(f.Args[1], maxString/uint64(size)) * uint64(size)
		c.want(name, f, f.Args[0], c.Engine.StringSize(f.Args[0], size, most))
		return nothing
	}
}

// untilFound is the model of strchr: what is behind the character is not looked at.
func untilFound(c *Checker, name string, f *taint.Frame) taint.Return {
	c.wantArgument(name, f, 1, 0xff)
	n := c.Engine.StringSize(f.Args[0], 1, maxString)
	c.want(name, f, f.Args[0], c.find(f.Args[0], n, byte(f.Args[1])))
	return nothing
}

func untilMatch(c *Checker, name string, f *taint.Frame) taint.Return {
	c.wantArgument(name, f, 1, 0xff)
	n := uint64(maxString)
	if !strings.Contains(name, "raw") {
		c.wantArgument(name, f, 2, allBits)
		n = min(n, f.Args[2])
	}
	c.want(name, f, f.Args[0], c.find(f.Args[0], n, byte(f.Args[1])))
	return nothing
}

// find returns how many of n bytes must be looked at to find a character.
func (c *Checker) find(a, n uint64, char byte) uint64 {
	var b [256]byte
	for off := uint64(0); off < n; {
		got := c.Engine.Peek(a+off, b[:min(uint64(len(b)), n-off)])
		if i := bytes.IndexByte(b[:got], char); i >= 0 {
			return off + uint64(i) + 1
		}
		if got == 0 {
			return off
		}
		off += uint64(got)
	}
	return n
}

// wideMatch is the model of wmemchr.
func wideMatch(c *Checker, name string, f *taint.Frame) taint.Return {
	c.wantArgument(name, f, 1, 0xffffffff)
	c.wantArgument(name, f, 2, allBits)
	var b [4]byte
	n := min(f.Args[2], maxString/4) * 4
	for off := uint64(0); off < n; off += 4 {
		got := c.Engine.Peek(f.Args[0]+off, b[:])
		if got < len(b) || binary.LittleEndian.Uint32(b[:]) == uint32(f.Args[1]) {
			n = off + 4
		}
	}
	c.want(name, f, f.Args[0], n)
	return nothing
}

// lastMatch looks from the end on.
func lastMatch(c *Checker, name string, f *taint.Frame) taint.Return {
	c.wantArgument(name, f, 1, 0xff)
	c.wantArgument(name, f, 2, allBits)
	var b [1]byte
	n := min(f.Args[2], maxString)
	for off := n; off > 0; off-- {
		at := f.Args[0] + off - 1
		c.want(name, f, at, 1)
		if c.Engine.Peek(at, b[:]) == 1 && b[0] == byte(f.Args[1]) {
			break
		}
	}
	return nothing
}

// compareBlocks: what is behind the first difference decides nothing.
func compareBlocks(c *Checker, name string, f *taint.Frame) taint.Return {
	c.wantArgument(name, f, 2, allBits)
	n, _ := c.common(f.Args[0], f.Args[1], min(f.Args[2], maxString), false, false)
	c.want(name, f, f.Args[0], n)
	c.want(name, f, f.Args[1], n)
	return nothing
}

// compare is the model of comparisons of strings.
func compare(limited, fold bool) modelFunc {
	return func(c *Checker, name string, f *taint.Frame) taint.Return {
		most := uint64(maxString)
		if limited {
			c.wantArgument(name, f, 2, allBits)
			most = min(most, f.Args[2])
		}
		n, _ := c.common(f.Args[0], f.Args[1], most, true, fold)
		c.want(name, f, f.Args[0], n)
		c.want(name, f, f.Args[1], n)
		return nothing
	}
}

// common returns how many bytes must be looked at to compare two blocks or strings: those that are
// the same, and the first that differ.
func (c *Checker) common(a, b, most uint64, isString, fold bool) (n uint64, same bool) {
	var x, y [256]byte
	for n < most {
		k := min(uint64(len(x)), most-n)
		k = min(uint64(c.Engine.Peek(a+n, x[:k])), uint64(c.Engine.Peek(b+n, y[:k])))
		for i := range k {
			p, q := x[i], y[i]
			if fold {
				p, q = lower(p), lower(q)
			}
			if p != q || isString && p == 0 {
				return n + i + 1, p == q
			}
		}
		if k == 0 {
			break
		}
		n += k
	}
	return n, true
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// both is the model of functions that look at two strings.
func both(c *Checker, name string, f *taint.Frame) taint.Return {
	for _, a := range f.Args[:2] {
		c.want(name, f, a, c.Engine.StringSize(a, 1, maxString))
	}
	return nothing
}
