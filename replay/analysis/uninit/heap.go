package uninit

import (
	"math/bits"
	"sync"

	"vplay/replay/analysis/taint"
)

// Models of the allocator.

// modelFunc is the model of a function: see taint.Model.
type modelFunc func(c *Checker, name string, f *taint.Frame) taint.Return

// models returns the models by the names of functions. It is made when it is asked for, as it has hundreds.
var models = sync.OnceValue(func() map[string]modelFunc {
	m := map[string]modelFunc{
		"calloc": callocModel, "realloc": reallocModel, "reallocarray": reallocModel, "posix_memalign": memalignModel,
		"aligned_alloc": sized(1), "memalign": sized(1), "valloc": sized(0), "pvalloc": sized(0), "malloc": sized(0), "malloc_usable_size": usableModel,
	}
	for _, n := range []string{"_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t"} {
		m[n] = sized(0)
	}
	for _, n := range []string{"free", "cfree", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t", "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t"} {
		m[n] = freeModel
	}
	addStrings(m)
	return m
})

// block notes a block whose bytes from one on are undefined.
func (c *Checker) block(kind OriginKind, f *taint.Frame, o Origin, a, size, from uint64) {
	if a == 0 {
		return
	}
	o.Kind, o.PC, o.Addr, o.Size = kind, f.Caller, a, size
	if len(c.blocks) < maxBlocks {
		c.blocks[a] = size
	}
	if from < size {
		c.Engine.MarkMemory(a+from, size-from, c.origin(o))
	}
}

// sized is the model of functions that return a block of which argument n is the size.
func sized(n int) modelFunc {
	return func(c *Checker, _ string, f *taint.Frame) taint.Return {
		o := Origin{Position: c.position()}
		return func(_ *taint.Engine, f *taint.Frame, a uint64) { c.block(Heap, f, o, a, f.Args[n], 0) }
	}
}

func callocModel(c *Checker, _ string, f *taint.Frame) taint.Return {
	return func(t *taint.Engine, f *taint.Frame, a uint64) {
		if hi, n := bits.Mul64(f.Args[0], f.Args[1]); a != 0 && hi == 0 {
			t.ClearMemory(a, n)
			c.block(Heap, f, Origin{}, a, n, n)
		}
	}
}

// reallocModel keeps what was in the block. The old block's marks are moved before the allocator
// writes to it.
func reallocModel(c *Checker, name string, f *taint.Frame) taint.Return {
	o := Origin{Position: c.position()}
	old := f.Args[0]
	had, known := c.blocks[old]
	size := f.Args[1]
	if name == "reallocarray" {
		size *= f.Args[2]
	}
	return func(t *taint.Engine, f *taint.Frame, a uint64) {
		switch {
		case a == 0 && size != 0:
			return // it failed, and nothing has changed
		case a != old && old != 0:
			if known {
				t.MoveMemory(a, old, min(had, size))
				t.ClearMemory(old, had)
			}
			delete(c.blocks, old)
		}
		switch {
		case old == 0:
			c.block(Heap, f, o, a, size, 0)
		case !known: // it was there when the recording began: how large is not known
			c.block(Grown, f, o, a, size, size)
		default:
			c.block(Grown, f, o, a, size, min(had, size))
		}
	}
}

func memalignModel(c *Checker, _ string, f *taint.Frame) taint.Return {
	o := Origin{Position: c.position()}
	return func(t *taint.Engine, f *taint.Frame, result uint64) {
		var b [8]byte
		if result&0xffffffff != 0 || t.Peek(f.Args[0], b[:]) < len(b) {
			return
		}
		t.ClearMemory(f.Args[0], 8)
		a := uint64(0)
		for i, v := range b {
			a |= uint64(v) << (8 * i)
		}
		c.block(Heap, f, o, a, f.Args[2], 0)
	}
}

// freeModel has a block be defined again: what the allocator writes into it is not looked at.
func freeModel(c *Checker, _ string, f *taint.Frame) taint.Return {
	return func(t *taint.Engine, f *taint.Frame, _ uint64) {
		if n, ok := c.blocks[f.Args[0]]; ok {
			t.ClearMemory(f.Args[0], n)
			delete(c.blocks, f.Args[0])
		}
	}
}

// usableModel: who asks how large a block is may use all of it.
func usableModel(c *Checker, _ string, f *taint.Frame) taint.Return {
	return func(t *taint.Engine, f *taint.Frame, n uint64) {
		if had, ok := c.blocks[f.Args[0]]; ok && n > had && n-had < 1<<20 {
			c.block(Heap, f, Origin{Position: c.position()}, f.Args[0], n, had)
		}
	}
}
