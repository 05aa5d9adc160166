// Command eval measures how well recall finds what a set of questions asks for:
//
//	go run ./script/eval FILE... [--k 5,10,20] [--split held] [--ablate] [--json]
//
// It builds an index of the set's documents with the engine that reprise uses,
// asks every question, and prints figures by category. docs/recall.md describes
// the format and the figures. It writes only below a temporary directory, which
// it removes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

// options of a measurement.
type options struct {
	ks      []int
	split   string
	all     bool
	ablate  bool
	json    bool
	misses  bool
	lenient bool
	pairs   bool
	policy  string
	embed   embedOptions
}

func command(ctx context.Context, args []string, out, errOut io.Writer) error {
	var o options
	ks := ""
	f := flag.NewFlagSet("eval", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.StringVar(&ks, "k", "5,10,20", "ranks at which recall is measured")
	f.StringVar(&o.split, "split", "", "only questions of this split")
	f.BoolVar(&o.all, "all-projects", false, "search all projects for each question, not only its own")
	f.BoolVar(&o.ablate, "ablate", false, "measure again without each signal")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVar(&o.misses, "misses", false, "list the questions whose evidence is not all in the first 10")
	f.BoolVar(&o.lenient, "lenient", false, "count evidence that cannot be found as missed, instead of stopping")
	f.BoolVar(&o.pairs, "pairs", false, "ask each two single questions of a project as one, joined by and")
	f.StringVar(&o.policy, "policy", "", "file with a policy to rank by, as JSON")
	f.StringVar(&o.embed.url, "embeddings", "", "base URL of an OpenAI-compatible endpoint for embeddings")
	f.StringVar(&o.embed.model, "model", "", "its model")
	f.StringVar(&o.embed.keyVar, "key-var", "", "name of the environment variable with its key")
	files, err := interleaved(f, args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("which file? usage: go run ./script/eval FILE... (the format is in docs/recall.md)")
	}
	for s := range strings.SplitSeq(ks, ",") {
		k, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || k < 1 || k > 1000 {
			return fmt.Errorf("--k %s: numbers from 1 to 1000 with commas between", ks)
		}
		o.ks = append(o.ks, k)
	}
	set, err := readSet(files, o.lenient)
	if err != nil {
		return err
	}
	if err := set.choose(o.split); err != nil {
		return err
	}
	if o.pairs {
		set.pairs()
	}
	for i, n := range set.notes {
		if i == maxNotes {
			fmt.Fprintf(errOut, "eval: and %d more of that kind\n", len(set.notes)-i)
			break
		}
		fmt.Fprintln(errOut, "eval:", n)
	}
	rep, err := measure(ctx, set, o, errOut)
	if err != nil {
		return err
	}
	if o.json {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(rep)
	}
	rep.print(out, o)
	return nil
}

// interleaved parses flags before, between and after the files.
func interleaved(f *flag.FlagSet, args []string) (files []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		args = f.Args()
		if len(args) == 0 {
			return files, nil
		}
		files, args = append(files, args[0]), args[1:]
	}
}
