package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/replay/debug"
)

// VS Code reaches a recording in three ways. The extension vplay starts vplayd by
// itself, which speaks the Debug Adapter Protocol on its standard input and output.
// Without it, VS Code connects to a port named by "debugServer", where vplayd serves the
// same, and asks no extension for an adapter then; but the debug type must be one that
// some installed extension brings, here the C++ extension's. And that extension itself
// starts gdb on the server of gdb's protocol: it wants the program as a file, request
// launch with miDebuggerServerAddress, and stopAtConnect, without which it may run to the
// end at once. It has no buttons to go back.

func newVSCode() *cobra.Command {
	var f vscodeFlags
	c := &cobra.Command{
		Use:   "vscode [flags] [RECORDING]",
		Short: "set up a folder for debugging a recording in VS Code",
		Long: `Vscode writes three configurations into .vscode/launch.json of a folder, and the
program file that one of them wants into .vplay/:

  "vplay NAME"          for the extension vplay: it starts vplayd by itself
  "vplay NAME, served"  for the extension C/C++ (ms-vscode.cpptools), connects to
                        vplayd serve --dap
  "vplay NAME, gdb"     for the same extension, with gdb on vplayd serve

The first two are the same debugger: buttons for going back (step back, reverse),
conditions, hit counts and log points that hold in both directions, data
breakpoints, functions called and variables set in a copy. The timeline, "Who
wrote this?" and the position in the status bar are the extension's. With gdb
there are its pretty-printers and all of its commands in the debug console; going
back is by "-exec reverse-continue", "-exec reverse-step" and the like.

A launch.json that is there keeps what it holds, comments included; only
configurations of the same names are replaced. When it cannot be understood
nothing is written to it, and the configurations are printed.

When the sources were compiled in a folder that does not exist here, it is mapped
to the workspace folder: change that in launch.json if they lie elsewhere.`,
		Example: "  vplayd vscode --symbols build/ server-1.vplay\n  vplayd vscode --dir ~/src/server server-1.vplay",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, p := range []int{f.port, f.dapPort} {
				if p < 1 || p > 65535 {
					return usageError{withHint(fmt.Errorf("port %d", p), exitUsage, "a port is 1 to 65535")}
				}
			}
			g, closeAll, err := openTarget(c, args, serveFlags{symbols: f.symbols, memory: 64}, nil)
			if err != nil {
				return err
			}
			defer closeAll()
			rec, err := recordingPath(args)
			if err != nil {
				return err
			}
			return writeVSCode(c, g, rec, f)
		},
	}
	c.Flags().StringVar(&f.dir, "dir", ".", "`FOLDER` that is opened in VS Code")
	f.symbols.add(c)
	addProcessFlag(c, "that which the recording is about")
	c.Flags().StringVar(&f.gdb, "debugger", envOr("VPLAY_GDB", "/usr/bin/gdb"), "the `GDB` that VS Code starts")
	c.Flags().IntVar(&f.port, "port", 1234, "`PORT` of vplayd serve")
	c.Flags().IntVar(&f.dapPort, "dap-port", dapPort, "`PORT` of vplayd serve --dap")
	return c
}

type vscodeFlags struct {
	dir, gdb      string
	symbols       symbolFlags
	port, dapPort int

	// What the recording's configuration says, as the editor is told it.
	recording string
	folders   []string
	process   int // 0: that which the recording is about
}

// workspace is what VS Code replaces by the folder it has open.
const workspace = "${workspaceFolder}"

// launchConfig is a configuration in launch.json; the keys are those of VS Code
// and its C++ extension.
type launchConfig struct {
	Name            string            `json:"name"`
	Type            string            `json:"type"`
	Request         string            `json:"request"`
	DebugServer     int               `json:"debugServer,omitempty"`
	MIMode          string            `json:"MIMode,omitempty"`
	MIDebuggerPath  string            `json:"miDebuggerPath,omitempty"`
	Program         string            `json:"program,omitempty"`
	Cwd             string            `json:"cwd,omitempty"`
	ServerAddress   string            `json:"miDebuggerServerAddress,omitempty"`
	StopAtConnect   *bool             `json:"stopAtConnect,omitempty"`
	StopAtEntry     *bool             `json:"stopAtEntry,omitempty"`
	ExternalConsole *bool             `json:"externalConsole,omitempty"`
	SetupCommands   []setupCommand    `json:"setupCommands,omitempty"`
	SourceFileMap   map[string]string `json:"sourceFileMap,omitempty"`

	// These are the extension vplay's.
	Recording string            `json:"recording,omitempty"`
	Symbols   []string          `json:"symbols,omitempty"`
	SourceMap map[string]string `json:"sourceMap,omitempty"`
	Process   int               `json:"process,omitempty"`
	At        string            `json:"at,omitempty"`
}

type setupCommand struct {
	Text           string `json:"text"`
	IgnoreFailures bool   `json:"ignoreFailures"`
}

// launchConfigs returns the configurations for a program. The first is the recording's.
func launchConfigs(name, program string, sources map[string]string, f vscodeFlags) []launchConfig {
	yes, no := true, false
	setup := []setupCommand{{"-enable-pretty-printing", true}, {"set sysroot target:", true}}
	for from, to := range sources {
		setup = append(setup, setupCommand{fmt.Sprintf("set substitute-path %s %s", from, to), true})
	}
	return []launchConfig{{
		Name: "vplay " + name, Type: "vplay", Request: "launch", Recording: f.recording, Symbols: f.folders, SourceMap: sources, Process: f.process, At: "end",
	}, {
		Name: "vplay " + name + ", served", Type: "cppdbg", Request: "launch", DebugServer: f.dapPort,
		Program: program, Cwd: workspace, SourceFileMap: sources,
	}, {
		Name: "vplay " + name + ", gdb", Type: "cppdbg", Request: "launch", MIMode: "gdb", MIDebuggerPath: f.gdb,
		Program: program, Cwd: workspace, ServerAddress: fmt.Sprintf("127.0.0.1:%d", f.port),
		StopAtConnect: &yes, StopAtEntry: &no, ExternalConsole: &no, SetupCommands: setup, SourceFileMap: sources,
	}}
}

// writeVSCode writes launch.json and the program's file.
func writeVSCode(c *cobra.Command, g *debug.Cursor, rec string, f vscodeFlags) error {
	mod, image, err := buildModule(g, mainModule)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(safeName(mod.Path), "$", "_") // ${...} is VS Code's to replace
	if err := f.locate(g, rec); err != nil {
		return err
	}
	configs := launchConfigs(name, workspace+"/.vplay/"+name+".elf", sourceMap(image, g.Recording().Budget()), f)
	launch := filepath.Join(f.dir, ".vscode", "launch.json")
	old, err := os.ReadFile(launch)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, mergeErr := mergeLaunch(old, configs)
	program := filepath.Join(f.dir, ".vplay", name+".elf")
	for _, p := range []string{program, launch} {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
	}
	if err := writeWhole(program, image, 0o700); err != nil {
		return err
	}
	out := c.OutOrStdout()
	fmt.Fprintf(out, "wrote %s\n", program)
	if mergeErr != nil {
		fmt.Fprintf(out, "%s stays as it is: %v\nPut this into its \"configurations\":\n%s\n", launch, mergeErr, configText(configs))
	} else {
		mode := fs.FileMode(0o644)
		if st, err := os.Stat(launch); err == nil {
			mode = st.Mode().Perm()
		}
		if err := writeWhole(launch, text, mode); err != nil {
			return err
		}
		fmt.Fprintf(out, "wrote %s\n", launch)
	}
	var words strings.Builder
	for _, s := range f.symbols.dirs {
		words.WriteString(" --symbols " + shellWord(s))
	}
	if f.symbols.noLocal {
		words.WriteString(" --" + noLocalFiles)
	}
	words.WriteString(processOption(g.Recording(), g.Session().Process().PID))
	sym := words.String()
	fmt.Fprintf(out, `
Open %s in VS Code.
With the extension vplay, start %q (F5): it needs nothing else.
With the extension C/C++ alone, run
    vplayd serve --dap --listen 127.0.0.1:%d%s %s
and start %q. The toolbar goes back, too; there is no timeline. With gdb instead,
    vplayd serve --listen 127.0.0.1:%d%s %s
and start %q: gdb's pretty-printers and commands, and -exec reverse-continue in
the debug console to go back.
`, shellWord(f.dir), configs[0].Name, f.dapPort, sym, shellWord(rec), configs[1].Name, f.port, sym, shellWord(rec), configs[2].Name)
	return nil
}

// locate fills in the recording, its symbol folders and its process as VS Code finds them:
// below the folder that it opens, or by their whole paths.
func (f *vscodeFlags) locate(g *debug.Cursor, rec string) (err error) {
	if f.recording, err = inWorkspace(f.dir, rec); err != nil {
		return err
	}
	for _, d := range f.symbols.dirs {
		p, err := inWorkspace(f.dir, d)
		if err != nil {
			return err
		}
		f.folders = append(f.folders, p)
	}
	if pid := g.Session().Process().PID; processOption(g.Recording(), pid) != "" {
		f.process = int(pid)
	}
	return nil
}

// inWorkspace is a path as a configuration of the folder dir has it.
func inWorkspace(dir, name string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if name, err = filepath.Abs(name); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(rel) {
		return name, nil //nolint:nilerr // it is elsewhere
	}
	if rel == "." {
		return workspace, nil
	}
	return workspace + "/" + filepath.ToSlash(rel), nil
}

// sourceMap maps the folder that the program was compiled in to the workspace,
// unless it is here.
func sourceMap(image []byte, budget *checkpoint.Budget) map[string]string {
	m, err := dwarf.Open(image, budget)
	if err != nil {
		return nil
	}
	return mapFolder(m.CompDir())
}

// mapFolder maps a folder to the workspace, unless it is here.
func mapFolder(dir string) map[string]string {
	// What is behind a dollar sign VS Code takes for a variable, or for a command to run.
	if dir == "" || !path.IsAbs(dir) || strings.Contains(dir, "${") || strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' }) {
		return nil
	}
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		return nil
	}
	return map[string]string{dir: workspace}
}

// configText writes the configurations as they stand in a launch.json.
func configText(configs []launchConfig) string {
	var parts []string
	for i := range configs {
		parts = append(parts, "        "+configJSON(&configs[i]))
	}
	return strings.Join(parts, ",\n")
}

// configJSON writes one configuration, its first line without indentation.
func configJSON(config *launchConfig) string {
	var b bytes.Buffer
	e := newJSONEncoder(&b)
	e.SetIndent("        ", "    ")
	if err := e.Encode(config); err != nil {
		panic(err) // strings and numbers only
	}
	return strings.TrimSpace(b.String())
}
