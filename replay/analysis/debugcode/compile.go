package debugcode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The compiler: the system's, with the headers and the library of musl, by musl-gcc, or by clang, which
// links by musl-gcc, too.

// CompileError is what the compiler says of debug code, with the places in the user's file.
type CompileError struct{ Text string }

func (e *CompileError) Error() string { return e.Text }

// ErrNoCompiler says that there is no compiler, or no C library for debug code.
var ErrNoCompiler = errors.New("there is no musl-gcc, which compiles debug code and has its C library")

// linkerOfMusl is the program of musl that calls gcc with its headers and library.
const linkerOfMusl = "musl-gcc"

// muslHeaders are where Debian and Alpine, and musl's own installation, have the headers.
var muslHeaders = []string{"/usr/include/x86_64-linux-musl", "/usr/local/musl/include"}

// compiler compiles and links.
type compiler struct {
	ctx     context.Context
	cc      string   // what compiles
	headers []string // flags that make it find musl's headers
	gcc     string   // what musl-gcc is to run; "": its own
	isClang bool
	dir     string // for files
}

// maxOutput bounds what is kept of a compiler's messages, in bytes.
const maxOutput = 1 << 20

func newCompiler(ctx context.Context, cc, dir string) (*compiler, error) {
	if _, err := exec.LookPath(linkerOfMusl); err != nil {
		return nil, ErrNoCompiler
	}
	c := &compiler{ctx: ctx, cc: cc, dir: dir}
	if cc == "" {
		c.cc = linkerOfMusl
	}
	if _, err := exec.LookPath(c.cc); err != nil {
		return nil, fmt.Errorf("the compiler %s: %w", c.cc, err)
	}
	if c.isClang = strings.Contains(filepath.Base(c.cc), "clang"); c.isClang {
		c.headers = []string{"-nostdlibinc"}
		for _, h := range muslHeaders {
			if _, err := os.Stat(h); err == nil {
				c.headers = append(c.headers, "-isystem", h)
			}
		}
	} else if filepath.Base(c.cc) != linkerOfMusl { // musl-gcc runs another gcc where it is told so
		c.gcc, c.cc = c.cc, linkerOfMusl
	}
	return c, nil
}

// run runs a compiler. The error is a *CompileError with what it says, or ctx's.
func (c *compiler) run(program string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if c.gcc != "" {
		cmd.Env = append(cmd.Env, "REALGCC="+c.gcc)
	}
	var out, text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &text
	err := cmd.Run()
	if c.ctx.Err() != nil {
		return "", c.ctx.Err()
	}
	if err != nil {
		said := text.String()
		if said = said[:min(len(said), maxOutput)]; said == "" {
			said = fmt.Sprintf("%s: %v", program, err)
		}
		return "", &CompileError{c.plain(said)}
	}
	return out.String(), nil
}

// ownNames are the names that regions, and the program's variables in them, have for the compiler.
var ownNames = regexp.MustCompile(`vplay_l\d+_|vplay_t\d+_`)

// regionName is a region's function as compilers name it.
var regionName = regexp.MustCompile(`vplay_region_(\d+)`)

// plain makes names those of the user's file, and leaves out where compilers speak of files of ours.
func (c *compiler) plain(said string) string {
	said = ownNames.ReplaceAllString(said, "")
	said = regionName.ReplaceAllString(said, "region $1")
	var out []string
	for line := range strings.Lines(said) {
		line = strings.TrimRight(strings.ReplaceAll(line, c.dir+string(filepath.Separator), ""), "\n")
		if !strings.HasPrefix(line, "compilation terminated") && !strings.HasPrefix(line, "collect2:") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// preprocess expands the macros of a file.
func (c *compiler) preprocess(path string, flags []string) (string, error) {
	return c.run(c.cc, slices.Concat([]string{"-E", "-std=gnu17", "-Ulinux", "-Uunix"}, c.headers, flags, []string{path})...)
}

// compile makes an object file of text that was preprocessed.
func (c *compiler) compile(name, text string, debug bool) (object string, err error) {
	source := filepath.Join(c.dir, name+".i")
	object = filepath.Join(c.dir, name+".o")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		return "", err
	}
	args := []string{"-x", "cpp-output", "-std=gnu17", "-c", "-o", object, "-O1", "-mcmodel=large", "-fno-pic", "-fno-stack-protector", "-fcf-protection=none",
		"-fno-strict-aliasing", "-fms-extensions", "-fno-omit-frame-pointer", "-fno-diagnostics-show-option", "-Wno-builtin-declaration-mismatch"}
	if c.isClang {
		args = append(args, "-Wno-unknown-warning-option", "-Wno-microsoft", "-Wno-address-of-packed-member", "-fno-caret-diagnostics", "-fno-show-column")
	} else {
		args = append(args, "-Wno-address-of-packed-member", "-Wno-packed-bitfield-compat", "-fno-diagnostics-show-caret", "-fno-show-column")
	}
	if debug {
		args = append(args, "-g")
	}
	_, err = c.run(c.cc, append(args, source)...)
	return object, err
}

// link makes a program at an address. Symbols of the recorded program are zero in it; relocations stay, so that
// who runs it can put in their addresses.
func (c *compiler) link(base uint64, symbols []*symbol, objects ...string) (path string, err error) {
	path = filepath.Join(c.dir, "debugcode")
	args := []string{"-static", "-no-pie", "-nostartfiles", "-Wl,--emit-relocs,--no-relax,-z,noexecstack", fmt.Sprintf("-Wl,-Ttext-segment=%#x", base),
		// musl asks for the address of what a static program lacks.
		fmt.Sprintf("-Wl,--defsym=_DYNAMIC=%#x", base), "-o", path}
	var script strings.Builder
	for _, s := range symbols {
		fmt.Fprintf(&script, "%s = 0;\n", s.name)
	}
	names := filepath.Join(c.dir, "symbols.ld")
	if err := os.WriteFile(names, []byte(script.String()), 0o600); err != nil {
		return "", err
	}
	args = append(append(args, objects...), names, "-lm")
	_, err = c.run(linkerOfMusl, args...)
	return path, err
}

// momentText declares what regions are told.
const momentText = `# 1 "vplay.h"
struct vplay_moment {
	unsigned long pc, interval, instruction;
	int thread, store;
	long number;
	unsigned long args[6];
	long result;
	unsigned long address, size;
	unsigned char data[64], old[64];
	unsigned long rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15;
};
# 1 "declarations of the recorded program"
`

// runtimeText is what starts debug code: the C library, then it waits for regions to be called at
// vplay_ready. What a region is told is put into vplay_told.
const runtimeText = `int main(void);
int __libc_start_main(int (*)(void), int, char **, void (*)(void), void (*)(void), void (*)(void));
extern struct _IO_FILE *const stdout;
int setvbuf(struct _IO_FILE *, char *, int, unsigned long);
void vplay_ready(void);
char vplay_told[512] __attribute__((aligned(16)));
void vplay_start(long *stack) { __libc_start_main(main, stack[0], (char **)(stack + 1), 0, 0, 0); }
int main(void) { setvbuf(stdout, 0, 2, 0); vplay_ready(); return 0; }
__asm__(".text\n.globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call vplay_start\n hlt\n"
	".globl vplay_ready\nvplay_ready: ret\n.globl vplay_done\nvplay_done: hlt\n");
`
