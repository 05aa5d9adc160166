package guard

import "testing"

// ownWrites are writes that no user means by guard.writes: allow. What they change decides
// about agents, about git, or about the machine; the name of it stands in the command by
// half, is made by the program, or is a second one for the file.
var ownWrites = []string{
	`for f in .git/*; do echo x > "$f"; done`,
	`for f in .git/conf*; do cp f "$f"; done`,
	`for f in .g*/config; do tee "$f" < f; done`,
	`for d in .g*; do echo x > "$d/config"; done`,
	`for d in .*/; do echo x > "$d"config; done`,
	`set -- .git/conf*; echo x > "$1"`,
	`ln .git/config cfg; echo '[core]' >> cfg`,
	`ln .git/config src/cfg && tee -a src/cfg < f`,
	`cp -l .git/config cfg; echo x >> cfg`,
	`cp -al .git g; echo x >> g/config`,
	`link .git/config cfg`,
	`cp -s .git/config cfg; echo x > cfg`,
	`cp -rs .git g; echo x > g/config`,
	`ln .git/config cfg`,
	`ln -s .git/config cfg`,
	`git -C .git log --output=config --format=%B`,
	`git -C .git/hooks log --output=pre-commit`,
	`git -C .claude diff --output=settings.json`,
	`git -C .git archive -o config HEAD`,
	`git -C .git format-patch -o hooks HEAD~1`,
	`git -C .git diff --no-index --output=config a b`,
	`cp docs/.mcp.json .`,
	`cp docs/.mcp.json ./`,
	`cp -t . docs/.mcp.json`,
	`cd docs; cp .mcp.json ..`,
	`cp docs/.[!.]* .`,
	`cp docs/.* .`,
	`cp -r docs/.claude .`,
	`cp -r docs/. .`,
	`cp -rT docs .`,
	`cd docs; cp --parents .claude/settings.json ..`,
	`ln docs/.mcp.json .`,
	`ln -s docs/.mcp.json .`,
	`cp -b -S .json f .mcp`,
	`cp --backup --suffix=.json f .mcp`,
	`install -b -S .json f .mcp`,
	`ln -sb --suffix=.json f .mcp`,
	`gunzip .mcp.json.gz`,
	`gzip -df .git/config.gz`,
	`xz -d .mcp.json.xz`,
	`bunzip2 .git/config.bz2`,
	`zstd -d .mcp.json.zst`,
	`gunzip -S .x .mcp.json.x`,
	`gzip -dr .`,
	`gunzip -N a.gz`,
	`gzip -S .json .mcp`,
	`xz -S .json .mcp`,
	`split -x -a1 --additional-suffix=p.json -n 16 f .m`,
	`csplit -f .git/con -b fig%.0d f 1`,
	`split -a1 f .mcp.jso`,
	`: > .git/HEAD`,
	`: > .git/refs/heads/main`,
	`truncate -s0 .git/packed-refs`,
	`truncate -s0 .git/index`,
	`cp /dev/null .git/HEAD`,
	`gzip -f .git/index`,
	`echo /tmp/evil > .git/commondir`,
	`echo /tmp/evil > .git/worktrees/w/commondir`,
	`echo 'exec touch x' > .git/rebase-merge/git-rebase-todo`,
	`echo x > .git/config.lock`,
	`echo x > .git/remotes/origin`,
	`mknod sda b 8 0; dd if=/dev/zero of=sda`,
	`mknod m c 1 1 && cat m`,
	`chmod -R 000 .`,
	`chmod -R 777 .`,
	`chmod -R o+w .`,
	`chown -R nobody .`,
	`cp -r docs/.claude/. .claude`,
	`cp -a docs x`,
	`cp --recursive docs/. .`,
	`ln docs/.mcp.json sub/../`,
	`cp -t . docs/.mcp.json -v`,
	`cp -l docs/.mcp.json docs2`,
	`ln --symbolic .claude/settings.json s`,
	`cp --link .git/config c`,
	`cp -R --symbolic-link .git g`,
	`cp sub/../docs/.mcp.json $PWD`,
	`for f in docs/.m*; do cp "$f" .; done`,
	`install -t . docs/.mcp.json`,
	`chown -R x .git`,
	`chmod --recursive 777 .claude`,
	`chmod -R 777 .cl*`,
	`unxz .mcp.json.xz`,
	`uncompress .mcp.json.Z`,
	`unzstd .mcp.json.zst`,
	`compress -d .mcp.json.Z`,
	`xz -t -d .mcp.json.xz`,
	`gzip --decompress .git/config.gz`,
	`mknod n c 1 3`,
	`split f .x`,
	`cp -r tree sub`,
	`cp -t .cursor mcp.json`,
	`cp mcp.json .cursor/`,
	`cp -T mcp.json .cursor/mcp.json`,
	`chmod -R 777 a1`,
	`chmod -R 777 a2`,
	`chmod -R 777 a3`,
	`chmod -R 777 a4`,
	`git -C sub -C ../.git log --output=config`,
	`git -C .git diff --output config`,
	`set -- .git/HEAD; : > "$1"`,
	`f=.git/HEAD; truncate -s 0 "$f"`,
	`sed -i s/x/y/ .git/packed-refs`,
	`for f in .git/re*; do : > "$f/x"; done`,
}

// plainWrites are what it means.
var plainWrites = []string{
	`cp f docs2`,
	`cp -r src sub`,
	`cp f sub/`,
	`ln -s f l`,
	`ln f l2`,
	`cp -l f l3`,
	`cp -rs src s2`,
	`cp -t sub f`,
	`mkdir -p docs && cp README.md docs/`,
	`for f in src/*.go; do cp "$f" sub/; done`,
	`for f in src/*.go; do echo x >> "$f"; done`,
	`gzip f`,
	`gunzip a.gz`,
	`xz -d a.xz`,
	`split f part`,
	`split -l 10 f sub/part-`,
	`mkfifo p`,
	`mknod q p`,
	`chmod -R u+w src`,
	`chmod +x evil.sh`,
	`chown -R x sub`,
	`git -C sub log --output=x`,
	`git -C sub diff --output=../x`,
	`echo x > .git/info/exclude`,
	`install -m 755 f sub`,
	`ln -sf f current`,
	`cp f g`,
	`install f sub/g2`,
	`cp -T src sub9`,
	`git archive -o x.tar HEAD`,
}

// ownProject has in it what these speak of.
func ownProject(t *testing.T) (project, *Rules) {
	p := newProject(t)
	p.put(t, map[string]string{"docs/.mcp.json": "{}", "docs/.claude/settings.json": "{}", ".claude/settings.json": "{}", ".git/hooks/pre-commit": "x", "docs2/x": "", ".git/refs/heads/main": "x", ".git/packed-refs": "", "sub9/x": "", "mcp.json": "{}", "tree/a/x": "", "tree/b/.mcp.json": "", "tree/c": "", ".cursor/x": "", "a1/.codex/x": "", "a2/.gemini/x": "", "a3/.copilot/x": "", "a4/.reprise/x": ""})
	r := p.rules()
	r.Writes = true
	return p, r
}

func TestWritesOfOthersAreNotAllowed(t *testing.T) {
	p, r := ownProject(t)
	for _, c := range ownWrites {
		if v := r.Command(c, p.dir); v.Decision == Allow {
			t.Errorf("let through: %s", c)
		}
	}
	for _, c := range plainWrites {
		if v := r.Command(c, p.dir); v.Decision != Allow {
			t.Errorf("%s: %s: %s", v.Decision, c, v.Reason)
		}
	}
}
