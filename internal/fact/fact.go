// Package fact finds plain statements in text (the port of X is 5432, we use
// pnpm, "max_connections: 200") as subject, attribute and value, so that two
// texts that say different things about the same subject can be told. It is
// pure: no files, no locks, no clock.
package fact

// Fact is one statement.
type Fact struct {
	Subject   string `json:"subject"`   // normalised: lower case, articles dropped, words stemmed
	Attribute string `json:"attribute"` // port, version, owner, is, …; normalised
	Value     string `json:"value"`     // as it was written
}

// Key is what two statements about the same thing have in common.
func (f Fact) Key() string { return f.Subject + "|" + f.Attribute }
