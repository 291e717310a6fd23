package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Help reads like a man page: name, synopsis, description, options, examples.

// newHelp is the help verb; unlike cobra's it refuses what it does not know.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "explain a command",
		Long:  "Help explains vplayd, or one of its commands, with examples.",
		Args:  cobra.MaximumNArgs(1),
		ValidArgsFunction: func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, sub := range c.Root().Commands() {
				names = append(names, sub.Name())
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usageError{withHint(fmt.Errorf("there is no command %q", args[0]), exitUsage, "vplayd help lists the commands")}
			}
			of.InitDefaultHelpFlag()
			printHelp(of, nil)
			return nil
		},
	}
}

// printHelp writes the page of c to its output.
func printHelp(c *cobra.Command, _ []string) {
	out := c.OutOrStdout()
	section(out, "NAME", c.CommandPath()+" - "+c.Short)
	use := c.UseLine()
	if c.HasAvailableSubCommands() && !c.Runnable() || !c.HasParent() {
		use = c.CommandPath() + " COMMAND [flags] [arguments]"
	}
	section(out, "SYNOPSIS", use)
	section(out, "DESCRIPTION", c.Long)
	if c.HasAvailableSubCommands() {
		var b strings.Builder
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "%-11s %s\n", sub.Name(), sub.Short)
			}
		}
		section(out, "COMMANDS", b.String())
	}
	section(out, "OPTIONS", unindent(c.LocalNonPersistentFlags().FlagUsages()))
	if c.HasParent() {
		section(out, "OPTIONS OF ALL COMMANDS", unindent(c.InheritedFlags().FlagUsages()))
	} else {
		section(out, "OPTIONS OF ALL COMMANDS", unindent(c.PersistentFlags().FlagUsages()))
	}
	section(out, "EXAMPLES", unindent(c.Example))
	if !c.HasParent() {
		section(out, "SEE ALSO", "vplayd help COMMAND explains one of them, with examples.")
	}
}

// section writes a heading and its text, indented; nothing when there is no text.
func section(out io.Writer, heading, text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	fmt.Fprintln(out, heading)
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			fmt.Fprintln(out)
			continue
		}
		fmt.Fprintln(out, "    "+line)
	}
	if heading != "SEE ALSO" {
		fmt.Fprintln(out)
	}
}

// unindent removes two spaces from each line.
func unindent(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}
