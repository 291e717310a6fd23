package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The kernel's setting that starts core-handler (man 5 core, "Piping core dumps to a program"): it is written
// to /proc/sys for now, and to a file of sysctl.d(5) for each boot, which says what was there before.

const (
	sysctlFile  = "/etc/sysctl.d/99-vplay-core.conf"
	patternFile = "/proc/sys/kernel/core_pattern"
	limitFile   = "/proc/sys/kernel/core_pipe_limit"

	// maxPattern is how long a core_pattern may be: CORENAME_MAX_SIZE with its NUL (Linux, binfmts.h).
	maxPattern = 127
	// pipeLimit is how many handlers may run at once: with 0, processes would be gone from /proc too early.
	pipeLimit = 16

	beforePattern = "# before, kernel.core_pattern = "
	beforeLimit   = "# before, kernel.core_pipe_limit = "
)

// coreSetting is the setting, below a folder that stands for /.
type coreSetting struct{ root string }

func (s *coreSetting) path(name string) string { return filepath.Join(s.root, name) }

func (s *coreSetting) read(name string) string {
	b, _ := os.ReadFile(s.path(name)) // none: there is no such setting
	return strings.TrimSpace(string(b))
}

// pattern returns the core_pattern for a program and the flags that differ from the defaults.
func pattern(exe string, f *handlerFlags, c *cobra.Command) (string, error) {
	words := []string{"|" + exe, "core-handler"}
	for _, name := range []string{"dir", "log-file", "max-core", "max-use", "env", "keep", "time"} {
		if flag := c.Flags().Lookup(name); flag.Changed {
			words = append(words, "--"+name, flag.Value.String())
		}
	}
	p := strings.Join(append(words, "--", coreSpecifiers), " ")
	for _, w := range words {
		if strings.ContainsAny(w, " \t\n%") || w == "" {
			return "", fmt.Errorf("%q cannot stand in a core_pattern: it has a space or %%", w)
		}
	}
	if len(p) > maxPattern {
		return "", fmt.Errorf("the core_pattern has %d characters, and Linux takes %d: %s", len(p), maxPattern, p)
	}
	if !path.IsAbs(f.dir) {
		return "", fmt.Errorf("--dir %s is not a path from / on", f.dir)
	}
	return p, nil
}

// text returns the file of sysctl.d for a pattern.
func (s *coreSetting) text(pattern string) string {
	before, limit := s.read(patternFile), s.read(limitFile)
	if old := s.saved(); old[0] != "" { // it is installed already
		before, limit = old[0], old[1]
	}
	return fmt.Sprintf("# vplayd core-handler makes a recording of each crash; vplayd core-handler --uninstall undoes this.\n%s%s\n%s%s\n"+
		"kernel.core_pattern = %s\nkernel.core_pipe_limit = %d\n", beforePattern, before, beforeLimit, limit, pattern, pipeLimit)
}

// saved returns what the file says of the settings before.
func (s *coreSetting) saved() (old [2]string) {
	for line := range strings.Lines(s.read(sysctlFile)) {
		for i, prefix := range []string{beforePattern, beforeLimit} {
			if v, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), prefix); ok {
				old[i] = v
			}
		}
	}
	return old
}

// install sets the pattern.
func (s *coreSetting) install(pattern string) error {
	text := s.text(pattern)
	if err := os.WriteFile(s.path(sysctlFile), []byte(text), 0o644); err != nil {
		return err
	}
	return errors.Join(s.write(limitFile, fmt.Sprint(pipeLimit)), s.write(patternFile, pattern))
}

func (s *coreSetting) write(name, value string) error {
	f, err := os.OpenFile(s.path(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value + "\n")
	return errors.Join(err, f.Close())
}

// uninstall puts back what was there before.
func (s *coreSetting) uninstall() error {
	old := s.saved()
	if old[0] == "" {
		return fmt.Errorf("%s is not there, or does not say what was set before: %w", s.path(sysctlFile), fs.ErrNotExist)
	}
	err := s.write(patternFile, old[0])
	if old[1] != "" {
		err = errors.Join(err, s.write(limitFile, old[1]))
	}
	if err != nil {
		return err
	}
	return os.Remove(s.path(sysctlFile))
}

// installCoreHandler does what --install, --uninstall and --print ask for.
func installCoreHandler(c *cobra.Command, f handlerFlags) error {
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe)
	}
	if err != nil {
		return err
	}
	s := &coreSetting{root: "/"}
	for _, limit := range []string{f.maxCore, f.maxUse} {
		if _, err := parseSize(limit); err != nil {
			return usageError{withHint(err, exitUsage, "--max-core and --max-use take a number of bytes, or of units: 512M, 2G")}
		}
	}
	p, err := pattern(exe, &f, c)
	if err != nil {
		return usageError{withHint(err, exitUsage, "put vplayd at a short path, as /usr/bin/vplayd, and choose a short --dir")}
	}
	switch f.action {
	case actPrint:
		_, err = fmt.Fprint(c.OutOrStdout(), s.text(p))
		return err
	case actUninstall:
		err = s.uninstall()
	default:
		err = s.install(p)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return withHint(err, exitMachine, "be root, outside of a container")
	case err != nil:
		return withHint(err, exitMachine, "it needs Linux with /proc and /etc/sysctl.d; vplayd core-handler --print shows what it would write")
	}
	fmt.Fprintf(stderr, "vplayd: core_pattern is: %s\n", s.read(patternFile))
	return nil
}
