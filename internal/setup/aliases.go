package setup

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"reprise/internal/shellword"
)

const (
	aliasBegin = "# reprise:begin (managed by `reprise refresh --install-aliases`)"
	aliasEnd   = "# reprise:end"
)

// ShellFile is the file in which a person's shell reads its aliases, by $SHELL: of
// bash, zsh and fish.
func (w Where) ShellFile() (file string, err error) {
	home, err := w.Env.Home()
	if err != nil {
		return "", err
	}
	shell := filepath.Base(w.Env.Get("SHELL"))
	switch {
	case w.Env.GOOS == "windows" || shell == ".":
		return "", fmt.Errorf("install aliases: there is no SHELL in the environment; put `alias claude-refresh='reprise refresh'` into your shell's file yourself")
	case shell == "bash":
		return filepath.Join(home, ".bashrc"), nil
	case shell == "zsh":
		dir := home
		if d := w.dirVar("ZDOTDIR"); d != "" {
			dir = d
		}
		return filepath.Join(dir, ".zshrc"), nil
	case shell == "fish":
		dir := filepath.Join(home, ".config")
		if d := w.dirVar("XDG_CONFIG_HOME"); d != "" {
			dir = d
		}
		return filepath.Join(dir, "fish", "conf.d", "reprise.fish"), nil
	}
	return "", fmt.Errorf("install aliases: %s is not a shell whose files are known (bash, zsh, fish); put `alias claude-refresh='reprise refresh'` into its file yourself", shell)
}

// Aliases puts the aliases claude-refresh and claude-refresh-force into the file of a
// person's shell, or takes them out: where nothing else was changed since, the file is
// then what it was before.
func (s Setup) Aliases(ctx context.Context, program string, remove, dry bool) (Change, error) {
	file, err := s.ShellFile()
	if err != nil {
		return Change{}, err
	}
	body := aliasBegin + "\n" +
		"alias claude-refresh=" + shellword.Quote(shellword.Quote(program)+" refresh") + "\n" +
		"alias claude-refresh-force=" + shellword.Quote(shellword.Quote(program)+" refresh --force") + "\n" +
		aliasEnd + "\n"
	const key = "aliases"
	ch, err := s.changer(Target{Scope: User}, dry).apply(ctx, file, 0o644, func(in input) ([]byte, bool, error) {
		if remove {
			if !in.exists {
				return nil, true, nil
			}
			if old, gone, ok := in.note.restore(in.raw, key); ok {
				return old, gone, nil
			}
		}
		from, to, ok, err := marked(in.text, aliasBegin, aliasEnd)
		if err != nil {
			return nil, false, err
		}
		switch {
		case remove && !ok:
			return in.text, false, nil
		case remove:
			return splice(in.text, from, to, ""), false, nil
		case ok:
			return splice(in.text, from, to, body), false, nil
		}
		gap := ""
		if len(in.text) > 0 && !bytes.HasSuffix(in.text, []byte("\n")) {
			gap = "\n"
		}
		return append(bytes.Clone(in.text), gap+body...), false, nil
	}, func(n *note) {
		if remove {
			delete(n.Entries, key)
		} else {
			n.Entries[key] = made{}
		}
	})
	ch.What = "aliases"
	return ch, err
}

// marked finds the part of a text between two lines of marks, these included.
func marked(text []byte, begin, end string) (from, to int, ok bool, err error) {
	begins, ends := strings.Count(string(text), begin), strings.Count(string(text), end)
	if begins == 0 && ends == 0 {
		return 0, 0, false, nil
	}
	from = bytes.Index(text, []byte(begin))
	to = bytes.Index(text, []byte(end))
	if begins != 1 || ends != 1 || to < from {
		return 0, 0, false, fmt.Errorf("there are %d begin and %d end marks of reprise's part; leave one pair in order, or none", begins, ends)
	}
	return from, lineEnd(text, to), true, nil
}
