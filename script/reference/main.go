// Command reference writes what can be read about the command line without running
// it, from the command line itself:
//
//	go run ./script/reference [-man DIR] [-completions DIR]
//
// Without flags it brings docs/commands up to date: a page for each command of
// `reprise`, with the help of that command and of all below it. A test says when they
// are not. With -man it writes manual pages (section 1) below DIR, with -completions
// what shells read to complete commands: both go into packages.
//
// The date of a manual page is SOURCE_DATE_EPOCH (seconds since 1970, as
// reproducible-builds.org has it), so that two builds of one commit are equal. It takes
// no lock.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
)

func main() {
	man := flag.String("man", "", "write manual pages below `DIR`")
	completions := flag.String("completions", "", "write completions for shells below `DIR`")
	flag.Parse()
	if err := write(*man, *completions, os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(man, completions, epoch string) error {
	if man == "" && completions == "" {
		pages, err := markdown(cli.Tree())
		if err != nil {
			return err
		}
		return replace(filepath.Join("docs", "commands"), pages)
	}
	if man != "" {
		date, err := sourceDate(epoch)
		if err != nil {
			return err
		}
		pages, err := manual(cli.Tree(), date)
		if err != nil {
			return err
		}
		if err := replace(man, pages); err != nil {
			return err
		}
	}
	if completions != "" {
		files, err := shells(cli.Tree())
		if err != nil {
			return err
		}
		return replace(completions, files)
	}
	return nil
}

// replace makes dir hold these files and no others of their kind.
func replace(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range there {
		if _, ok := files[e.Name()]; !ok {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// visible are the commands below cmd that its help names.
func visible(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() })
}

// markdown is a page for each command below root, and one that lists them.
func markdown(root *cobra.Command) (map[string][]byte, error) {
	pages := map[string][]byte{}
	var list strings.Builder
	list.WriteString("# Commands\n\nWhat `reprise COMMAND --help` says, made by `go run ./script/reference`.\n\n")
	list.WriteString("| command | what it does |\n|---|---|\n")
	for _, cmd := range visible(root) {
		fmt.Fprintf(&list, "| [`%s`](%s.md) | %s |\n", cmd.CommandPath(), cmd.Name(), strings.ReplaceAll(cmd.Short, "|", `\|`))
		var page strings.Builder
		if err := section(&page, cmd, "#"); err != nil {
			return nil, err
		}
		pages[cmd.Name()+".md"] = []byte(page.String())
	}
	pages["README.md"] = []byte(list.String())
	return pages, nil
}

func section(w *strings.Builder, cmd *cobra.Command, mark string) error {
	text, err := cli.HelpText(cmd)
	if err != nil {
		return fmt.Errorf("help of %s: %w", cmd.CommandPath(), err)
	}
	fmt.Fprintf(w, "%s %s\n\n```text\n%s\n```\n", mark, cmd.CommandPath(), strings.TrimRight(text, "\n"))
	for _, sub := range visible(cmd) {
		w.WriteString("\n")
		if err := section(w, sub, "##"); err != nil {
			return err
		}
	}
	return nil
}

// sourceDate is the moment that SOURCE_DATE_EPOCH names.
func sourceDate(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Time{}, errors.New("manual pages carry a date: give it as SOURCE_DATE_EPOCH, such as $(git log -1 --format=%ct)")
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: give whole seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// shells are the files that shells read for completion, by the names under which
// packages install them.
func shells(root *cobra.Command) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, make := range map[string]func(*bytes.Buffer) error{
		"reprise.bash": func(b *bytes.Buffer) error {
			script, err := cli.BashScript(root, true)
			b.WriteString(script)
			return err
		},
		"_reprise":     func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"reprise.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		if err := make(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = b.Bytes()
	}
	return files, nil
}

// names are the files' names, in order.
func names(files map[string][]byte) []string { return slices.Sorted(maps.Keys(files)) }
