package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"reprise/internal/mdfile"
)

// bucketDamage holds, by source and file, what of it cannot be read.
const bucketDamage = "recall.damage"

// FileDamage is a place of a file that could not be indexed.
type FileDamage struct {
	Project string `json:"project,omitempty"` // empty = global
	File    string `json:"file"`              // as in Hit.File
	Line    int    `json:"line,omitempty"`    // 0 = the whole file
	Problem string `json:"problem"`
}

func (d FileDamage) String() string {
	where := d.File
	if d.Project != "" {
		where = d.Project + ":" + where
	}
	if d.Line > 0 {
		return fmt.Sprintf("%s:%d: %s; what stands there may not be found", where, d.Line, d.Problem)
	}
	return fmt.Sprintf("%s cannot be read, and nothing of it is found: %s", where, d.Problem)
}

// Damage says what could not be read, as of the last look at the files, of what
// the reader sees: it may be why something is not found.
func (x *Index) Damage(ctx context.Context, r Reader) ([]FileDamage, error) {
	var out []FileDamage
	err := x.View(ctx, func(tx *Tx) error {
		out = nil
		return tx.EachKV(bucketDamage, "", func(key string, value []byte) bool {
			project, name, _ := strings.Cut(key, "\t")
			var list []mdfile.Damage
			if !r.Sees(project) || json.Unmarshal(value, &list) != nil {
				return true
			}
			for _, d := range list {
				out = append(out, FileDamage{Project: project, File: strings.TrimPrefix(name, entryPrefix), Line: d.Line, Problem: d.Problem})
			}
			return true
		})
	})
	return out, err
}

// damaged notes what of a file cannot be read; nothing where all of it can.
func (w *writer) damaged(source, name string, list []mdfile.Damage) error {
	key := source + "\t" + name
	if len(list) == 0 {
		n, err := w.d.number(`SELECT count(*) FROM kv WHERE bucket=? AND key=?`, bucketDamage, key)
		if err != nil || n == 0 {
			return err
		}
		return w.d.run(`DELETE FROM kv WHERE bucket=? AND key=?`, bucketDamage, key)
	}
	value, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return (&Tx{d: w.d, w: w}).Store(bucketDamage, key, value)
}
