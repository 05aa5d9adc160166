package markdown

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// library renders with a library what is rendered here, by the same rules: no HTML, links
// that lead somewhere or nowhere, images as links. It is linked into tests alone, for it
// compiles expressions when a program starts.
var library = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100), util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300), util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500), util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700), util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000)),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100), util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300), util.Prioritized(parser.NewEmphasisParser(), 500)),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		parser.WithASTTransformers(util.Prioritized(levels{}, 500)))),
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough, extension.TaskList),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(ours{}, 100))),
)

type levels struct{}

func (levels) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var r page
	_ = ast.Walk(doc, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && in {
			h.Level = r.level(h.Level)
		}
		return ast.WalkContinue, nil
	})
}

// ours are the library's nodes as they are written here.
type ours struct{}

func (ours) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	tag := func(before, after string) func(util.BufWriter, []byte, bool) {
		return func(w util.BufWriter, dest []byte, in bool) {
			if in {
				_, _ = w.WriteString(opening(written(dest)) + before)
			} else {
				_, _ = w.WriteString(after + closing(written(dest)))
			}
		}
	}
	link, image := tag("", ""), tag("[image: ", "]")
	r.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
		link(w, n.(*ast.Link).Destination, in)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
		image(w, n.(*ast.Image).Destination, in)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindAutoLink, func(w util.BufWriter, src []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
		if l := n.(*ast.AutoLink); in {
			dest := string(l.URL(src))
			if l.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(dest), "mailto:") {
				dest = "mailto:" + dest
			}
			_, _ = w.WriteString(opening(dest) + escape(string(l.Label(src))) + closing(dest))
		}
		return ast.WalkContinue, nil
	})
	code := func(w util.BufWriter, src []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
		if !in {
			_, _ = w.WriteString("</code></pre>\n")
			return ast.WalkContinue, nil
		}
		_, _ = w.WriteString(`<pre tabindex="0"><code>`)
		for i := range n.Lines().Len() {
			at := n.Lines().At(i)
			ghtml.DefaultWriter.RawWrite(w, at.Value(src))
		}
		return ast.WalkContinue, nil
	}
	r.Register(ast.KindFencedCodeBlock, code)
	r.Register(ast.KindCodeBlock, code)
}

var align = regexp.MustCompile(`(<t[hd]) align="(left|center|right)"`)

func byLibrary(t testing.TB, src string) string {
	var b bytes.Buffer
	if err := library.Convert([]byte(src), &b); err != nil {
		t.Fatal(err)
	}
	return align.ReplaceAllStringFunc(b.String(), func(s string) string {
		m := align.FindStringSubmatch(s)
		if m[2] == "right" {
			return m[1] + ` class="n"`
		}
		return m[1]
	})
}

// written is where a link leads, without the backslashes and names that stand for characters.
func written(dest []byte) string {
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(dest))))
}

// TestDocumentsAsTheLibrary: the documents of this project look as that library shows them.
func TestDocumentsAsTheLibrary(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		got, want := strings.SplitAfter(string(HTML(string(src))), "\n"), strings.SplitAfter(byLibrary(t, string(src)), "\n")
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("%s is shown with\n%q, by the library with\n%q", path, got[i], want[i])
				break
			}
		}
		return nil
	})
	if err != nil || seen < 50 {
		t.Fatalf("%d documents, %v", seen, err)
	}
}

// An item of a list without text, a line of = below a table, and parentheses without their
// ends in an address are read differently from program to program.
var unsettled = regexp.MustCompile(`\]\(\S*\(|(?m)^[ >\t]*(([-+*]|\d[.)])[ \t]*)+$|\|-\|[^=]*===`)

// TestAsTheLibrary: so are texts in which everything is beside everything.
func TestAsTheLibrary(t *testing.T) {
	parts := []string{"*", "**", "_", "__", "`", "``", "[", "]", "](", "(", ")", "![", "a", "b", "c", " ", "  ", "\n", "\n", "\n\n", "- ", "+ ", "1. ", "2) ", "> ",
		"    ", "```\n", "\n~~~\n", "\n\n| a | b |\n|-|-:|\n", "\n| a |\n", "<https://a.b>", "<a@b.c>", "<", "&amp;", "&", "&#x41;", "\\", "a\tb", "\n\tc", "# ", "===\n", "---\n", "~~c~~",
		"\n\n[a]: /x 'y'\n\n", "[a]", "[b][a]", "https://x.y", "](https://x.y/z \"t\")", "- [x] ", "* ", "word ", "é", "“", "  \n", "\\\n"}
	r := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 20_000 {
		var b strings.Builder
		for range 2 + r.IntN(12) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		src := b.String() + "\n\nend\n"
		if unsettled.MatchString(src) {
			continue
		}
		compared++
		want := byLibrary(t, src)
		if strings.Contains(want, "[image: ") && strings.Count(want, "<a ")+strings.Count(want, "<span ") > 1 {
			continue // a link within a link is one there
		}
		if got := string(HTML(src)); got != want {
			t.Errorf("%q became\n%q, by the library\n%q", src, got, want)
		}
	}
	if compared < 10_000 {
		t.Errorf("only %d texts were compared", compared)
	}
}
