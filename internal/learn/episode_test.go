package learn

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	s := newStory(t)
	s.start()
	s.prompt("Make the tests of the cart pass")
	s.shell("npm test", "Error: Cannot find module 'left-pad'\nRequire stack:\n- /w/shop/index.js")
	s.shell("npm ci", "")
	s.shell("npm test", "")
	s.answer("All tests pass now. I decided to keep the lock file.")
	s.prompt("no, use pnpm instead of npm")
	s.shell("pnpm test", "")
	s.answer("Done with pnpm.")
	s.end()
	st, _ := s.fold("2026-11-03")
	t.Log(st.dump())
}
