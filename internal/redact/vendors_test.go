package redact_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"reprise/internal/redact"
)

// keys are what vendors' keys look like: made here, so that none stands in the repository.
func keys() []string {
	rnd := rand.New(rand.NewPCG(5, 6))
	a := func(n int) string { return random(rnd, alnum, n) }
	h := func(n int) string { return random(rnd, hexa, n) }
	l := func(n int) string { return strings.ToLower(a(n)) }
	return []string{
		"dckr" + "_pat_" + a(27), "whsec" + "_" + a(32), "nvapi" + "-" + a(64), "lsv2" + "_pt_" + h(32) + "_" + h(10), "sk" + "-" + h(32), "sk" + "-" + a(48),
		"sk-" + "proj-" + a(120), "sk-" + "svcacct-" + a(80), "sk" + "_" + h(48), "key" + "_" + h(64), "fc" + "-" + h(32), "nfp" + "_" + a(36), "squ" + "_" + h(40), "sqp" + "_" + h(40),
		"dp." + "st." + a(43), "dp." + "st.prd." + a(43), "re" + "_" + a(8) + "_" + a(24), "tvly" + "-dev-" + a(32), "pcsk" + "_" + a(60), "phx" + "_" + a(43), "bkua" + "_" + h(40),
		"CCIPAT" + "_" + a(28) + "_" + h(40), "sb_" + "secret_" + a(32), "1//" + "0g" + a(60), "csk" + "-" + l(48), "jina" + "_" + a(60), "e2b" + "_" + h(40), "napi" + "_" + l(64), "npg" + "_" + a(14),
		"rnd" + "_" + a(32), "ddp" + "_" + a(36), "cfut" + "_" + a(40), "vcp" + "_" + a(56), "sq0csp" + "-" + a(43), "CFPAT" + "-" + a(43), "ATCTT3" + "xFf" + a(180), "mdb_" + "sa_sk_" + a(40),
		"tr_" + "prod_" + a(24), "signkey" + "-prod-" + h(64), "oy2" + l(43), "secret" + "_" + a(43), "sk." + "eyJ1Ijoi" + a(80), "fw" + "_" + a(24), "AKID" + a(32), "AQVN" + a(38),
		"FLWSECK" + "-" + h(32), "api_" + "live." + a(40), "xoxc" + "-12345-12345-12345-" + h(64),
		"access-" + "production-" + h(8) + "-" + h(4) + "-" + h(4) + "-" + h(4) + "-" + h(12),
		"MTA4NzY1" + "NDMyMTA5ODc2NTQz.GabcDe." + a(38), h(32) + "-us" + "12", a(44) + "JQQJ" + "99" + a(30), "7123456789" + ":AA" + a(33), "pat" + a(14) + "." + h(64),
	}
}

func TestVendorsKeysGo(t *testing.T) {
	r := redact.New()
	for _, key := range keys() {
		goes(t, key, "use § there", "§", "it is §, and", "the (§).", `{"a":"§"}`)
		if got, _ := r.String("use " + key + ", then"); strings.Contains(got, key[len(key)-8:]) {
			t.Errorf("a part of %s stays: %s", key, got)
		}
	}
	goes(t, "Kd82h"+"Qz0LmW4xTa7Yq"+"BdR3uV", lines(`
https://discord.com/api/webhooks/123456789012345678/§
https://api.telegram.org/bot7123456789:§/getMe
https://b.s3.amazonaws.com/k?X-Amz-Credential=A&X-Amz-Signature=§
https://storage.googleapis.com/x?X-Goog-Signature=§&a=b
http://localhost:8085/?state=x&code=4/0§&scope=y
https://a.blob.core.windows.net/c/f?sv=2020&sig=§abcdef%3D
`)...)
	stays(t, lines(`
the disk-0123456789abcdef0123456789abcdef of the machine
task-`+strings.Repeat("a1b2", 8)+`
dckr_pat_ is the prefix
sk_test_helper and sk-learn and mask_0123456789
the path/to/pattern1.x and path.join(a1, b2)
secret_manager_configuration_for_the_second_cluster1
compare_results_of_the_2nd_and_the_1st_of_them
rnd_generator and jina_embeddings_v2_base_en
pkg.GetUserByName12("x").y(z)
internal/x.go and <stdio.h> and a.h.b
aws --region us-east-1 --profile 0123456789abcdef0123456789abcdef-use1
key_0123456789
https://discord.com/api/webhooks/{id}/{token}
https://api.telegram.org/bot<token>/getMe
https://api.telegram.org/bot$TOKEN/getMe
https://b.s3.amazonaws.com/k?X-Amz-Signature=<signature>
?code=404&x=1
Content-Type: multipart/signed; micalg=pgp-sha1
12:AA:bb:cc:dd:ee
`)...)
}

// A place in a file or a table tells what a value is.
func TestSecretsByTheirPlaceGo(t *testing.T) {
	goes(t, "Kd82h"+"Qz0LmW4xTa7Yq", lines(`
Cookie: _ga=1; sessionid=§
Cookie: _ga=GA1.2; sid=§; x=1
.example.com	TRUE	/	TRUE	0	session	§
example.com	FALSE	/	TRUE	0	session	§
h:5432:db:u:§
*:3306:*:root:§
{"kty":"EC","d":"§","x":"a"}
{"kty":"OKP","crv":"Ed25519", "d": "§","x":"abc"}
PuTTY-User-Key-File-3: ssh-ed25519⏎Private-Lines: 1⏎§⏎Private-MAC: x
auth=("me", "§")
req.SetBasicAuth("me", "§")
HTTPBasicAuth('me', '§')
db.auth("u","§")
| password | § |
password | §
+------+⏎| user | password |⏎+------+⏎| bob | § |
 id | password ⏎----+----------⏎ 1  | §⏎(1 row)
user,password,host⏎bob,§,h
name,api_key⏎a,x⏎b,§⏎
password;name⏎§;bob
`)...)
	two := "name,password\na,Kd82hQz0LmW4\nb,Pq93kRt1NvX5\n"
	if got, n := redact.New().String(two); n != 2 {
		t.Errorf("%q became %q", two, got)
	}
	stays(t, lines(`
Set-Cookie: a=1; Path=/; Domain=example.com; HttpOnly
Cookie: a=1; b=2
TRUE	/path	x
127.0.0.1:5432:5432
0.0.0.0:5432->5432/tcp, :::5432->5432/tcp
docker run -p 127.0.0.1:5432:5432/tcp postgres
{"kty":"EC","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"}
{"d":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"}
{"kty": "oct", "k": base64url_encode(force_bytes(key_obj)).decode()}
auth=("me", password)
auth=("user", "password")
req.SetBasicAuth("me", "")
req.SetBasicAuth("me", os.Getenv("PW"))
| password | string | required |
| token | the token of the run | a1 |
| name | password |⏎|---|---|⏎| a | of the database |
user,password,host⏎bob,,h
import password,⏎  token, x1⏎
f(user, password, host)
x, token, err := next(a1B2c3D4)
password | string
token|secret|password
grep -E 'password|token|secret' a1B2c3D4e5.txt
id,token⏎1,identifier
`)...)
}
