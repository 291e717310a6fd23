//go:build linux && amd64

package differential

import (
	"bufio"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"vplay/replay/x86"
)

// The CPU's side of a comparison: it builds and starts the harness, sends it cases and
// reads the outcomes. The structures are those of native/harness.c and must change with
// it. The emulator's side is emulate.go.

//go:embed native/harness.c
var harnessSource []byte

// Sizes of the harness's structures (struct request, struct answer).
const (
	requestSize = 16 + maxCode + 16*8 + 5*8 + xsaveSize
	answerSize  = 16 + 3*8 + 16*8 + 3*8 + 12 + 4 + 8 + xsaveSize

	answerDone    = 0
	answerSignal  = 1
	answerTimeout = 2

	codeSegAccerr = 2 // SEGV_ACCERR, linux include/uapi/asm-generic/siginfo.h
)

// BuildHarness compiles the harness into dir and returns its path. The error
// says what is missing when there is no C compiler.
func BuildHarness(dir string) (string, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", &MissingError{What: "gcc"}
	}
	src, bin := filepath.Join(dir, "harness.c"), filepath.Join(dir, "harness")
	if err := os.WriteFile(src, harnessSource, 0o600); err != nil {
		return "", err
	}
	cmd := exec.Command(gcc, "-O2", "-Wall", "-fPIE", "-static-pie", "-fno-stack-protector", "-fcf-protection=none", "-o", bin, src)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("differential: gcc: %w\n%s", err, out)
	}
	return bin, nil
}

// CPU is a running harness: the processor of this machine as an oracle. It is
// used by one goroutine at a time.
type CPU struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
	buf    []byte
	answer [answerSize]byte
	own    [][2]uint64 // what the harness has mapped for itself
}

// StartCPU starts the harness at path. The caller closes it.
func StartCPU(path string) (*CPU, error) {
	c := &CPU{cmd: exec.Command(path)}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewReaderSize(out, 1<<20)
	c.cmd.Stderr = &c.stderr
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	for i := range baseImage {
		if _, err := in.Write(baseImage[i][:]); err != nil {
			return nil, c.died(err)
		}
	}
	if err := c.readMaps(); err != nil {
		return nil, err
	}
	return c, nil
}

// readMaps notes the harness's own memory, which random addresses may hit.
func (c *CPU) readMaps() error {
	k, _, err := ParseLine("90 ;")
	if err != nil {
		return err
	}
	if _, err := c.Run([]*Case{k}); err != nil { // by now it is set up
		return err
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.cmd.Process.Pid))
	if err != nil {
		return c.died(err)
	}
	for line := range strings.Lines(string(b)) {
		var r [2]uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &r[0], &r[1]); err != nil {
			return fmt.Errorf("differential: /proc/maps: %w", err)
		}
		if pageIndex(r[0]) < 0 && r[0] != CodeBase {
			c.own = append(c.own, r)
		}
	}
	return nil
}

// owns says whether an access at a page fault's address would have met memory
// of the harness: such a case compares nothing.
func (c *CPU) owns(t Trap) bool {
	for _, r := range c.own {
		if t.Taken && t.Vector == trapPF && t.Addr+64 > r[0] && t.Addr < r[1] {
			return true
		}
	}
	return false
}

// Close ends the harness.
func (c *CPU) Close() {
	_ = c.in.Close() // closed twice where it died
	_ = c.cmd.Wait() // its exit status means nothing any more
}

// died turns a broken pipe into what the harness said.
func (c *CPU) died(err error) error {
	_ = c.in.Close() // closed twice where it died
	werr := c.cmd.Wait()
	text := strings.TrimSpace(c.stderr.String())
	if what, ok := strings.CutPrefix(text, "harness: needs: "); ok {
		return &MissingError{What: what}
	}
	return fmt.Errorf("differential: harness ended: %w", errors.Join(err, werr, errors.New(text)))
}

// Pending is a batch that the CPU is working on.
type Pending struct {
	done chan error
}

// Wait returns when all outcomes are there.
func (p Pending) Wait() error { return <-p.done }

// Start begins to execute the cases; out[i] receives the outcome of cases[i].
// No other batch may be started before Wait has returned.
//
// Preconditions: len(out) == len(cases).
func (c *CPU) Start(cases []*Case, out []Outcome) Pending {
	c.buf = c.buf[:0]
	for _, k := range cases {
		c.buf = appendRequest(c.buf, k)
	}
	written := make(chan error, 1)
	go func() {
		_, err := c.in.Write(c.buf)
		written <- err
	}()
	p := Pending{done: make(chan error, 1)}
	go func() {
		for i := range out {
			if err := c.read(cases[i], &out[i]); err != nil {
				p.done <- c.died(err)
				return
			}
		}
		p.done <- <-written
	}()
	return p
}

// Run executes the cases and waits.
func (c *CPU) Run(cases []*Case) ([]Outcome, error) {
	out := make([]Outcome, len(cases))
	err := c.Start(cases, out).Wait()
	return out, err
}

func appendRequest(b []byte, k *Case) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, k.Offset)
	b = le.AppendUint32(b, uint32(len(k.Code)))
	b = le.AppendUint32(b, uint32(len(k.Patches)))
	b = le.AppendUint32(b, 1)
	var code [maxCode]byte
	copy(code[:], k.Code)
	b = append(b, code[:]...)
	for _, v := range k.In.R {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint64(b, k.In.Flags&flagsLoadable|defaultFlags)
	b = le.AppendUint64(b, k.In.FSBase)
	b = le.AppendUint64(b, k.In.GSBase)
	writable := uint64(0)
	if k.WritableCode {
		writable = 1
	}
	b = le.AppendUint64(b, writable)
	wide := k.In.Wide != x86.Wide{}
	b = le.AppendUint64(b, map[bool]uint64{true: 1}[wide])
	n := len(b)
	b = append(b, make([]byte, xsaveSize)...)
	encodeImage(&k.In, b[n:])
	if wide {
		n = len(b)
		b = append(b, make([]byte, wideSize)...)
		encodeWide(&k.In.Wide, b[n:])
	}
	for _, p := range k.Patches {
		b = le.AppendUint32(b, uint32(p.Addr))
		b = le.AppendUint32(b, uint32(len(p.Bytes)))
		b = append(b, p.Bytes...)
	}
	return b
}

func (c *CPU) read(k *Case, o *Outcome) error {
	b := c.answer[:]
	if _, err := io.ReadFull(c.out, b); err != nil {
		return err
	}
	le := binary.LittleEndian
	u32 := func(i int) uint32 { return le.Uint32(b[i:]) }
	u64 := func(i int) uint64 { return le.Uint64(b[i:]) }
	*o = Outcome{Changed: o.Changed[:0]}
	r := &o.Out
	r.RIP = u64(32)
	for i := range r.R {
		r.R[i] = u64(40 + 8*i)
	}
	r.Flags, r.FSBase, r.GSBase = u64(168)&^x86.FlagRF, u64(176), u64(184)
	for i := range r.Seg {
		r.Seg[i] = le.Uint16(b[192+2*i:])
	}
	r.Seg = oneNull(r.Seg)
	decodeImage(b[216:], r)
	if u64(208) != 0 {
		var w [wideSize]byte
		if _, err := io.ReadFull(c.out, w[:]); err != nil {
			return err
		}
		decodeWide(w[:], &r.Wide)
	}
	switch u32(0) {
	case answerSignal:
		o.Trap = trapOf(u32(12), u32(8), u64(16), u64(24))
		switch o.Trap.Vector {
		case trapBP: // a trap, not a fault: RIP is behind it
			r.RIP -= breakpointLength(k, r.RIP)
		case trapDB: // INT1: RIP is behind it on Intel
			if n := uint64(len(k.Code)); k.Steps == 1 && r.RIP == CodeBase+uint64(k.Offset)+n {
				r.RIP -= n
			}
		}
	case answerTimeout:
		o.Problem = "timeout on the CPU"
	}
	return c.readRuns(int(u32(204)), o)
}

// breakpointLength is the length of the INT3 or INT 3 before rip, prefixes
// included when it is the case's own instruction.
func breakpointLength(k *Case, rip uint64) uint64 {
	if n := uint64(len(k.Code)); k.Steps == 1 && rip == CodeBase+uint64(k.Offset)+n {
		return n
	}
	return 1
}

func (c *CPU) readRuns(n int, o *Outcome) error {
	if n == 0 {
		return nil
	}
	head := make([]byte, 8*n)
	if _, err := io.ReadFull(c.out, head); err != nil {
		return err
	}
	le := binary.LittleEndian
	for i := range n {
		r := Run{Addr: uint64(le.Uint32(head[8*i:])), Bytes: make([]byte, le.Uint32(head[8*i+4:]))}
		if _, err := io.ReadFull(c.out, r.Bytes); err != nil {
			return err
		}
		o.Changed = append(o.Changed, r)
	}
	return nil
}

// trapOf names the exception behind a signal frame: the vector and error code
// of the frame; si_code tells the two kinds of page fault apart.
func trapOf(vector, code uint32, errcode, addr uint64) Trap {
	t := Trap{Taken: true, Vector: vector}
	if vector == trapPF {
		t.Addr = addr
		t.Protection = code == codeSegAccerr
		t.Write = errcode&2 != 0
		t.Fetch = errcode&16 != 0
	}
	return t
}
