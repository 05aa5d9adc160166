package cli

import "reprise/internal/term"

// progress is a line on the terminal that says how far long work is; nil, which says
// nothing, where there is none, or where what is printed is for programs. It stands on
// the standard error, so that what is printed stays what it is.
func (a *App) progress(asJSON bool) *term.Progress {
	if asJSON || !a.OutIsTerminal || !a.ErrIsTerminal || a.Env.Get("TERM") == "dumb" {
		return nil
	}
	return term.NewProgress(a.Err, a.Columns, a.Now)
}
