package redact_test

import (
	"strings"
	"testing"

	"reprise/internal/redact"
	"reprise/internal/redact/suspect"
)

// Credentials that are told by how they begin, or by the program or header that they are given to.
func TestCredentialsByTheirPlaceGo(t *testing.T) {
	const (
		pw      = "Kd82h" + "Qz0Lm"
		letters = "FRCztUj" + "AwyuhvaBQd"
		random  = "a8Xk20LmQz91Vb73Nc55Rt62Yw48Ue17Io39Pa26Sd50Fg84Hj61Kl75Zx92Cv03Bn28Mq46We59Er13Ty37Ui91Op68As24Df80Gh"
		hex     = "0123456789abcdef" + "fedcba9876543210" + "0123456789abcdef" + "fedcba9876543210"
	)
	for _, tt := range []struct{ text, secret string }{
		{"export CLAUDE_CODE_OAUTH_TOKEN: sk-ant-" + "oat01-" + random[:93] + "AA", random[:93]},
		{"Your token: sk-ant-" + "oat01-" + random[:93] + "AA\n", random[:93]},
		{"the key gsk" + "_" + random[:52], random[:52]},
		{"sk-or" + "-v1-" + hex, hex},
		{"xai" + "-" + random[:80], random[:80]},
		{"r8" + "_" + random[:37], random[:37]},
		{"tskey" + "-auth-" + random[:30], random[:30]},
		{"GOCSPX" + "-" + random[:28], random[:28]},
		{"ya29" + "." + random[:60], random[:60]},
		{"ntn" + "_" + random[:46], random[:46]},
		{"sbp" + "_" + hex[:40], hex[:40]},
		{"figd" + "_" + random[:40], random[:40]},
		{"hf" + "_" + random[:34], random[:34]},
		{"password=" + letters, letters},
		{"client_secret: " + letters, letters},
		{"api_key=" + letters, letters},
		{"TOKEN=" + letters, letters},
		{"tool --password " + letters, letters},
		{"sshpass -p " + pw + " ssh root@host", pw},
		{"sshpass -p '" + pw + "' ssh root@host", pw},
		{"mysql -uroot -p" + pw + " shop", pw},
		{"mysqldump -h db -u root -p" + pw + " shop > x", pw},
		{"docker login -u me -p " + pw + " reg.io", pw},
		{"podman login reg.io -u me -p=" + pw, pw},
		{"machine reg.io login me password " + pw, pw},
		{"machine reg.io\n  login me\n  password " + pw + "\n", pw},
		{"Cookie: session=" + random[:30], random[:30]},
		{"curl -H 'cookie: a=" + random[:20] + "; b=" + random[20:40] + "' https://x", random[20:40]},
		{"Set-Cookie: sid=" + random[:30] + "; Path=/; HttpOnly", random[:30]},
		{"git clone https://" + random[:40] + "@host.example/x.git", random[:40]},
		{"https://a.blob.core.windows.net/c/f?sv=1&sig=" + random[:43] + "%3D&se=2", random[:43]},
		{"admin:$apr1" + "$" + "abcdefgh$" + random[:22], random[:22]},
		{"root:$6" + "$abcdefgh$" + random[:86] + ":19000:0:", random[:86]},
		{"root:$y" + "$j9T$" + random[:22] + "$" + random[:43], random[:43]},
		{"root:$2y" + "$10$" + random[:53], random[:53]},
	} {
		got, n := redact.New().String(tt.text)
		if n == 0 || strings.Contains(got, tt.secret) {
			t.Errorf("%q became %q", tt.text, got)
		}
		if !suspect.String(tt.text) {
			t.Errorf("%q is not suspected", tt.text)
		}
	}
	for _, text := range []string{
		"mysql -u root -p shop", "mysql -P 3306 -h db shop", "docker login -u me reg.io", "docker login --password-stdin reg.io", `sshpass -p "$PW" ssh host`,
		`mysql -p"$DB_PASSWORD" shop`, "docker run -p 8080:80 nginx", "the login page -plain- is here", "the machine has a login and a password", "cookie: it is eaten",
		"https://me@host.example/x.git", "ssh://git@host.example/x", "tasks_ and gsk_ and hf_ are prefixes", "xai-grok-beta", "password=userPasswordFromTheForm",
		"token: NumericLiteralExpression", "TOKEN=getAccessTokenFromTheServer", "npm run docker -- login -p", "a cookie: name=short",
	} {
		if got, n := redact.New().String(text); n != 0 {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// The secrets of a text are told as they stand there, and as they are read.
func TestSecretsAreTold(t *testing.T) {
	const pw = "hunter2" + "hunter2"
	for _, tt := range []struct{ name, text, want string }{
		{"", "mysql --password=" + pw + " -u root; echo password=x" + pw, pw + "|x" + pw},
		{"", `{\"password\": \"a\u0062c` + pw + `\"}`, `a\u0062c` + pw + "|abc" + pw},
		{"password", pw, pw},
		{"command", "ls -l", ""},
	} {
		if got := strings.Join(redact.New().Secrets(tt.name, tt.text), "|"); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.name, tt.text, got, tt.want)
		}
	}
}
