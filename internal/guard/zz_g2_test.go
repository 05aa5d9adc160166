package guard
import "testing"
func TestZZ(t *testing.T) {
	p := newProject(t)
	p.put(t, map[string]string{"sub/.git/config": "[diff]\nexternal = ./x\n", "sub/.git/HEAD":"ref: refs/heads/main\n", "sub/.git/objects/x":"", "sub/.git/refs/x":""})
	for _, c := range []string{"git -c diff.external=./x stash list -p", "git -C sub stash show -p", "git -c core.pager=./x submodule status", "git config list", "git config get x", "git -c core.pager=./x config list"} {
		v := p.judge(c)
		t.Logf("%s: %s %.150s", c, v.Decision, v.Reason)
	}
}
