package judge

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
)

// maxAnswers is how many answers are kept: the oldest go first.
const maxAnswers = 2000

// kept is a file of answers/: what a question was answered.
type kept struct {
	V       int             `json:"v"`
	Key     string          `json:"key"` // hash of the question, the file's name
	At      time.Time       `json:"at"`
	Purpose string          `json:"purpose"`
	By      string          `json:"by"`
	Run     string          `json:"run"`
	Answer  json.RawMessage `json:"answer"`
}

func (j *Judge) ttl() time.Duration {
	return time.Duration(j.opt.Settings.CacheHours) * time.Hour
}

func (j *Judge) answerPath(key string) string { return j.path(answersDir, key+".json") }

// cached is the answer that the question had before, if that still counts. A
// file that cannot be used is no answer, and is replaced by the next one.
func (j *Judge) cached(p *prepared) (Answer, bool) {
	if j.ttl() == 0 {
		return Answer{}, false
	}
	data, err := readBounded(j.answerPath(p.key))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			j.opt.Log.Warn("judge: an answer that was kept cannot be read, so the question is asked", "error", err.Error())
		}
		return Answer{}, false
	}
	k, err := decodeKept(data)
	if err == nil && (k.Key != p.key || k.Purpose != p.request.Question.Purpose) {
		err = errors.New("it is another question's")
	}
	if err == nil {
		k.Answer, err = p.valid(k.Answer)
	}
	if err != nil {
		j.opt.Log.Warn("judge: an answer that was kept cannot be used, so the question is asked", "file", j.answerPath(p.key), "error", err.Error())
		return Answer{}, false
	}
	// Of an answer from the future nobody knows how old it is.
	if age := j.opt.Now().Sub(k.At); age < 0 || age >= j.ttl() {
		return Answer{}, false
	}
	j.countCached(p.request.Question.Purpose)
	return Answer{JSON: k.Answer, Run: k.Run, Cached: true, By: k.By}, true
}

func decodeKept(data []byte) (kept, error) {
	var k kept
	if err := strict(data, &k); err != nil {
		return kept{}, err
	}
	if k.V != formatVersion {
		return kept{}, fmt.Errorf("it has format %d, this program knows %d", k.V, formatVersion)
	}
	return k, nil
}

// countCached is for `reprise judge status` only: it costs nothing to lose.
func (j *Judge) countCached(purpose string) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := j.change(ctx, func(st *state) error {
		st.spent(dayOf(j.opt.Now()), purpose).Cached++
		return nil
	}); err != nil {
		j.opt.Log.Debug("judge: an answer from the cache was not counted", "error", err.Error())
	}
}

// keep puts an answer into the cache.
func (j *Judge) keep(p *prepared, purpose string, a Answer) error {
	if j.ttl() == 0 {
		return nil
	}
	if err := j.opt.Disk.MkdirAll(j.path(answersDir), 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(kept{V: formatVersion, Key: p.key, At: j.opt.Now().UTC(), Purpose: purpose, By: a.By, Run: a.Run, Answer: a.JSON})
	if err != nil {
		return err
	}
	if err := j.opt.Disk.WriteFileHot(j.answerPath(p.key), append(data, '\n'), 0o600); err != nil {
		return err
	}
	return j.tidy()
}

// tidy removes what is past its time, and the oldest of too many.
func (j *Judge) tidy() error {
	list, err := j.answers()
	if err != nil {
		return err
	}
	over := len(list) - maxAnswers
	for _, a := range list {
		age := j.opt.Now().Sub(a.at)
		if age < j.ttl() && over <= 0 {
			continue
		}
		if err := j.opt.Disk.Remove(j.path(answersDir, a.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		over--
	}
	return nil
}

type answerFile struct {
	name string
	at   time.Time
	size int64
}

// answers are the files of the cache, the oldest first; what else lies there is
// left alone.
func (j *Judge) answers() ([]answerFile, error) {
	entries, err := durable.ReadDir(j.path(answersDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []answerFile
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if raw, err := hex.DecodeString(name); !ok || err != nil || len(raw) != 32 {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		out = append(out, answerFile{e.Name(), info.ModTime(), info.Size()})
	}
	slices.SortFunc(out, func(a, b answerFile) int { return a.at.Compare(b.at) })
	return out, nil
}
