package guard

import (
	"strings"
	"testing"
)

// actsOnNames are commands that change what the names lead to which another command
// tells, or which stand in a file that it read.
var actsOnNames = []string{
	// Lists for programs that take names from there, whatever they are fed by.
	`cat MEM/l | xargs rm`, `cat MEM/l | parallel rm`, `cat MEM/l | { read f; rm "$f"; }`, `cat MEM/l | { mapfile a; rm $a; }`, `cat MEM/l | { readarray a; rm $a; }`,
	`cat MEM/l | cpio -pdl out`, `cat MEM/l | pax -rwl out`, `cat MEM/l | afio -pl out`,
	`cat MEM/l > l; tar --remove-files -cf x.tar -T l`, `cat MEM/l | tar cTf - x.tar --remove-files`, `cat MEM/l | tar -cf x.tar --remove-files -T-`, `cat MEM/l | bsdtar -cf x.tar -T -`, `cat MEM/l | gtar -cf x.tar -T -`, `cat MEM/l | star -cf x.tar -T -`,
	`cat MEM/l | tar c --remove-files --files=-`, `cat MEM/l > l; rsync --files-from=l --remove-source-files x out`, `cat MEM/l > l; rm --files0-from=l`, `cat MEM/l > l; rm --files0=l`, `cat MEM/l > l; find -files0-from l -delete`,
	`cat MEM/l > l; git rm --pathspec-from-file=l`, `cat MEM/l > l; git rm --pathspec-f=l`, `cat MEM/l | git update-index --remove --stdin`, `cat MEM/l > l; frob --paths-from l`, `cat MEM/l > l; frob --filelist l`, `cat MEM/l > l; frob --file-list=l`,
	`cat MEM/l | zip -m x -@`, `cat MEM/l > l; 7z a x -sdel @l`, `cat MEM/l > l; 7z a x -sdel -i@l`,
	// Names that are told, for whatever is fed with them.
	`find MEM | perl -nle unlink`, `ls MEM | python3 -c 'import sys,os;[os.remove(x.strip()) for x in sys.stdin]'`, `find MEM | rename s/a/b/`, `find MEM | sudo rename s/a/b/`, `find MEM | vim -`, `grep -l x MEM/*.md | perl -nle unlink`, `find MEM | find -files0-from - -delete`,
	`find MEM | sed 's/^/rm /e'`, `find MEM | sed -n 's/^/rm /e'`, `find MEM | sed -i s/a/b/ x`, `find MEM | sed -f x`, `find MEM | awk '{system("rm " $0)}'`, `find MEM | awk -F : '{system("rm " $0)}'`, `find MEM | gawk -f x`, `find MEM | awk -F`,
	// Names that stand in a file by then.
	`find MEM -printf 'rm %p\n' > x.sh; sh x.sh`, `ls MEM > l; perl -nle unlink l`, `{ ls MEM; } > l && make`, `ls MEM | sort > l; frob l`, `ls MEM | sed 's/^/rm /' > x.sh; . ./x.sh`, `ls MEM | tee l | wc -l; frob l`, `find MEM 1> l; f() { frob l; }; f`, `(ls MEM) >> l; frob`,
	`f() { perl -nle unlink; }; ls MEM | f`, `PATH=.:$PATH; ls MEM | wc`,
}

// onlyShowsNames are commands that are fed in the same ways, and change nothing.
var onlyShowsNames = func() (out []string) {
	out = strings.Split("find MEM | sed -n '1,5p' | sed -E 's/a/b/' > n;ls MEM | awk -F: '{print $1}' | wc -l;ls MEM | gawk -F : '{print $1}';ls MEM | mawk -v x=1 '{print x}';ls MEM | nawk '{print}';ls MEM | sed s/a/b/;grep -rl x MEM | sort -u | head;ls | perl -ne print", ";")
	out = append(out, `f() { cat; }; ls MEM | f`, `find MEM > l; wc -l l`, `ls MEM > l; cat l | sort | uniq`, `ls MEM 2> l; make`, `ls MEM > /dev/null; make`, `ls MEM; make > l`, `make > l; ls MEM`, `make; ls MEM > l`, `cat MEM/core.md > l; make`, `ls MEM | tee l`, `cat MEM/core.md | python3 -c 'print(len(input()))'`, `ls MEM; tar --file x.tar -c src`, `ls MEM; tar -c --Tx src`, `ls MEM; tar cf x.tar src`, `ls MEM; tar cf x.tar T`, `ls MEM; make src x@y`, `ls MEM; make --files`+"x", `ls MEM; make -j 2 --path`, `ls MEM; make --`, `PATH=.:$PATH; ls src | cat`)
	for _, p := range split("tee tr uniq fold fmt column paste join comm expand unexpand rev shuf numfmt pr printf less more base64 base32 xxd hexdump strings iconv cksum sum sha1sum sha512sum b2sum wc") {
		out = append(out, "ls MEM | "+p)
	}
	out = append(out, "ls MEM | sort --reverse")
	for _, p := range []string{"cat", "head", "tail", "nl", "tac", "cut -f1", "od", "jq .x", "sed -n 1p", "sort", "cmp src"} {
		out = append(out, p+" MEM/core.md | perl -ne print")
	}
	return out
}()

func TestNamesInLists(t *testing.T) {
	w := newWorld(t)
	for list, want := range map[*[]string]Decision{&actsOnNames: Deny, &onlyShowsNames: None} {
		for _, c := range *list {
			if v := Memory(w.policy(true), bash(w.fill(c))); v.Decision != want {
				t.Errorf("%s: %s, want %s: %s", c, v.Decision, want, v.Reason)
			}
		}
	}
}
