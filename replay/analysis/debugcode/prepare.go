package debugcode

import (
	"context"
	"fmt"
	"os"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
)

// From the user's file to a program that can be run.

// Options say what debug code is compiled with, and for which process.
type Options struct {
	PID int32
	// Symbols are where the files of the process's modules come from.
	Symbols *image.Symbols
	// Compiler is the C compiler; "" means musl-gcc.
	Compiler string
	// Flags are given to the preprocessor: -I, -D.
	Flags []string
}

// Program is debug code that is compiled for a recording.
type Program struct {
	o       Options
	s       *replay.Session
	ids     []uint32 // the intervals of the program that the process ran last
	files   *loader.ModuleFiles
	regions []*region
	symbols []*symbol // locals and the others
	base    uint64
	image   *program
}

// maxSource is how long a file may be, in bytes.
const maxSource = 16 << 20

// Prepare compiles the debug code of a file for the program that a process ran last. It calls the compiler, so it
// is for before a sandbox is entered. Errors: *Error, *CompileError, ErrNoCompiler, those of reading the
// recording, ctx's.
func Prepare(ctx context.Context, s *replay.Session, path string, o Options) (*Program, error) {
	p := &Program{o: o, s: s, files: loader.NewModuleFiles(o.Symbols)}
	p.files.Keep = true
	for _, i := range s.Rec.LastImageOf(o.PID) {
		p.ids = append(p.ids, i.ID)
	}
	if len(p.ids) == 0 {
		return nil, fmt.Errorf("%w: %d in %s", checkpoint.ErrNoProcess, o.PID, s.Rec.File())
	}
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if st.Size() > maxSource {
		return nil, &Error{path, fmt.Sprintf("debug code has at most %d bytes", maxSource)}
	}
	dir, err := os.MkdirTemp("", "vplay-debugcode-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c, err := newCompiler(ctx, o.Compiler, dir)
	if err != nil {
		return nil, err
	}
	text, err := c.preprocess(path, o.Flags)
	if err != nil {
		return nil, err
	}
	if p.base, err = window(s.Rec, p.ids); err != nil {
		return nil, err
	}
	if text, err = p.translate(path, text); err != nil {
		return nil, err
	}
	return p, p.build(c, text)
}

// translate makes functions of regions and declares what they use.
func (p *Program) translate(path, text string) (string, error) {
	list := scan(text)
	var err error
	if p.regions, err = regions(text, list); err != nil {
		return "", err
	}
	if len(p.regions) == 0 {
		return "", &Error{path, "there is no region in it: VPLAY_AT(FILE, LINE) { ... }, VPLAY_ON_CALL(FUNCTION), VPLAY_ON_SYSCALL(NAME), VPLAY_ON_ACCESS(VARIABLE), VPLAY_AT_END"}
	}
	ms, done, err := moments(p.s, p.o.PID, p.ids[len(p.ids)-1], p.files)
	if err != nil {
		return "", err
	}
	defer done()
	taken, own := namesOf(list, p.regions)
	l := &lookup{moments: ms, envs: nil, symbols: map[string]*symbol{}, own: own.names, decl: newDeclarer(taken)}
	if err := p.find(l, list); err != nil {
		return "", err
	}
	for _, r := range p.regions {
		p.symbols = append(p.symbols, sortedSymbols(r.locals)...)
	}
	p.symbols = append(p.symbols, sortedSymbols(l.symbols)...)
	body := rewrite(text, list, p.regions, l.declareLocals)
	return momentText + l.declarations() + body, nil
}

// namesOf are the names that the headers and the user's file declare, and those that the file does.
func namesOf(list []token, rs []*region) (all, byFile declared) {
	var system, own []token
	last := 0
	each := func(from, to int) {
		for _, t := range list[from:to] {
			if t.at.system {
				system = append(system, t)
			} else {
				own = append(own, t)
			}
		}
	}
	for _, r := range rs {
		each(last, r.begin)
		last = r.end + 1
	}
	each(last, len(list))
	d, more := declarations(system), declarations(own)
	for name := range more.names {
		d.names[name] = true
	}
	for name := range more.tags {
		d.tags[name] = true
	}
	return d, more
}

// find looks up all names that the file uses.
func (p *Program) find(l *lookup, list []token) error {
	l.envs = map[*region][]frameAt{}
	for _, r := range p.regions {
		if err := l.place(r); err != nil {
			return err
		}
		if r.kind == onSyscall {
			if _, ok := abi.Number(r.arg); !ok {
				return &Error{r.at, "there is no system call " + r.arg}
			}
		}
	}
	var wrong error
	use := func(r *region, from, to int) {
		loose := isLoose(list, from, to)
		for i := from; i < to; i++ {
			t := &list[i]
			var err error
			switch {
			case t.at.system || t.kind != isName || keywords[t.text]:
			case isTagWord(at(list, i-1)):
				l.tag(t.text)
			case loose[i]:
				if r != nil && !l.own[t.text] { // who has written the file knows what it declares, and not all of the program's names
					l.local(r, t.text)
				}
				if r == nil || r.locals[t.text] == nil {
					err = l.global(r, t.text)
				}
			case at(list, i-1) != "." && at(list, i-1) != "->": // in a struct, or in offsetof
				err = l.global(r, t.text)
			}
			if wrong == nil {
				wrong = err
			}
		}
	}
	last := 0
	for _, r := range p.regions {
		use(nil, last, r.begin)
		use(r, r.block, r.end)
		last = r.end + 1
	}
	use(nil, last, len(list))
	return wrong
}

// build compiles and links, and reads the result.
func (p *Program) build(c *compiler, text string) error {
	object, err := c.compile("code", text, true)
	if err != nil {
		return err
	}
	start, err := c.compile("start", runtimeText, false)
	if err != nil {
		return err
	}
	path, err := c.link(p.base, p.symbols, object, start)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if p.image, err = readBinary(b, p.symbols); err != nil {
		return err
	}
	return p.checkLocals()
}

// checkLocals refuses variables that are used where they are not.
func (p *Program) checkLocals() error {
	var wrong []string
	for _, s := range p.symbols {
		if !s.isLocal {
			continue
		}
		for _, site := range s.sites {
			if s.absent != "" {
				wrong = append(wrong, fmt.Sprintf("%s: %s is optimized out at %s: the recorded program has it nowhere there", p.image.source(site.at), s.program, s.absent))
				break
			}
		}
		if len(s.data) > 0 {
			wrong = append(wrong, fmt.Sprintf("a static variable cannot begin as the address of %s, which differs from call to call", s.program))
		}
	}
	if len(wrong) > 0 {
		return &Error{"", strings.Join(wrong, "\n")}
	}
	return nil
}
