package redact_test

import (
	"os"
	"strings"
	"testing"

	"reprise/internal/redact"
)

// lines are those of a list; ⏎ stands for the end of a line in one.
func lines(list string) []string {
	out := strings.Split(strings.TrimSpace(list), "\n")
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "⏎", "\n")
	}
	return out
}

// A value may stand beside its name, and not after an operator.
func TestSecretsBesideTheirNameGo(t *testing.T) {
	goes(t, "Kd82h"+"Qz0LmW4xT", lines(`
env:⏎- name: DB_PASSWORD⏎  value: §
env:⏎- name: DB_PASSWORD⏎  value: "§"⏎
{"name":"DB_PASSWORD","value":"§"}
{"name": "DB_PASSWORD",⏎ "value": "§"}
{"Key":"api_token","Value":"§"}
{"Name":"/prod/db_password","Type":"SecureString","Value":"§"}
{"type":"password","value":"§"}
"password" : {"value": "§"}
<property name="password" value="§"/>
<add key="ApiKey" value="§"/>
<input type="password" value="§">
<input type="password" class="a" id="x" value="§">
ENV DB_PASSWORD §
FROM x⏎ENV DB_PASSWORD §⏎
setx FOO_SECRET §
setenv FOO_SECRET §
set -gx FOO_SECRET §
aws configure set aws_secret_access_key §
aws configure set profile.x.aws_session_token §
#define API_KEY "§"
setPassword("§")
client.SetAPIKey('§')
req.Header.Set("X-Api-Key", "§")
os.Setenv("DB_PASSWORD", "§")
"Authorization", "Bearer §"
x.set("Authorization", "§")
password: |⏎  §⏎
password: >-⏎    §
password=\⏎§
userPassword:: §
password%3D§%26x
db_password = <<EOT⏎§⏎EOT
frob "${PASSWORD:-§}"
: ${PASSWORD:=§}
TOKEN=$'§'; frob
declare -A C=([password]=§)
user[password]=§
psql -c "ALTER ROLE u PASSWORD '§'"
psql -c "alter user u with password '§'"
mysql -e "create user u identified by '§'"
CREATE USER u IDENTIFIED BY "§"
set password for u = password("§")
mysql: [Warning] Using password '§'
requirepass §
redis⏎requirepass §⏎masterauth x
CONFIG SET requirepass §
bindpw §
secret/x⏎password    §
password	§
`)...)
	goes(t, "correct"+"horse", lines(`
ALTER USER u WITH PASSWORD '§';
create user u identified by '§'
<input type="password" value="§">
`)...)
	stays(t, lines(`
- name: DB_PASSWORD⏎  valueFrom:⏎    secretKeyRef:⏎      name: db⏎      key: password⏎- name: PORT⏎  value: "a8080B12xyz"
- name: DB_PASSWORD⏎  value: $(DB_PASSWORD)
- name: DB_PASSWORD⏎  value: "{{ .Values.db.password }}"
- name: TOKEN_FILE⏎  value: /run/secrets/token1
{"name":"password","value":""}
{"name":"token","value":"identifier"}
<input type="password" name="password" value="">
<input type="password" value="Password">
<input type="password" id="a"><input type="text" value="a8080B12xyz">
<add key="ApiKey" value="YOUR_KEY_HERE_1"/>
ENV TOKEN_FILE /run/secrets/x1
ENV DB_PASSWORD $DB_PASSWORD
ENV PASSWORD_STORE_DIR /srv/store1
#define TOKEN_LPAREN 17
#define SECRET_LENGTH 32
#define MAX_TOKEN "value"
set password policy
setPassword(password)
setPassword("")
setToken(Token.IDENTIFIER2)
getSecret("prodDbA1b2C3d4")
rpassword::prompt_password("Password: ")
t.Run("password", "user1")
f("token", "ident1")
[]string{"password", "username", "token"}
getenv("API_KEY", "")
password: |⏎  at least 12 characters
password: >⏎  the password⏎
token: |⏎
description: |⏎  see password
${PASSWORD:-}
${PASSWORD:-$OTHER}
${DB_PASSWORD:-postgres}
config[password]=$PW
ALTER ROLE u PASSWORD NULL
ALTER ROLE u PASSWORD '$PW'
WITH PASSWORD '<password>'
IDENTIFIED BY '***'
identified by its name
the password 'required' is missing
requirepass foobared is the default? requirepass <password>
token     string
password  the password of the user
`)...)
}

// Names that are short, seldom, of other languages, or mean something else as often.
func TestSecretsOfOtherNamesGo(t *testing.T) {
	goes(t, "Kd82h"+"Qz0LmW4xT", lines(`
pass: §
"pass": "§"
{"user":"me","pass":"§"}
db.pass = §
dbPass: "§"
PASS=§
SMTP_PASS=§
./app --pass § run
./app --db-pass=§
./app --pw § run
./app -token § run
influx -token § x
pw: §
# pw: §
bind_pw: §
network={⏎ ssid="x"⏎ psk="§"⏎}
{"sessionid": "§"}
sessionid=§
JSESSIONID=§
PHPSESSID=§
{"bearer": "§"}
bearer: §
{"authorization": "§"}
{'Authorization': '§'}
Authorization: §
Authorization: `+"`Bearer §`"+`
{"connectionString": "§"}
GH_PAT=§
export MY_PAT=§
OTP_SEED=§
MNEMONIC=§
passwort=§
Passwort: §
motdepasse=§
senha=§
contraseña=§
пароль=§
Пароль: §
密码=§
密码：§
パスワード=§
비밀번호=§
PrivateKey = §=
az storage blob list --account-key §
_auth=§
//r.example/:_auth=§
passcode: §
-Dsonar.login=§
<credential>§</credential>
`)...)
	goes(t, "correcthorse"+"battery", "SMTP_PASS=§", "PASS=§ ./x", "passwort=§")
	goes(t, "abandon ability able about above absent absorb abstract absurd abuse access accident",
		"seed phrase: §", "MNEMONIC=\"§\"", "recovery phrase: §.")
	stays(t, lines(`
--- PASS: TestFoo2Bar (0.00s)
PASS: TestA1b2C3d4 (0.00s)
ok pass: 12 fail: 0
# pass 12345678
pass: test_foo1.py::test_a1b2
pass=12345678 fail=2
"pass": true,
pass: boolean
pass: passwordFromTheForm2
bypass: a1B2c3D4e5
compass=a1B2c3D4e5
first_path=a1B2c3D4e5/x
pass: internal/a1/b2.go
if err != nil { pass = append(pass, x1) }
    pass  # the rest
{"session_id":"6f9619ff-8b86-d011-b42d-00cf4fc964ff"}
{"sessionId":"6f9619ff-8b86-d011-b42d-00cf4fc964ff"}
sessionid: 6f9619ff-8b86-d011-b42d-00cf4fc964ff
"sessionId": "a1B2c3D4e5F6g7H8"
token_type: bearer
Bearer authentication is what the API wants
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization: AWS4-HMAC-SHA256 Credential
authorization: required
authorization.k8s.io/v1
rbac.authorization.k8s.io/v1beta1: ClusterRole
credential: none
credential.helper=store
credential.helper=/usr/share/git-core/contrib/x1
mnemonic: vpaddd
the mnemonic of the instruction is add and the one of the other instruction is sub
pw: ${PW}
psk: true
include_path=src/a1
GH_PAT=$GH_PAT
GH_PAT=${{ secrets.GH_PAT }}
пароль: обязательное поле
パスワードは必須です
密码不能为空
senha: obrigatória
passwort: erforderlich
_auth: true
basic_auth: handler.basicAuth2
"connectionString": "Server=localhost;Database=x1"
privateKey: ./private.pem
ssh -o BatchMode=yes -token
-Secret  *SecretReference
-token Kind2Foo3Bar
foo⏎ -token Kind2Foo3Bar
`)...)
}

// Prose names passwords, and seldom has something beside the word that can be nothing else.
func TestSecretsThatAreSaidGo(t *testing.T) {
	goes(t, "Kd82h"+"Qz0LmW4xT", lines(`
the password is §
the password is §, mind the capitals.
My password: §
use the token § for that
user admin, password §
the API key is "§".
my secret key (§) must work
the staging password changed to § yesterday
Das Passwort lautet §
le mot de passe est §
la contraseña es §
密码是§
パスワードは§です
A temporary password is generated for root@localhost: §
Initial admin password: §
Unseal Key 1: §
token → §
`)...)
	stays(t, lines(`
the password is wrong
the password is required2
the token is a1b2c3d4
the token TS2345 is an error
token 3f2a9c1be0d4 of the page
the API key is in the environment
the secret is that there is none
password is ${PASSWORD}
secret key <KEY12345aB>
use the token from internal/auth/Token2Store34.go
a default password is generated: see the log
the token TestParse2Tokens3 fails
keys and secret key rotation
API key AUTH_KEY_2024_ROTATED_V2
`)...)
}

// What this project says of itself is ordinary.
func TestDocumentsStay(t *testing.T) {
	files, err := os.ReadDir("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	n, red := 0, redact.New()
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".md") {
			continue
		}
		data, err := os.ReadFile("../../docs/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		n++
		if got, n := red.String(string(data)); n != 0 {
			for i, line := range strings.Split(string(data), "\n") {
				if !strings.Contains(got, line) {
					t.Errorf("%s:%d: %q", f.Name(), i+1, line)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d documents", n)
	}
}
