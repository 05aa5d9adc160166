package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Where the queue is, is the user's to say: a repository's project file that names
// servers is refused, whether as a line or as a section.
func TestProjectMayNotNameServers(t *testing.T) {
	for _, line := range []string{"queue: nats://elsewhere.example:4222", "queue: files", "fleet: {namespace: other}", "fleet: {credentials: /x}"} {
		_, err := ParseProject("p.yaml", []byte("v: 1\nname: shop\n"+line+"\n"))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Problem, "is not a setting of a project") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestQueueSetting(t *testing.T) {
	env := testEnv(t)
	for text, want := range map[string]string{
		"files": "files", "nats://a": "nats://a:4222", "tls://a:1,b": "tls://a:1,tls://b:4222",
		"nats://a,nats://[::1]:5": "nats://a:4222,nats://[::1]:5", "nats://10.0.0.1/": "nats://10.0.0.1:4222",
	} {
		s, _, err := Load(env, testPaths(t, env), write(t, filepath.Join(env.Dir, "c.yaml"), `queue: "`+text+`"`+"\n"))
		if err != nil || s.Queue != want {
			t.Errorf("%s: %q, %v", text, s.Queue, err)
		}
	}
	// What may be a password is in no message.
	_, _, err := Load(env, testPaths(t, env), write(t, filepath.Join(env.Dir, "c.yaml"), "queue: nats://me:hunter2@a,b:x\n"))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v", err)
	}
	for _, half := range []string{"cert", "key"} {
		_, _, err := Load(env, testPaths(t, env), write(t, filepath.Join(env.Dir, "c.yaml"), "fleet: {"+half+": /x.pem}\n"))
		if err == nil || first(t, err).Key != "fleet."+half {
			t.Errorf("%s alone: %v", half, err)
		}
	}
}
