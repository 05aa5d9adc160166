package markdown

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMarkdown(t *testing.T) {
	for src, want := range map[string]string{
		"# One\n\n## Two":                       "<h3>One</h3>\n<h4>Two</h4>\n",
		"## A\n### B\n## C\n# D\n#### E\n### F": "<h3>A</h3>\n<h4>B</h4>\n<h3>C</h3>\n<h3>D</h3>\n<h4>E</h4>\n<h4>F</h4>\n",
		"[a](https://example.org/x?y=1&z=2)":    `<p><a rel="noopener noreferrer nofollow" href="https://example.org/x?y=1&amp;z=2">a</a></p>` + "\n",
		"[a](JaVaScRiPt:alert(1))":              `<p><span class="nolink" title="JaVaScRiPt:alert(1)">a</span></p>` + "\n",
		"[a](https://user@example.org/)":        `<p><span class="nolink" title="https://user@example.org/">a</span></p>` + "\n",
		"[a](../../etc)":                        `<p><span class="nolink" title="../../etc">a</span></p>` + "\n",
		"<ada@example.org>":                     `<p><a rel="noopener noreferrer nofollow" href="mailto:ada@example.org">ada@example.org</a></p>` + "\n",
		"a <b>c</b>":                            "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n",
		"```html\n<b>\n```":                     "<pre tabindex=\"0\"><code>&lt;b&gt;\n</code></pre>\n",
		"![x](https://example.org/i.png \"t\")": `<p><a rel="noopener noreferrer nofollow" href="https://example.org/i.png">[image: x]</a></p>` + "\n",
		"- [x] done":                            "<ul>\n<li><input checked=\"\" disabled=\"\" type=\"checkbox\"> done</li>\n</ul>\n",
		"- a\n\n  b\n- [ ] c":                   "<ul>\n<li>\n<p>a</p>\n<p>b</p>\n</li>\n<li>\n<p><input disabled=\"\" type=\"checkbox\"> c</p>\n</li>\n</ul>\n",
		"|a|b|\n|-|-:|\n|c":                     "<table>\n<thead>\n<tr>\n<th>a</th>\n<th class=\"n\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>c</td>\n<td></td>\n</tr>\n</tbody>\n</table>\n",
		"<div>\n*a*\n</div>":                    "<p>&lt;div&gt;\n<em>a</em>\n&lt;/div&gt;</p>\n",
		"[![x](https://a.org)](https://b.org)":  `<p><a rel="noopener noreferrer nofollow" href="https://b.org">[image: x]</a></p>` + "\n",
		"[a](/b\\*&ouml;)":                      `<p><span class="nolink" title="/b*ö">a</span></p>` + "\n",
		"~~a~~ 5~6~7":                           "<p><del>a</del> 5<del>6</del>7</p>\n",
		"# T {#main .x onclick=y}":              "<h3>T {#main .x onclick=y}</h3>\n",
	} {
		if got := string(HTML(src)); got != want {
			t.Errorf("%q became\n%q, want\n%q", src, got, want)
		}
	}
	long := strings.Repeat("<b>", most)
	if got := string(HTML(long)); strings.Contains(got, "<b>") || !strings.HasPrefix(got, "<pre>") {
		t.Error("a text that is too long to be rendered is not shown as it is")
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("<script>document.title='taken in'</script>\n[x](javascript:alert(1))\n\n```\n<img src=x onerror=alert(1)>\n```")
	f.Add("[a][b]\n\n[b]: javascript:x 'onload=\"'")
	f.Add("<!--\n<script>\n-->")
	f.Fuzz(func(t *testing.T, src string) {
		got := string(HTML(src))
		// Of tags there are only those that are made here.
		for _, m := range regexp.MustCompile(`<[a-zA-Z!/?][^>]*`).FindAllString(got, -1) {
			name := regexp.MustCompile(`^</?([a-z0-9]+)`).FindStringSubmatch(m)
			if name == nil || !strings.Contains(" h3 h4 h5 h6 p pre code a span ul ol li em strong del table thead tbody tr th td blockquote hr br input ", " "+name[1]+" ") {
				t.Fatalf("%q became a page with %q", src, m)
			}
		}
	})
}

// TestTextsOfOneThing: a text that is nothing but one thing again and again, as long as is
// rendered, is no more work than another, and comes to no more than it is worth. One whose
// work grew with the square of its length took half a minute and more by itself.
func TestTextsOfOneThing(t *testing.T) {
	began := time.Now()
	for name, src := range map[string]string{
		"brackets": strings.Repeat("[", most), "images": strings.Repeat("![", most/2), "links begun": strings.Repeat("[a](<b", most/6), "links in parentheses": strings.Repeat("[a](b(", most/6),
		"brackets, links": strings.Repeat("[", most/2) + strings.Repeat("[a](b)", most/12), "ticks": ticks(most), "stars": strings.Repeat("*", most), "stars and letters": strings.Repeat("*a **a ", most/7),
		"ends": strings.Repeat("*", most/2) + strings.Repeat("a*", most/4), "openers of three kinds": strings.Repeat("_a ", most/6) + strings.Repeat("*a*", most/6), "closers": strings.Repeat("a**b"+"c* ", most/7),
		"tildes": strings.Repeat("~a ~~b", most/6), "quotes": strings.Repeat(">", most), "quotes of lines": strings.Repeat(strings.Repeat(">", 100)+"a\n", most/102), "items": strings.Repeat("- ", most/2), "items of lines": strings.Repeat(" ", 70) + strings.Repeat("- a\n", most/5),
		"deeper and deeper": deeper(most), "wide table": strings.Repeat("|a", most/6) + "\n" + strings.Repeat("|-", most/6) + "\n" + strings.Repeat("|\n", most/6), "short rows": strings.Repeat("|a", widest) + "\n" + strings.Repeat("|-", widest) + "\n" + strings.Repeat("|\n", most/4),
		"lines of =": "a\n\n" + strings.Repeat("|-\n", most/8) + strings.Repeat("===\n", most/8), "dashes": strings.Repeat("a|b\n-|-|-\n", most/10), "names": strings.Repeat("[a]: b\n", most/7), "one name": "[a]: " + strings.Repeat("b", 4000) + "\n\n" + strings.Repeat("[a]", most/4),
		"addresses": strings.Repeat("<a:", most/3), "mail": strings.Repeat("<a@", most/3), "entities": strings.Repeat("&a", most/2), "titles": strings.Repeat("[a](b 'c", most/8), "labels": strings.Repeat("[a][", most/4), "fences": strings.Repeat("~~~\n", most/4),
		"rules": strings.Repeat("- - -\n", most/6), "backslashes": strings.Repeat("\\", most), "tabs": strings.Repeat("\t", most), "lines": strings.Repeat("a\n", most/2), "breaks": strings.Repeat("a  \n", most/4),
	} {
		if got := HTML(src); len(got) > 40*most {
			t.Errorf("%s: %d bytes became %d", name, len(src), len(got))
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("they took %s", took)
	}
}

// ticks are runs of backticks, each longer than the one before it.
func ticks(most int) string {
	var b strings.Builder
	for n := 1; b.Len()+n < most; n++ {
		b.WriteString(strings.Repeat("`", n) + "a")
	}
	return b.String()
}

// deeper is a list in a list, and so on.
func deeper(most int) string {
	var b strings.Builder
	for n := 0; b.Len()+n < most; n++ {
		b.WriteString(strings.Repeat("  ", n) + "- a\n")
	}
	return b.String()
}
