package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/loop"
	"reprise/internal/loop/tell"
	"reprise/internal/proc"
	"reprise/internal/queue"
)

// notifyTime bounds one way of telling a person.
const notifyTime = 15 * time.Second

// notifier tells a person what a loop needs, as the user's settings say.
func (a *App) notifier(set config.Loop) *tell.Notifier {
	n := &tell.Notifier{
		Desktop: set.NotifyDesktop == "on", Command: set.NotifyCommand, Webhook: set.NotifyWebhook, Mail: set.NotifyMail, PerHour: set.NotifyPerHour,
		GOOS: a.Env.GOOS, Env: a.Environ, Now: a.Env.Now, LookPath: a.lookPath, Run: runWithInput, Post: post,
	}
	if set.NotifySecretVar != "" {
		if n.Secret = a.Env.Get(set.NotifySecretVar); n.Secret == "" {
			n.Unsigned = fmt.Sprintf("it was sent without a signature, for loop.notify_secret_var names %s, and that variable is not set here", firstLine(set.NotifySecretVar, 80))
		}
	}
	return n
}

func newLoopNotifyCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "notify", Args: cobra.NoArgs, Short: "Send a notice as a trial, in each way in which a loop tells a person",
		Long: `Send a notice as a trial, in each way in which a loop tells a person: loop.notify_desktop,
loop.notify_command, loop.notify_webhook and loop.notify_mail of the settings. Ends with 1
where one of them fails, and says which and why.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, _, err := app.loopDir()
			if err != nil {
				return err
			}
			n := app.notifier(home.Settings.Loop)
			if !n.Any() {
				return exitWith(ExitNotFound, errors.New("nobody is told: set one of loop.notify_desktop, loop.notify_command, loop.notify_webhook and loop.notify_mail (`reprise config set`), and loop.notify_per_hour above 0"))
			}
			err = n.Send(cmd.Context(), tell.Notice{Kind: "trial", Text: "this is a trial, and nothing waits for you", Project: home.Project.Name, Loop: "loop-trial", At: app.Now().UTC()})
			if err != nil {
				return fmt.Errorf("the notice could not be sent: %w", err)
			}
			fmt.Fprintln(app.Out, "The notice is sent.")
			return nil
		},
	}
}

func (a *App) lookPath(name string) (string, error) {
	return proc.LookPath(name, a.Env.Vars, a.Env.GOOS)
}

// runWithInput runs a short program and fails as it does.
func runWithInput(ctx context.Context, c proc.Cmd, input string) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	if input == "" {
		out, err := proc.Run(ctx, c, 4<<10)
		if ctx.Err() != nil {
			return tooLong(c)
		}
		return exitError(c, out.Exit, string(out.Stderr), err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	c.Stdin = r
	p, err := proc.Start(c)
	r.Close()
	if err != nil {
		w.Close()
		return err
	}
	go func() {
		_, _ = io.WriteString(w, input) // a program that reads no further says so by its exit
		w.Close()
	}()
	select {
	case <-p.Done():
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = proc.StopTree(stop, p.ID(), "", time.Second)
		return tooLong(c)
	}
	exit, err := p.Wait()
	return exitError(c, exit, "", err)
}

func tooLong(c proc.Cmd) error {
	return fmt.Errorf("%s had not ended after %s, and was stopped: a notice must be sent off by then", filepath.Base(c.Path), notifyTime)
}

func exitError(c proc.Cmd, exit proc.Exit, stderr string, err error) error {
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("%s ended with exit code %d %s", filepath.Base(c.Path), exit.Code, firstLine(stderr, 200))
	}
	return err
}

// post posts to a webhook. Answers other than 2xx are errors; redirects are not followed,
// for a signed body is for one receiver.
func post(ctx context.Context, url string, header map[string]string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "reprise/"+Version())
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if ctx.Err() != nil {
		return fmt.Errorf("there was no answer within %s", notifyTime)
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // the connection is of no more use
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("it answered %s", res.Status)
	}
	return nil
}

// pullRequest makes pull requests by the gh program; nil where that is not there.
func (a *App) pullRequest() func(context.Context, loop.Place, queue.Item) (string, error) {
	gh, err := a.lookPath("gh")
	if err != nil {
		return nil
	}
	return func(ctx context.Context, p loop.Place, item queue.Item) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		out, err := proc.Run(ctx, proc.Cmd{
			Path: gh, Args: []string{"pr", "create", "--head", p.Branch, "--title", item.Title, "--body", item.Body}, Env: a.Environ, Dir: p.Top,
		}, 64<<10)
		if err := exitError(proc.Cmd{Path: gh}, out.Exit, string(out.Stderr), err); err != nil {
			// A loop that died right after it had made one asks for it again.
			there, verr := proc.Run(ctx, proc.Cmd{Path: gh, Args: []string{"pr", "view", p.Branch, "--json", "url", "--jq", ".url"}, Env: a.Environ, Dir: p.Top}, 64<<10)
			if url := strings.TrimSpace(string(there.Stdout)); verr == nil && there.Exit.Code == 0 && strings.HasPrefix(url, "https://") {
				return url, nil
			}
			return "", err
		}
		return strings.TrimSpace(string(out.Stdout)), nil
	}
}
