package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"reprise/internal/config"
	"reprise/internal/term"
)

// inLetters is a name for a project made of a directory's, whose letters have marks or are
// others than a name may have: größe is grosse, café is cafe. Where all are plain, or none is,
// it is "", for the usual way.
func inLetters(base string) string {
	plain := strings.NewReplacer("ß", "ss", "ẞ", "ss", "æ", "ae", "Æ", "ae", "œ", "oe", "Œ", "oe", "ø", "o", "Ø", "o", "đ", "d", "Đ", "d", "ð", "d", "Ð", "d", "þ", "th", "Þ", "th", "ł", "l", "Ł", "l", "ı", "i").Replace(base)
	plain = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(plain))
	if plain == base {
		return ""
	}
	return config.NameFrom(plain)
}

// askFirstName asks for a name where the directory's own gives none.
func askFirstName(ctx context.Context, app *App, root string) (*config.Project, error) {
	fmt.Fprint(app.Out, wrapLine(term.SafeLine(fmt.Sprintf("No name for a project can be made of the directory's name %s.", filepath.Base(root))), app.Columns))
	for {
		app.prompt("A name for this one, such as shop:")
		line, err := app.ask(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if line == "" {
			return nil, exitWith(ExitConflict, errors.New("not made: no name was given"))
		}
		p, perr := config.Prospect(root, line)
		if perr == nil {
			return p, nil
		}
		fmt.Fprint(app.Out, wrapLine(term.SafeLine(strings.TrimPrefix(perr.Error(), "make project: ")), app.Columns))
		if err != nil { // there is no next line
			return nil, exitWith(ExitConflict, errors.New("not made: no name was given"))
		}
	}
}
