package export

import (
	"bufio"
	"io"
	"strconv"

	"vplay/replay/observe"
	"vplay/replay/x86"
)

// The trace of valgrind's lackey with --trace-mem=yes (valgrind's manual, "Lackey"): a line for each instruction, "I  address,size", and one for
// each access that it makes, " L", " S", or " M" where it loads and stores the same bytes. Addresses are hexadecimal, sizes decimal.

// lackey writes the trace.
type lackey struct {
	out  *bufio.Writer
	line []byte
	// The instruction that is executed, and what it accesses.
	pc   uint64
	size uint64
	has  bool
	list []observe.Access
	sum  uint64
	seen uint64 // retired when it began
}

func writeLackey(w *walk, out io.Writer) error {
	l := &lackey{out: bufio.NewWriterSize(out, 1<<16)}
	err := w.run(observe.Options{
		Ordered: true,
		Begin: func(*observe.View) (*observe.Observer, error) {
			return &observe.Observer{
				AllAccesses: true,
				Start:       func(*observe.View) { l.has = false },
				Instr: func(v *observe.View, in *x86.Inst) {
					l.retired(v.CPU().Retired)
					l.pc, l.size, l.has, l.seen, l.list = v.CPU().RIP, uint64(in.Len), true, v.CPU().Retired, l.list[:0]
				},
				Access: func(_ *observe.View, a *observe.Access) {
					l.list = append(l.list, observe.Access{Addr: a.Addr, Size: a.Size, Store: a.Store})
				},
				Done: func(v *observe.View) {
					l.retired(v.CPU().Retired)
					w.sum += v.CPU().Retired
				},
			}, nil
		},
	})
	if err == nil && l.sum != w.sum {
		w.note("%d of %d instructions are listed", l.sum, w.sum)
	}
	if err != nil {
		return err
	}
	return l.out.Flush()
}

// retired writes the instruction before, if it was executed: one that has faulted is told of again.
func (l *lackey) retired(now uint64) {
	if !l.has || now == l.seen {
		return
	}
	l.has = false
	l.sum++
	l.access("I  ", l.pc, l.size)
	for i := 0; i < len(l.list); i++ {
		a := &l.list[i]
		switch {
		case !a.Store && i+1 < len(l.list) && l.list[i+1].Store && l.list[i+1].Addr == a.Addr && l.list[i+1].Size == a.Size:
			l.access(" M ", a.Addr, uint64(a.Size))
			i++
		case a.Store:
			l.access(" S ", a.Addr, uint64(a.Size))
		default:
			l.access(" L ", a.Addr, uint64(a.Size))
		}
	}
}

// access writes a line; addresses have eight digits at least, as valgrind's have.
func (l *lackey) access(kind string, addr, size uint64) {
	b := append(l.line[:0], kind...)
	for least := uint64(1 << 28); addr < least && least > 1; least >>= 4 {
		b = append(b, '0')
	}
	b = strconv.AppendUint(b, addr, 16)
	b = append(b, ',')
	b = strconv.AppendUint(b, size, 10)
	l.line = append(b, '\n')
	_, _ = l.out.Write(l.line) // Flush has the error
}
