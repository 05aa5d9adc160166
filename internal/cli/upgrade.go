package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"reprise/internal/term"
)

// upgradeView is what `reprise upgrade --check` found, for programs.
type upgradeView struct {
	V       int    `json:"v"` // 1
	Have    string `json:"version"`
	From    string `json:"from"`
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
a file or an address that you name: metadata.json, checksums.txt or server.json of a
release. reprise has no address of its own to ask, and installs nothing: an update is
what the first installation was.

A newer program reads every format that an older one wrote. An older one that meets a
newer format says so and changes nothing.

Ends with 0 where nothing newer is offered, and with 4 where something is. Of a build
from the source, which has no number, it cannot be told: it says so, and ends with 0.`,
		Example: `  echo '{"version":"0.1.0"}' > metadata.json
  reprise upgrade --check metadata.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !check {
				return usagef("pass --check: reprise only looks, it does not replace itself")
			}
			text, err := readRelease(cmd.Context(), app, args[0])
			if err != nil {
				return err
			}
			offered := releaseVersion(text)
			if offered == "" {
				return fmt.Errorf("%s: no version is in it; give metadata.json, checksums.txt or server.json of a release", term.SafeLine(args[0]))
			}
			v := upgradeView{V: 1, Have: Version(), From: args[0], Offered: offered}
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

// readRelease reads a file, or an address that begins with http:// or https://.
func readRelease(ctx context.Context, app *App, from string) ([]byte, error) {
	var r io.ReadCloser
	if strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://") {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
		if err != nil {
			return nil, usagef("%w", err)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, fmt.Errorf("ask for the release: %w", err)
		}
		r = answer.Body
		defer r.Close()
		if answer.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("ask for the release: %s answers %s", term.SafeLine(from), answer.Status)
		}
	} else {
		data, err := readNamed(ctx, app.abs(from), maxRelease)
		if errors.Is(err, os.ErrNotExist) {
			return nil, exitWith(ExitNotFound, err)
		}
		if err != nil {
			return nil, fmt.Errorf("read the release: %w", err)
		}
		return data, nil
	}
	data, err := io.ReadAll(io.LimitReader(r, maxRelease+1))
	if err == nil && len(data) > maxRelease {
		err = fmt.Errorf("it is longer than %d bytes, and describes no release", maxRelease)
	}
	if err != nil {
		return nil, fmt.Errorf("read the release: %w", err)
	}
	return data, nil
}

var (
	aVersion = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^v?(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	})
	anArchive = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[0-9a-f]{64}  reprise_(\S+?)_(?:linux|darwin|windows)_`)
	})
)

// releaseVersion is the version that a file of a release names; "" where it names none.
func releaseVersion(data []byte) string {
	var doc struct {
		Version string `json:"version"`
	}
	if json.Unmarshal(data, &doc) == nil && aVersion().MatchString(doc.Version) {
		return "v" + strings.TrimPrefix(doc.Version, "v")
	}
	if m := anArchive().FindSubmatch(data); m != nil && aVersion().Match(m[1]) {
		return "v" + string(m[1])
	}
	return ""
}
