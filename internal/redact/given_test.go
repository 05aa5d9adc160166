package redact_test

import (
	"strings"
	"testing"

	"reprise/internal/redact"
	"reprise/internal/redact/suspect"
)

// goes fails where a text's secret, which stands in place of §, stays, or more goes than it.
func goes(t *testing.T, secret string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		text = strings.ReplaceAll(text, "§", secret)
		got, n := redact.New().String(text)
		if n == 0 || strings.Contains(got, secret) {
			t.Errorf("%q became %q", text, got)
		}
		if !suspect.String(text) {
			t.Errorf("%q is not suspected", text)
		}
		if again, n := redact.New().String(got); n != 0 {
			t.Errorf("%q, taken out once, became %q", got, again)
		}
	}
}

func stays(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if got, n := redact.New().String(text); n != 0 {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Programs have options for secrets that do not say so by their names.
func TestSecretsOfACommandLineGo(t *testing.T) {
	goes(t, "Kd82h"+"Qz0LmW4", strings.Split(strings.TrimSpace(`
curl -u me:§ https://h
curl -sS -u 'me:§' https://h
curl -sS -X POST -u "me:§" https://h
curl -su me:§ https://h
curl -ume:§ https://h
curl --user=me:§ https://h
curl --proxy-user me:§ https://h
curl --oauth2-bearer § https://h
curl -b "session=§" https://h
curl --cookie 'a=§' https://h
{"command":"curl -u 'me:§' https://h"}
{"command":"curl -u \"me:§\" https://h"}
bash -c "curl -u me:§ https://h"
http -a me:§ https://h
mysql -p§ -e 'select 1'
mysql -uroot -p§ shop
mysql -uroot -p'§' shop
mysql "-p§" shop
mysql -h db -u root -p§ -e 'select 1'
kubectl exec p -- mysql -p§
docker exec -i db mysql -p§ < f
docker exec db mysqldump -uroot -p§ shop > x
mysqladmin -u root password §
redis-cli -a § ping
redis-cli -h h AUTH §
redis-cli CONFIG SET requirepass §
sshpass -p§ ssh h
sshpass -p '§' ssh h
docker login -u me -p § reg.io
podman login reg.io -u me -p=§
crane auth login h -u me -p §
skopeo copy --src-creds me:§ a b
az login -u a -p §
az keyvault secret set --vault-name v --name n --value §
oc login -u u -p § h
twine upload -u u -p § d/*
poetry publish -u u -p §
poetry config pypi-token.pypi §
sqlcmd -S h -U sa -P '§' -Q x
cqlsh h -u u -p §
mongosh -u u -p § h
aws ssm put-parameter --name /x --type SecureString --value §
aws secretsmanager create-secret --name x --secret-string §
npm config set _auth §
cargo login §
ngrok authtoken §
ngrok config add-authtoken §
wandb login §
vault login §
snyk auth §
bw unlock § --raw
doctl auth init -t §
codecov -t §
nuget setapikey §
dotnet nuget push x -k §
dotnet user-secrets set "Db:Password" "§"
gh secret set X --body §
fly secrets set A=§
kubectl create secret generic x --from-literal=foo=§
pulumi config set --secret x §
rabbitmqctl add_user u §
mc alias set m https://h key §
ldapsearch -x -D cn=a -w § -b x
zip -P § x.zip a
unzip -P '§' x.zip
7z x -p§ a.7z
7z a "-p§" x.7z a
ssh-keygen -t ed25519 -N "§" -f k
keytool -genkey -storepass § -keypass x
openssl rsa -passin pass:§ -in k
openssl pkcs12 -export -passout pass:§ -in x
openssl enc -aes-256-cbc -k § -in x
smbclient -U u%§ //h/s
lftp -u u,§ h
mosquitto_pub -u u -P § -t x
echo § | docker login -u me --password-stdin
echo §|docker login -u me --password-stdin
printf '%s' '§' | docker login -u me --password-stdin
echo "§" | gh auth login --with-token
gh auth login --with-token <<< §
echo 'root:§' | chpasswd
chpasswd <<< "u:§"
su -c "echo u:§ | chpasswd"
echo § | sudo -S ls
wrangler secret put X <<< "§"
gh auth login --with-token < <(echo §)
passwd --stdin u <<< '§'
htpasswd -bc f u §
htpasswd -nb u §
wpa_passphrase net §
poetry config http-basic.x u §
openssl dgst -sha256 -hmac § x
rails credentials:edit --key §
etcdctl --user root:§ get x
heroku config:set FOO=§
vault kv put secret/x value=§
ansible-vault encrypt_string '§' --name x
./app --auth § run
./app --key § run
u:§@tcp(h:3306)/db
`), "\n")...)
	stays(t, strings.Split(strings.TrimSpace(`
curl -u "$USER:$PASS" https://h
curl -u user:password https://h
curl -u me https://h
curl -u <user>:<token> https://h
curl -u user:${TOKEN} -O https://h/a1b2c3d4e5f6.tar.gz
curl -b cookies.txt https://h
curl -sSL https://h/v1.22.3/install.sh | sh
curl --user-agent Mozilla5X https://h
the http client -a retry:3 is used -a lot
mysql -u root -p shop
mysql -u root -p
mysql -P 3306 -h db shop
mysql -ppassword shop
mysql -p$PW shop
mysql -p"$(cat f)" shop
redis-cli -h h ping
redis-cli -a "$REDIS" ping
docker run -p 8080:80 nginx
docker login -u me reg.io
docker login --password-stdin reg.io
docker compose -p project1 up
az vm list -o table
twine upload dist/*
cargo login
cargo test --test login1234abc
npm config set registry https://npm.host.example/
wandb login --relogin
vault login -method=oidc
vault kv get secret/a1B2c3D4e5
zip -r x1.zip a
unzip -p x.zip a/b1C2d3E4
7z a x.7z a -r
ssh-keygen -t ed25519 -N "" -f k
ssh-keygen -lf ~/.ssh/id_ed25519.pub
openssl rsa -passin env:PW1 -in k
openssl req -key server1.key -new
echo "$PASSWORD" | docker login -u me --password-stdin
cat token.txt | gh auth login --with-token
echo hello123 | tee a; sudo -S ls
pulumi config set aws:region eu-central-1
dotnet user-secrets set Name value
kubectl get secret x -o yaml
kubectl create secret generic x --from-literal=foo=$FOO
git log --oneline | grep -p mysql
mongo -port 27017
mongosh --port 27017
gem push x-1.2.3.gem
go test ./internal/redact -run TestA1b2C3
gh secret set X < token1.txt
gh secret list
heroku config:set NODE_ENV=production
vault kv put secret/x value=@file1
vault kv put secret/x ttl=30m
htpasswd -c /etc/nginx/file1 user1
etcdctl --user root get x
./app --key server1.pem --auth basic
./app --key id_ed25519
./app --key ~/.ssh/id_A1b2
./app --auth OAuth2
me@tcp(h:3306)/db
:@tcp(h:3306)/db
$USER:$PASS@tcp(h:3306)/db
mc alias list
sudo -s
`), "\n")...)
}
