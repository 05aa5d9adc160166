package recall

import "github.com/ncruces/go-sqlite3"

type stmt = *sqlite3.Stmt
