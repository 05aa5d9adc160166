//go:build ignore

// Command gen turns gitleaks' published rule file into rules.json. It is run by
// hand when a newer rule file is wanted, outside of any build:
//
//	go mod download -json github.com/zricethezav/gitleaks/v8@v8.30.1   # in an empty module
//	go run ./internal/redact/gen/main.go v8.30.1 <Dir>/config/gitleaks.toml > internal/redact/rules.json
//
// It fails when a rule has a field that it does not know, so that a new kind of
// condition is not dropped unseen.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

type allowlist struct {
	Description string   `toml:"description" json:"-"`
	Condition   string   `toml:"condition" json:"condition,omitempty"`
	Paths       []string `toml:"paths" json:"paths,omitempty"`
	RegexTarget string   `toml:"regexTarget" json:"target,omitempty"`
	Regexes     []string `toml:"regexes" json:"regexes,omitempty"`
	StopWords   []string `toml:"stopwords" json:"stopwords,omitempty"`
}

type rule struct {
	ID          string      `toml:"id" json:"id"`
	Description string      `toml:"description" json:"description"`
	Regex       string      `toml:"regex" json:"regex,omitempty"`
	Path        string      `toml:"path" json:"path,omitempty"`
	SecretGroup int         `toml:"secretGroup" json:"secretGroup,omitempty"`
	Entropy     float64     `toml:"entropy" json:"entropy,omitempty"`
	Keywords    []string    `toml:"keywords" json:"keywords,omitempty"`
	Allowlists  []allowlist `toml:"allowlists" json:"allow,omitempty"`
}

type file struct {
	Title      string    `toml:"title" json:"-"`
	MinVersion string    `toml:"minVersion" json:"-"`
	Source     string    `toml:"-" json:"source"`
	Licence    string    `toml:"-" json:"licence"`
	Allowlist  allowlist `toml:"allowlist" json:"allow"`
	Rules      []rule    `toml:"rules" json:"rules"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: gen VERSION gitleaks.toml > rules.json")
	}
	in, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer in.Close()
	var f file
	if err := toml.NewDecoder(in).DisallowUnknownFields().Decode(&f); err != nil {
		return fmt.Errorf("read rules: %w", err)
	}
	f.Source = "github.com/zricethezav/gitleaks/v8@" + args[0] + "/config/gitleaks.toml"
	f.Licence = "MIT, see LICENSE.gitleaks"
	f.Allowlist.Paths = nil // a text has no path
	if err := correct(f.Rules); err != nil {
		return err
	}
	for _, r := range f.Rules {
		if _, err := regexp.Compile(r.Regex); err != nil {
			return fmt.Errorf("rule %s: %w", r.ID, err)
		}
	}
	return write(os.Stdout, f)
}

// correct changes what lets secrets through. The rule for Vault's tokens leaves out old ones
// of letters alone, which are words with a dot rather than tokens; without an anchor that
// also leaves out each new token ("hvs." and 90 characters or more) that begins with 24
// letters, which one of seventy does.
func correct(rules []rule) error {
	const old = `s\.[A-Za-z]{24}`
	for _, r := range rules {
		if r.ID != "vault-service-token" {
			continue
		}
		for _, a := range r.Allowlists {
			for i, x := range a.Regexes {
				if x == old {
					a.Regexes[i] = "^" + old + "$"
					return nil
				}
			}
		}
	}
	return fmt.Errorf("rule vault-service-token does not leave out %s any more: see whether it still has to be corrected", old)
}

// write puts each rule on a line of its own, so that a diff shows which changed.
func write(w io.Writer, f file) error {
	rules := f.Rules
	f.Rules = nil
	line := func(v any) (string, error) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		err := enc.Encode(v)
		return strings.TrimSuffix(b.String(), "\n"), err
	}
	head, err := line(f)
	if err != nil {
		return err
	}
	head, ok := strings.CutSuffix(head, "null}")
	if !ok {
		return fmt.Errorf("the rules are not the last field")
	}
	fmt.Fprintln(w, head+"[")
	for i, r := range rules {
		s, err := line(r)
		if err != nil {
			return err
		}
		if i < len(rules)-1 {
			s += ","
		}
		fmt.Fprintln(w, s)
	}
	_, err = fmt.Fprintln(w, "]}")
	return err
}
