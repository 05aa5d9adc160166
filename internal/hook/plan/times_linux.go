package plan

import "syscall"

func times(st *syscall.Stat_t) (modified, changed int64) {
	return st.Mtim.Nano(), st.Ctim.Nano()
}
