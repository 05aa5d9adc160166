package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"reprise/internal/term"
)

// upgradeView is what `reprise upgrade --check` found, for programs.
type upgradeView struct {
	V       int    `json:"v"` // 1
	Have    string `json:"version"`
	From    string `json:"from"` // of an address without what may be a secret in it
	Offered string `json:"offered"`
	// Newer says that what is offered is newer; nil where this build has no number.
	Newer *bool `json:"newer"`
}

// maxRelease is the most that is read of what describes a release, in bytes.
const maxRelease = 1 << 20

func newUpgradeCmd(app *App) *cobra.Command {
	var check, asJSON bool
	cmd := &cobra.Command{
		Use: "upgrade --check FROM", Args: cobra.ExactArgs(1), Short: "Say whether a release that you name is newer than this program",
		Long: `Read what describes a release, and say whether it is newer than this program. FROM is
a file, or an address (http or https), that you name: metadata.json, checksums.txt or
server.json of a release. reprise has no address of its own to ask, and installs nothing: an update is
what the first installation was.

A newer program reads every format that an older one wrote. An older one that meets a
newer format says so and changes nothing.

Ends with 0 where nothing newer is offered, and with 4 where something is. Of a build
from the source, which has no number, it cannot be told: it says so, and ends with 0.`,
		Example: `  echo '{"project_name":"reprise","version":"0.1.0"}' > metadata.json
  reprise upgrade --check metadata.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !check {
				return usagef("pass --check: reprise only looks, it does not replace itself")
			}
			text, shown, err := readRelease(cmd.Context(), app, args[0])
			if err != nil {
				return err
			}
			offered, err := releaseVersion(text)
			if err != nil {
				return fmt.Errorf("%s: %w; give metadata.json, checksums.txt or server.json of a release of reprise's", term.SafeLine(shown), err)
			}
			v := upgradeView{V: 1, Have: Version(), From: shown, Offered: offered}
			if aVersion().MatchString(v.Have) {
				newer := semver.Compare("v"+strings.TrimPrefix(v.Have, "v"), offered) < 0
				v.Newer = &newer
			}
			if asJSON {
				if err := printJSON(app.Out, v); err != nil {
					return err
				}
			} else {
				fmt.Fprintln(app.Out, upgradeText(v))
			}
			if v.Newer != nil && *v.Newer {
				return &ExitError{Code: ExitConflict}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only look")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func upgradeText(v upgradeView) string {
	switch {
	case v.Newer == nil:
		return fmt.Sprintf("This is %s, a build without a number; %s is offered, and whether that is newer cannot be told.", v.Have, v.Offered)
	case *v.Newer:
		return fmt.Sprintf("%s is newer than this, %s.", v.Offered, v.Have)
	}
	return fmt.Sprintf("This is %s; %s is not newer.", v.Have, v.Offered)
}

// releaseTime is how long a release is waited for: at an address, and where a file is a pipe
// or a terminal that nothing comes from.
var releaseTime = 20 * time.Second

// readRelease reads a file, or what is at an address; shown is how it is named to people.
func readRelease(ctx context.Context, app *App, from string) (data []byte, shown string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, releaseTime, fmt.Errorf("it did not come to its end in %s", releaseTime))
	defer cancel()
	scheme, _, isAddress := strings.Cut(from, "://")
	isAddress = isAddress && aScheme().MatchString(scheme)
	if !isAddress {
		data, err := readNamed(ctx, app.abs(from), maxRelease)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, from, exitWith(ExitNotFound, err)
		case errors.Is(err, context.DeadlineExceeded):
			err = fmt.Errorf("%s: %w; is it a pipe or a terminal, that nobody writes to?", term.SafeLine(from), context.Cause(ctx))
		}
		if err != nil {
			return nil, from, fmt.Errorf("read the release: %w", err)
		}
		return data, from, nil
	}
	u, err := url.Parse(from)
	if err != nil {
		var bad *url.Error // its text has the whole address
		if errors.As(err, &bad) {
			err = bad.Err
		}
		return nil, "", usagef("that is no address: %v", err)
	}
	shown = shownAddress(u)
	switch {
	case strings.EqualFold(scheme, "file"):
		return nil, shown, usagef("%s: give the path of the file, without %s://", shown, scheme)
	case u.Scheme != "http" && u.Scheme != "https": // url.Parse writes them in small letters
		return nil, shown, usagef("%s: an address begins with http:// or https://; for anything else fetch the file, and give its path", shown)
	}
	data, err = fetchRelease(ctx, u)
	if err != nil {
		return nil, shown, fmt.Errorf("ask for the release at %s: %w", shown, err)
	}
	return data, shown, nil
}

// shownAddress is an address without a name and password in it, and without what is asked
// for behind it: signed links have their signature there.
func shownAddress(u *url.URL) string {
	c := *u
	if c.User != nil {
		c.User = url.User("***")
	}
	if c.RawQuery != "" {
		c.RawQuery = "…"
	}
	c.Fragment = ""
	return term.SafeLine(strings.Replace(c.String(), "%2A%2A%2A@", "***@", 1))
}

// fetchRelease reads what is at an address. Its errors do not name it.
func fetchRelease(ctx context.Context, u *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(req)
	var of *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, context.Cause(ctx)
	case errors.As(err, &of):
		return nil, of.Err
	case err != nil:
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", answer.Status)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxRelease+1))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, context.Cause(ctx)
	case err == nil && len(data) > maxRelease:
		return nil, fmt.Errorf("it is longer than %d bytes, and describes no release", maxRelease)
	}
	return data, err
}

var (
	aScheme  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`) })
	aVersion = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^v?(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	})
	// As sha256sum writes its lines, in either mode and on any system.
	anArchive = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[0-9a-fA-F]{64} [ *]reprise_(\S+?)_(?:linux|darwin|windows)_`)
	})
)

// releaseVersion is the version that a file of a release names, and of several the newest.
func releaseVersion(data []byte) (string, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return "", errors.New("it is no UTF-8 text")
	}
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '{' {
		return jsonVersion(text)
	}
	newest := ""
	for _, m := range anArchive().FindAllSubmatch(data, -1) {
		if v := numbered(string(m[1])); v != "" && (newest == "" || semver.Compare(v, newest) > 0) {
			newest = v
		}
	}
	if newest == "" {
		return "", errors.New("no version is in it")
	}
	return newest, nil
}

// numbered is a version as it is compared; "" where it is none.
func numbered(version string) string {
	v := "v" + strings.TrimPrefix(version, "v")
	if !aVersion().MatchString(v) || !semver.IsValid(v) {
		return ""
	}
	return v
}

// jsonVersion is the version of metadata.json or server.json. Other programs' files have
// a version, too: it must say that it is reprise's.
func jsonVersion(text []byte) (string, error) {
	var doc struct {
		Project string `json:"project_name"` // metadata.json
		Name    string `json:"name"`         // server.json: a domain, a slash, and a name that whoever publishes has chosen
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return "", fmt.Errorf("it is JSON that is damaged or cut off (%w)", err)
	}
	const own = "reprise"
	if doc.Project != own && doc.Title != own && doc.Name[strings.LastIndexByte(doc.Name, '/')+1:] != own {
		return "", errors.New("it does not say that it is of reprise")
	}
	v := numbered(doc.Version)
	if v == "" {
		return "", errors.New("no version is in it")
	}
	return v, nil
}
