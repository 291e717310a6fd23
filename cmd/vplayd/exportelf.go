package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug"
)

// A front-end that wants the program as a file, as VS Code's C++ extension does,
// or a debugger that does not fetch files from the server, gets here the same
// rebuilt ELF files that serve gives to gdb.

// mainModule is the name under which --module takes the program itself.
const mainModule = "main"

func newExportELF() *cobra.Command {
	var module, out, all string
	var symbols symbolFlags
	c := &cobra.Command{
		Use:   "export-elf [flags] [RECORDING]",
		Short: "write the program or a library as an ELF file",
		Long: `Export-elf writes an ELF file rebuilt from the recording, the one that serve
gives to gdb: the captured pages merged with the symbol file of the same
build-id from the --symbols folders. With none, it has the names that the module
exports, and unwind tables. A section of which a page was not captured is left
empty.

The program is written to NAME.elf unless told otherwise. --module takes the path
of a library as "monitor modules" shows it, or the last part of it. --all writes
every module into a folder at the path it had, which is a sysroot for a debugger
that wants the files here:

  gdb -ex 'set sysroot sysroot' -ex 'target remote :1234' sysroot/usr/bin/sort

Once the file is open, export-elf can write to no other folder, read no files but those
with symbols, and start no other program, where the kernel has Landlock and seccomp
(vplayd doctor tells).`,
		Example: "  vplayd export-elf --symbols build/ sort-1.vplay\n  vplayd export-elf --module libc.so.6 -o libc.elf sort-1.vplay\n  vplayd export-elf --all sysroot sort-1.vplay",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if all != "" && (out != "" || c.Flags().Changed("module")) {
				return usageError{withHint(errors.New("--all goes with neither --module nor --output"), exitUsage, "--all writes every module into its folder")}
			}
			g, closeAll, err := openTarget(c, args, serveFlags{symbols: symbols, memory: 64}, exportSandbox(c, out, all))
			if err != nil {
				return err
			}
			defer closeAll()
			if all != "" {
				return exportAll(c, g, all)
			}
			return exportOne(c, g, module, out)
		},
	}
	c.Flags().StringVar(&module, "module", mainModule, "`NAME` of the module: main, a path, or the last part of one")
	c.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write (default: the module's name and .elf; -: standard output)")
	c.Flags().StringVar(&all, "all", "", "write every module into this `FOLDER`, at its path")
	symbols.add(c)
	addProcessFlag(c, "that which the recording is about")
	addSandboxFlag(c)
	return c
}

// exportSandbox enters the sandbox of export-elf, which leaves the folder it writes to.
func exportSandbox(c *cobra.Command, out, all string) prepare {
	return func(_ *replay.Session, a sandbox.Access) error {
		switch {
		case all != "":
			if err := os.MkdirAll(all, 0o755); err != nil {
				return err
			}
			a.Write = []string{all}
		case out != "-":
			a.Write = []string{filepath.Dir(out)}
		}
		return enterSandbox(c, a)
	}
}

// findModule returns the module that --module names.
func findModule(g *debug.Cursor, name string) (*image.Module, error) {
	if name == mainModule {
		name = g.Session().Process().Program
	}
	if mod := g.Module(name); mod != nil {
		return mod, nil
	}
	var found []*image.Module
	var names []string
	for _, mod := range g.Modules() {
		if path.Base(mod.Path) == path.Base(name) {
			found = append(found, mod)
		}
		names = append(names, mod.Path)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, usageError{withHint(fmt.Errorf("%d modules are called %s", len(found), name), exitUsage, "name one with its path: %s", strings.Join(names, ", "))}
	case len(names) == 0:
		return nil, withHint(fmt.Errorf("the recording has no module %s", name), exitFailed, "no ELF header was captured")
	}
	return nil, usageError{withHint(fmt.Errorf("the recording has no module %s", name), exitUsage, "it has %s", strings.Join(names, ", "))}
}

// buildModule rebuilds the ELF file of a module (see findModule).
func buildModule(g *debug.Cursor, name string) (mod *image.Module, image []byte, err error) {
	if mod, err = findModule(g, name); err != nil {
		return mod, nil, err
	}
	image, err = g.BuildELF(mod)
	return mod, image, err
}

func exportOne(c *cobra.Command, g *debug.Cursor, module, out string) error {
	mod, b, err := buildModule(g, module)
	if err != nil {
		return err
	}
	if out == "-" {
		_, err := raw(c.OutOrStdout()).Write(b)
		return err
	}
	if out == "" {
		out = safeName(mod.Path) + ".elf"
	}
	if err := writeWhole(out, b, 0o600); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "%s: %s, %s\n", out, mod.Path, size(int64(len(b))))
	return nil
}

// safeName returns the last part of a recorded path, fit for a file's name on
// any system.
func safeName(p string) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, path.Base(p))
	if name == "." || name == ".." || name == "" {
		return "module"
	}
	return name
}

// exportAll writes every module at its path below dir. Recorded paths are
// hostile input: nothing is written outside of dir.
func exportAll(c *cobra.Command, g *debug.Cursor, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	written, sum, limit := 0, int64(0), g.Recording().Budget().Memory()
	for _, mod := range g.Modules() {
		if !path.IsAbs(mod.Path) {
			continue // the vDSO
		}
		b, err := g.BuildELF(mod)
		var refused *checkpoint.LimitError
		if errors.As(err, &refused) {
			return err
		}
		if err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "vplayd: %s: %v\n", mod.Path, err)
			continue
		}
		for _, name := range moduleNames(g, mod) {
			if err := c.Context().Err(); err != nil {
				return err
			}
			if sum += int64(len(b)); limit > 0 && sum > limit {
				return &checkpoint.LimitError{File: g.Recording().File(), Part: "its modules: " + mod.Path, Limit: limit}
			}
			if err := writeBelow(root, name, b); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", filepath.Join(dir, filepath.FromSlash(name)), size(int64(len(b))))
			written++
		}
	}
	if written == 0 {
		return withHint(errors.New("nothing was written"), exitFailed, "too little of the modules was captured")
	}
	return nil
}

// moduleNames returns the paths that a module goes by, its own and those of the
// dynamic linker's list, relative to the root.
func moduleNames(g *debug.Cursor, mod *image.Module) []string {
	names := []string{mod.Path}
	for _, l := range g.LinkMap() {
		if path.IsAbs(l.Name) && l.Dynamic >= mod.Base && l.Dynamic < mod.End {
			names = append(names, l.Name)
		}
	}
	for i, n := range names {
		parts := strings.Split(strings.TrimPrefix(path.Clean(n), "/"), "/")
		for j := range parts {
			parts[j] = safeName(parts[j])
		}
		names[i] = strings.Join(parts, "/")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func writeBelow(root *os.Root, name string, b []byte) error {
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
		return err
	}
	// A file that is there would keep its mode.
	if err := root.Remove(filepath.FromSlash(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return root.WriteFile(filepath.FromSlash(name), b, 0o600)
}
