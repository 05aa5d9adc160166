package markdown

import (
	"regexp"
	"strings"
	"testing"
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
